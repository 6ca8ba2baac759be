"""Shares: nothing lost, nothing twice, sizes as promised, the same seed the same deal."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from scipy import sparse

from peerlearn import partition
from peerlearn.errors import DataError

X = np.arange(60.0).reshape(20, 3)
Y = np.repeat([0, 1], [8, 12])

seeds = st.integers(0, 2**32 - 1)
dealable = st.integers(1, 12).flatmap(
    lambda agents: st.tuples(st.just(agents), st.integers(agents, 80))
)


@st.composite
def labelled(draw):
    """Agents, and at least as many labels, of few classes and often unbalanced ones."""
    agents, n = draw(dealable)
    return agents, np.array(draw(st.lists(st.sampled_from("aaaabbc"), min_size=n, max_size=n)))


def assert_each_row_once(dealt, n):
    assert np.array_equal(np.sort(np.concatenate(dealt)), np.arange(n))


def spread(counts):
    return max(counts) - min(counts)


@given(dealable, seeds)
def test_even_loses_nothing_and_sizes_differ_by_at_most_one(case, seed):
    agents, n = case
    dealt = partition.even_rows(n, agents, default_rng(seed))
    assert len(dealt) == agents
    assert_each_row_once(dealt, n)
    assert spread([len(rows) for rows in dealt]) <= 1


@given(labelled(), seeds)
def test_stratified_balances_every_class_and_the_sizes(case, seed):
    agents, y = case
    dealt = partition.stratified_rows(y, agents, default_rng(seed))
    assert len(dealt) == agents
    assert_each_row_once(dealt, len(y))
    assert spread([len(rows) for rows in dealt]) <= 1
    for label in np.unique(y):
        assert spread([np.sum(y[rows] == label) for rows in dealt]) <= 1


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), seeds)
def test_sized_gives_each_agent_its_size(sizes, seed):
    dealt = partition.sized_rows(sum(sizes), sizes, default_rng(seed))
    assert [len(rows) for rows in dealt] == sizes
    assert_each_row_once(dealt, sum(sizes))


@given(labelled(), st.floats(1e-6, 1e6), seeds)
def test_dirichlet_loses_nothing_and_leaves_nobody_empty(case, concentration, seed):
    agents, y = case
    dealt = partition.dirichlet_rows(y, agents, concentration, default_rng(seed))
    assert len(dealt) == agents
    assert_each_row_once(dealt, len(y))
    assert min(len(rows) for rows in dealt) >= 1


@given(dealable, st.none() | seeds)
def test_columns_are_dealt_once_and_stay_ascending(case, seed):
    agents, n = case
    blocks = partition.column_blocks(n, agents, seed=seed)
    assert_each_row_once(blocks, n)
    assert spread([len(block) for block in blocks]) <= 1
    assert all(np.all(np.diff(block) > 0) for block in blocks)
    if seed is None:
        assert np.array_equal(np.concatenate(blocks), np.arange(n))


DEALS = {
    "even": lambda seed, X=X, y=Y: partition.even(X, y, 4, seed=seed),
    "stratified": lambda seed, X=X, y=Y: partition.stratified(X, y, 4, seed=seed),
    "sized": lambda seed, X=X, y=Y: partition.sized(X, y, [1, 2, 7, 10], seed=seed),
    "dirichlet": lambda seed, X=X, y=Y: partition.dirichlet(X, y, 4, seed=seed),
}


@pytest.mark.parametrize("deal", DEALS.values(), ids=DEALS)
def test_the_seed_alone_decides(deal):
    first, again, other = deal(3), deal(3), deal(4)
    assert all(
        np.array_equal(a[0], b[0]) and np.array_equal(a[1], b[1])
        for a, b in zip(first, again, strict=True)
    )
    assert any(not np.array_equal(a[0], b[0]) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("deal", DEALS.values(), ids=DEALS)
def test_every_row_keeps_its_label(deal):
    for X_k, y_k in deal(0):
        assert np.array_equal(y_k, Y[(X_k[:, 0] / 3).astype(int)])


@pytest.mark.parametrize("deal", DEALS.values(), ids=DEALS)
def test_pandas_stays_pandas_with_its_index(deal):
    index = [f"row {i}" for i in range(20)]
    frame, series = pd.DataFrame(X, index=index, columns=list("abc")), pd.Series(Y, index=index)
    shares = deal(0, frame, series)
    assert all(isinstance(X_k, pd.DataFrame) and isinstance(y_k, pd.Series) for X_k, y_k in shares)
    assert all(X_k.index.equals(y_k.index) for X_k, y_k in shares)
    pd.testing.assert_frame_equal(pd.concat([X_k for X_k, _ in shares]).loc[index], frame)


@pytest.mark.parametrize("deal", DEALS.values(), ids=DEALS)
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_matrix, sparse.csc_array])
def test_sparse_and_lists_stay_what_they_are(deal, kind):
    table = kind(X)
    shares = deal(0, table, Y.tolist())
    assert all(type(X_k) is type(table) and isinstance(y_k, list) for X_k, y_k in shares)
    for (X_k, y_k), (dense, labels) in zip(shares, deal(0), strict=True):
        assert np.array_equal(X_k.toarray(), dense)
        assert y_k == labels.tolist()


def test_lists_of_unequal_sequences_can_be_dealt():
    sequences = [np.zeros(length) for length in (3, 1, 4, 1, 5)]
    shares = partition.even(sequences, [3, 1, 4, 1, 5], 2)
    assert [len(X_k) for X_k, _ in shares] == [3, 2]
    assert all([len(x) for x in X_k] == y_k for X_k, y_k in shares)


def test_a_class_rarer_than_the_agents_lands_at_some():
    y = np.array([0] * 30 + [1, 1])
    ones = [int(y_k.sum()) for _, y_k in partition.stratified(np.arange(32), y, 5)]
    assert sorted(ones) == [0, 0, 0, 1, 1]


def test_rows_of_a_share_are_not_sorted_by_class():
    for _, y_k in partition.stratified(np.zeros((400, 1)), np.repeat([0, 1], 200), 2):
        assert 50 < np.count_nonzero(np.diff(y_k)) < 150


def skew(concentration):
    """Mean over agents and seeds of the total variation between an agent's classes and
    everybody's.
    """
    y = np.repeat(np.arange(5), 200)
    shares = [
        rows
        for seed in range(20)
        for rows in partition.dirichlet_rows(y, 8, concentration, default_rng(seed))
    ]
    return np.mean(
        [np.abs(np.bincount(y[rows], minlength=5) / len(rows) - 0.2).sum() / 2 for rows in shares]
    )


def test_dirichlet_skew_grows_as_the_concentration_falls():
    skews = [skew(concentration) for concentration in (1000.0, 10.0, 1.0, 0.1)]
    assert skews == sorted(skews)
    assert skews[0] < 0.05
    assert skews[-1] > 0.5


def test_dirichlet_proportions_have_the_variance_of_the_law():
    """Var p = (1/L)(1 - 1/L) / (L c + 1) for Dirichlet(c, .., c) over L agents."""
    agents, concentration, n = 4, 0.5, 1000
    y = np.zeros(n, dtype=int)
    fractions = np.array(
        [
            [
                len(rows) / n
                for rows in partition.dirichlet_rows(y, agents, concentration, default_rng(seed))
            ]
            for seed in range(1500)
        ]
    )
    expected = 0.25 * 0.75 / (agents * concentration + 1)
    assert fractions.mean(axis=0) == pytest.approx(np.full(4, 0.25), abs=0.03)
    assert fractions.var(axis=0) == pytest.approx(np.full(4, expected), rel=0.15)


def test_dirichlet_moves_one_row_to_each_agent_left_empty():
    dealt = partition.dirichlet_rows(np.zeros(50), 6, 1e-5, default_rng(0))
    assert sorted(len(rows) for rows in dealt) == [1, 1, 1, 1, 1, 45]


@pytest.mark.parametrize(
    "kind", [np.array, pd.DataFrame, sparse.csr_array, sparse.coo_array, np.ndarray.tolist]
)
def test_column_blocks_put_side_by_side_are_the_table(kind):
    wide = np.arange(35).reshape(5, 7)
    table = kind(wide)
    blocks = partition.columns(table, 3, seed=5)
    where = np.concatenate(partition.column_blocks(7, 3, seed=5))
    assert all(type(block) is type(table) for block in blocks)
    dense = [block.toarray() if sparse.issparse(block) else np.asarray(block) for block in blocks]
    assert np.array_equal(np.hstack(dense), wide[:, where])
    assert [block.shape[1] for block in dense] == [3, 2, 2]


def test_columns_of_given_sizes_and_order():
    first, second = partition.columns(X, 2, seed=None, sizes=[1, 2])
    assert np.array_equal(first, X[:, :1])
    assert np.array_equal(second, X[:, 1:])
    different = {tuple(partition.column_blocks(10, 2, seed=seed)[0]) for seed in range(5)}
    assert len(different) > 1


BAD = {
    "agents is 0": lambda: partition.even(X, Y, 0),
    "agents is -1": lambda: partition.stratified(X, Y, -1),
    r"agents is 2\.5": lambda: partition.even(X, Y, 2.5),
    "20 rows cannot be dealt to 21 agents": lambda: partition.even(X, Y, 21),
    "20 rows cannot be dealt to 22 agents": lambda: partition.stratified(X, Y, 22),
    "20 rows cannot be dealt to 23 agents": lambda: partition.dirichlet(X, Y, 23),
    "X has 20 rows but y has 19": lambda: partition.even(X, Y[:19], 2),
    "X has 19 rows but y has 20": lambda: partition.dirichlet(X[:19], Y, 2),
    "y is None, which has no rows": lambda: partition.even(X, None, 2),
    "sizes add up to 19, but there are 20 rows": lambda: partition.sized(X, Y, [9, 10]),
    "sizes add up to 4, but there are 3 columns": lambda: partition.columns(X, 2, sizes=[2, 2]),
    "agent 1 would get 0 rows": lambda: partition.sized(X, Y, [20, 0]),
    "agent 0 would get -1 rows": lambda: partition.sized(X, Y, [-1, 21]),
    r"agent 0 would get 0\.5 columns": lambda: partition.columns(X, 2, sizes=[0.5, 2.5]),
    "3 sizes are given for 2 agents": lambda: partition.columns(X, 2, sizes=[1, 1, 1]),
    "3 columns cannot be dealt to 4 agents": lambda: partition.columns(X, 4),
    r"X has shape \(20,\), but columns": lambda: partition.columns(Y, 2),
    "X has rows of unequal length": lambda: partition.columns([[1, 2], [3]], 1),
    "concentration is 0:": lambda: partition.dirichlet(X, Y, 2, concentration=0),
    r"concentration is -0\.5:": lambda: partition.dirichlet(X, Y, 2, concentration=-0.5),
    "concentration is nan:": lambda: partition.dirichlet(X, Y, 2, concentration=float("nan")),
    r"labels have shape \(20, 3\)": lambda: partition.stratified(X, X, 2),
    "labels cannot be sorted": lambda: partition.stratified(
        [1, 2], np.array(["a", None], dtype=object), 2
    ),
}


@pytest.mark.parametrize("sentence", BAD)
def test_bad_input_is_one_sentence(sentence):
    with pytest.raises(DataError, match=f"^{sentence}") as caught:
        BAD[sentence]()
    assert ": " in str(caught.value)
