"""Do agents mean the same rows: what they find, what they say, and what they send."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peerlearn import Faults, SimulatedNetwork, graphs
from peerlearn.algorithms.row_identity import (
    WIDTH,
    checksum,
    common_rows,
    key_of,
    same_rows,
    texts_of,
    texts_of_numbers,
)
from peerlearn.errors import DataError, WireError
from tests.support.split_network import run_apart

KEY = key_of("between us", 0)
NAMES = st.lists(st.text(max_size=4), min_size=1, max_size=30, unique=True)
few = settings(max_examples=60, deadline=None)


def compare(rows, graph=None, key=KEY):
    network = SimulatedNetwork(graph or graphs.linear(len(rows)))
    same_rows(network, [texts_of(own) for own in rows], key, "rows", "give the same")
    return network


def refused(rows, **options):
    with pytest.raises(DataError) as caught:
        compare(rows, **options)
    return str(caught.value)


@few
@given(NAMES, st.integers(2, 4))
def test_the_same_rows_pass_with_one_flood(names, agents):
    network = compare([list(names) for _ in range(agents)])
    assert network.ledger.rounds == network.diameter
    assert network.ledger.bytes == network.diameter * 2 * (agents - 1) * 6 * 8


@few
@given(NAMES, st.data())
def test_the_first_row_that_differs_is_found(names, drawn):
    """Permuted, dropped, doubled or changed at one agent: the position is where a look at both
    lists would find it.
    """
    change = drawn.draw(st.sampled_from(["permute", "drop", "double", "other"]))
    at = drawn.draw(st.integers(0, len(names) - 1))
    other = list(names)
    if change == "permute":
        other = drawn.draw(st.permutations(names))
    elif change == "drop":
        del other[at]
    elif change == "double":
        other.insert(at, names[at])
    else:
        other[at] = "not one of them"
    first = next(
        (i for i, (a, b) in enumerate(zip(names, other, strict=False)) if a != b),
        min(len(names), len(other)),
    )
    rows = [list(names), list(names), other]
    if other == names:
        compare(rows)
        return
    said = refused(rows)
    counts = sorted({len(names), len(other)})
    assert f"first at row {first} (counted from 0; " in said
    assert (
        f"all have {counts[0]} rows"
        if len(counts) == 1
        else f"from {counts[0]} to {counts[1]} rows"
    ) in said


def test_every_agent_says_the_same_and_no_hash_of_one_row_is_sent():
    rows = [[f"row {i}" for i in range(1000)] for _ in range(5)]
    rows[3][617] = "another"
    said = []

    def work(network, k):
        with pytest.raises(DataError) as caught:
            same_rows(network, [texts_of(rows[k])], KEY, "rows", "give the same")
        said.append(str(caught.value))

    run_apart(graphs.ring(5), work)
    assert set(said) == {
        (
            "agents disagree on rows, first at row 617 (counted from 0; all have 1000 rows): "
            "give the same"
        )
    }
    assert len(said) == 5
    network = SimulatedNetwork(graphs.ring(5))
    with pytest.raises(DataError):
        same_rows(network, [texts_of(own) for own in rows], KEY, "rows", "give the same")
    floods = network.ledger.rounds // network.diameter
    assert floods <= 1 + math.ceil(math.log2(1001))


def test_keys_matter():
    names = texts_of(["a", "b"])
    network = SimulatedNetwork(graphs.linear(2))
    sent = []
    for key in (KEY, key_of("another", 0), key_of(None, 0), key_of(None, 1)):
        sent.append(_first_flood(names, key))
    assert len(set(sent)) == 4
    assert len({checksum(key_of("a", 0)), checksum(key_of("a", 1)), checksum(key_of("b", 0))}) == 2
    assert all(0 <= checksum(key_of(str(i), 0)) < 2**48 for i in range(50))
    same_rows(network, [names, names], KEY, "rows", "")


def _first_flood(names, key):
    class Listening(SimulatedNetwork):
        def flood(self, largest):
            heard.append(largest.tobytes())
            return super().flood(largest)

    heard = []
    same_rows(Listening(graphs.linear(2)), [names, names], key, "rows", "")
    return heard[0]


@few
@given(
    st.lists(st.lists(st.integers(0, 40), unique=True, min_size=1), min_size=2, max_size=5),
    st.booleans(),
)
def test_common_rows_are_the_intersection_in_one_order(rows, lossy):
    network = SimulatedNetwork(
        graphs.linear(len(rows)), faults=Faults(0.2, seed=1) if lossy else None
    )
    common = set.intersection(*map(set, rows))
    texts = [texts_of(own) for own in rows]
    if not common:
        with pytest.raises(DataError, match="no row is known to all agents"):
            common_rows(network, texts, KEY)
        return
    kept = common_rows(network, texts, KEY)
    orders = {
        tuple(np.array(own)[positions].tolist()) for own, positions in zip(rows, kept, strict=True)
    }
    assert len(orders) == 1
    assert set(orders.pop()) == common


def test_common_rows_send_16_bytes_per_row_and_only_news():
    network = SimulatedNetwork(graphs.linear(4))
    rows = [texts_of(range(100))] * 3 + [texts_of(range(50, 150))]
    kept = common_rows(network, rows, KEY)
    assert sorted(kept[0].tolist()) == list(range(50, 100))
    # All send 100 hashes in the first round; then only who has fewer left: agents 2 and 3, then
    # agent 1.
    assert network.ledger.bytes == WIDTH * (6 * 100 + 3 * 50 + 2 * 50)
    assert network.ledger.rounds == 3


def test_common_rows_apart():
    rows = [texts_of(own) for own in ([3, 1, 2, 9], [2, 3, 1], [1, 2, 3, 4], [5, 3, 2, 1])]
    together = common_rows(SimulatedNetwork(graphs.ring(4)), rows, KEY)
    apart = run_apart(graphs.ring(4), lambda network, k: common_rows(network, [rows[k]], KEY)[0])
    for own, alone in zip(together, apart, strict=True):
        np.testing.assert_array_equal(own, alone)


def test_identifiers_must_be_there_once_to_be_intersected():
    with pytest.raises(
        DataError, match=r"agent 1 has 2 rows of the identifier 'b': .* must be there once"
    ):
        common_rows(SimulatedNetwork(graphs.linear(2)), [texts_of("ab"), texts_of("abb")], KEY)


@pytest.mark.parametrize(
    "message",
    [
        {"something": np.zeros(3)},
        {"rows": np.zeros((4, WIDTH))},
        {"rows": np.zeros((4, 3), dtype=np.uint8)},
        {"rows": np.zeros(WIDTH, dtype=np.uint8)},
    ],
)
def test_hashes_of_neighbors_are_checked(message):
    class Strange(SimulatedNetwork):
        def exchange(self, outbox, to=None):
            return [{1: message}, {}]

    with pytest.raises(
        WireError, match=r"agent 1 sent an unexpected message .expected hashes of rows"
    ):
        common_rows(Strange(graphs.linear(2)), [texts_of("ab"), texts_of("ab")], KEY)


def test_hashes_of_no_row_leave_none():
    class Strange(SimulatedNetwork):
        def exchange(self, outbox, to=None):
            return [{1: {"rows": np.zeros((0, WIDTH), dtype=np.uint8)}}, {}]

    with pytest.raises(DataError, match="no row is known to all agents"):
        common_rows(Strange(graphs.linear(2)), [texts_of("ab"), texts_of("ab")], KEY)


@pytest.mark.parametrize("strange", [np.nan, np.inf, 1e300])
def test_numbers_of_rows_that_cannot_be(strange):
    class Strange(SimulatedNetwork):
        def flood(self, largest):
            heard = super().flood(largest)
            heard[:, -1] = strange  # minus the fewest rows
            return heard

    with pytest.raises(WireError, match="an agent announced"):
        same_rows(Strange(graphs.linear(2)), [texts_of("ab"), texts_of("ab")], KEY, "rows", "")


def test_what_counts_as_the_same_identifier():
    sevens = (
        [7],
        (7,),
        np.array([7], dtype=np.int8),
        np.array([7], dtype=np.uint64),
        np.array([7.0]),
        [np.int64(7)],
        pd.Index([7]),
        pd.Series([7], dtype="Int64"),
    )
    assert {tuple(texts_of(ids)) for ids in sevens} == {("#7",)}
    different = (["7"], [7.5], [True], [(7, 7)], [("7", 7)], ["#7"], [" 7"], [-7], [b"7"])
    texts = {texts_of(ids)[0] for ids in (*different, [7])}
    assert len(texts) == len(different) + 1
    days = pd.date_range("2020-01-01", periods=2)
    assert texts_of(days) == texts_of(days.to_numpy().astype("datetime64[s]"))
    assert len(set(texts_of([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)]))) == 2
    assert texts_of(pd.MultiIndex.from_tuples([(1, "a"), (1, "b")])) == texts_of(
        [(1, "a"), (1, "b")]
    )
    assert texts_of(["\ud800"])  # not a letter, and yet a text: it is hashed all the same
    compare([["\ud800", "é"], ["\ud800", "é"]])


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT, (1, None)])
def test_missing_identifiers(missing):
    with pytest.raises(
        DataError, match=r"ids are missing \(None or NaN\) at row 1: give every row one"
    ):
        texts_of(["a", missing])


def test_identifiers_in_the_wrong_shape():
    with pytest.raises(DataError, match=r"ids have shape \(2, 1\), but one per row is needed"):
        texts_of(np.array([[1], [2]]))


def test_numbers_differ_by_a_bit():
    Y = np.array([[1.0, 2.0], [0.0, 3.0]])
    assert texts_of_numbers(Y) == texts_of_numbers(Y * [[1, 1], [-1, 1]])  # minus zero is zero
    assert texts_of_numbers(Y)[0] != texts_of_numbers(np.nextafter(Y, 9))[0]


def test_lists_that_read_alike_are_not_alike():
    said = refused([["ab", "c"], ["a", "bc"]])
    assert "first at row 0" in said
    assert "first at row 1" in refused([["1:a"], ["1:a", ""]])
