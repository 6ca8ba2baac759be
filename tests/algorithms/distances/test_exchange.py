"""Distances by exchange of rows, and hostile messages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from peerlearn import Faults, SimulatedNetwork, graphs
from peerlearn.algorithms.distances import Exchange, Places
from peerlearn.algorithms.distances.exchange import Entries, Patterns, round_randomly
from peerlearn.errors import InputError, WireError
from tests.support.distance_shares import GRAPHS, by_differences, tables

SEVEN = graphs.erdos_renyi(7, 0.5, seed=3)


class TestExchange:
    @pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
    def test_what_is_known_is_right(self, graph):
        X = tables()
        truth = by_differences(np.vstack(X))
        known = Exchange(0.3, 0.1, 8, 5).share(SimulatedNetwork(graph), X, seed=2)
        for D, mask in zip(known.D, known.mask, strict=True):
            np.testing.assert_allclose(D, truth * mask, rtol=1e-13)
            assert 0.2 < mask.mean() < 1
        assert known.columns == 4

    def test_without_any_round_an_agent_knows_its_own(self):
        network, X = SimulatedNetwork(GRAPHS["ring"]), tables()
        known = Exchange(pattern_rounds=0, entry_rounds=0).share(network, X, seed=0)
        for k in range(5):
            own = np.zeros(23, dtype=bool)
            own[known.places.of(k)] = True
            assert np.array_equal(known.mask[k], np.outer(own, own) | np.eye(23, dtype=bool))

    @pytest.mark.parametrize("rounds", [{"entry_rounds": 0}, {"pattern_rounds": 0}])
    def test_each_kind_of_round_adds_something(self, rounds):
        def share(**options):
            return Exchange(0.2, 0.2, **{"pattern_rounds": 5, "entry_rounds": 5, **options}).share(
                SimulatedNetwork(GRAPHS["ring"]), tables(), seed=0
            )

        none = share(pattern_rounds=0, entry_rounds=0)
        assert sum(m.sum() for m in share(**rounds).mask) > sum(m.sum() for m in none.mask)
        assert sum(m.sum() for m in share().mask) > sum(m.sum() for m in share(**rounds).mask)

    def test_much_of_both_tells_everything(self):
        known = Exchange(1.0, 1.0, 9, 9).share(SimulatedNetwork(GRAPHS["ring"]), tables(), seed=0)
        assert all(mask.all() for mask in known.mask)

    def test_rounding_is_right_on_average(self):
        rng = np.random.default_rng(0)
        drawn = np.array([round_randomly(0.35, rng) for _ in range(20_000)])
        assert set(drawn) == {0, 1}
        assert abs(drawn.mean() - 0.35) < 0.01
        assert {round_randomly(3.0, rng) for _ in range(50)} == {3}

    def test_far_more_is_known_than_with_rounding_down(self, monkeypatch):
        """2Moons in the thesis: 0.035 of 28 or 29 rows is about one, and a part of that is none at
        all.
        """
        X = np.array_split(np.random.default_rng(0).standard_normal((200, 2)), 7)
        patterns = []

        class Counted(Entries):
            def __init__(self, known):
                patterns.append(int(known.known.sum()))
                super().__init__(known)

        monkeypatch.setattr("peerlearn.algorithms.distances.exchange.Entries", Counted)
        Exchange(0.035, 0.035, 100, 0).share(SimulatedNetwork(SEVEN), X, seed=0)
        unbiased, patterns[:] = np.mean(patterns), []
        monkeypatch.setattr(
            "peerlearn.algorithms.distances.exchange.round_randomly",
            lambda number, rng: int(number),
        )
        Exchange(0.035, 0.035, 100, 0).share(SimulatedNetwork(SEVEN), X, seed=0)
        assert 95 < unbiased < 125
        assert np.mean(patterns) < 35

    def test_messages_may_get_lost(self):
        known = Exchange(0.3, 0.1, 8, 5).share(
            SimulatedNetwork(GRAPHS["ring"], faults=Faults(0.3, seed=0)), tables(), seed=2
        )
        assert all(m.mean() > 0.1 for m in known.mask)

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            (
                {"patterns": 1.5},
                "patterns is 1.5: give the fraction to send in a round, from 0 to 1",
            ),
            ({"entries": -0.1}, "entries is -0.1"),
            (
                {"pattern_rounds": -1},
                "pattern_rounds is -1: give a whole number of rounds, 0 or more",
            ),
            ({"entry_rounds": 2.5}, "entry_rounds is 2.5"),
        ],
    )
    def test_settings_that_cannot_be(self, options, sentence):
        with pytest.raises(InputError, match=sentence):
            Exchange(**options)


@dataclass(frozen=True)
class Heard:
    """One agent with rows 2 and 3 of five, and what it makes of a message."""

    patterns: Patterns

    @classmethod
    def fresh(cls):
        return cls(Patterns(Places((2, 2, 1)), 1, np.array([[0.0, 0.0], [3.0, 4.0]])))

    def rows(self, rows, patterns, dtype=np.int32):
        self.patterns.receive(
            {"places": np.array(rows, dtype), "values": np.array(patterns, np.float64)}, 9
        )

    def entries(self, places, distances, dtype=np.int32):
        own = Entries(self.patterns)
        own.receive(
            {"places": np.array(places, dtype), "values": np.array(distances, np.float64)}, 9
        )
        return own


class TestHostileMessages:
    """Whoever sends what cannot be is named, and nothing of it is computed with."""

    def test_good_ones_are_taken(self):
        heard = Heard.fresh()
        heard.rows(
            [4, 0, 2, 4], [[1.0, 1.0], [5.0, 5.0], [0.0, 0.0], [1.0, 1.0]]
        )  # its own row came back
        assert heard.patterns.received.tolist() == [0, 4]
        own = heard.entries([1 * 5 + 3, 2 * 5 + 3], [7.0, 25.0 * (1 + 1e-12)])
        D, mask = own.to_matrix()
        assert (D[1, 3], D[3, 1], D[2, 3]) == (7.0, 7.0, 25.0)
        assert mask.sum() == 16 + 2 + 1

    @pytest.mark.parametrize(
        ("rows", "patterns", "dtype"),
        [
            ([5], [[1.0, 1.0]], np.int32),
            ([-1], [[1.0, 1.0]], np.int32),
            ([0], [[1.0, np.inf]], np.int32),
            ([0], [[1.0, 1.0, 1.0]], np.int32),
            ([0, 1], [[1.0, 1.0]], np.int32),
            ([[0]], [[1.0, 1.0]], np.int32),
            ([0], [[1.0, 1.0]], np.int64),
        ],
    )
    def test_no_patterns(self, rows, patterns, dtype):
        with pytest.raises(
            WireError, match=r"agent 9 sent an unexpected message .expected patterns"
        ):
            Heard.fresh().rows(rows, patterns, dtype)

    @pytest.mark.parametrize(
        ("rows", "patterns"), [([2], [[1.0, 0.0]]), ([0, 0], [[1.0, 0.0], [1.0, 1.0]])]
    )
    def test_patterns_that_contradict(self, rows, patterns):
        with pytest.raises(
            WireError, match="agent 9 sent patterns that differ from those known of the same rows"
        ):
            Heard.fresh().rows(rows, patterns)

    @pytest.mark.parametrize(
        ("places", "distances", "dtype"),
        [
            ([25], [1.0], np.int32),
            ([-3], [1.0], np.int32),
            ([2 * 5 + 2], [0.0], np.int32),
            ([3 * 5 + 2], [25.0], np.int32),
            ([1], [-1.0], np.int32),
            ([1], [np.nan], np.int32),
            ([1, 2], [1.0], np.int32),
            ([1], [1.0], np.int64),
        ],
    )
    def test_no_distances(self, places, distances, dtype):
        with pytest.raises(
            WireError, match=r"agent 9 sent an unexpected message .expected distances"
        ):
            Heard.fresh().entries(places, distances, dtype)

    @pytest.mark.parametrize(("places", "distances"), [([13], [25.1]), ([1, 1], [2.0, 3.0])])
    def test_distances_that_contradict(self, places, distances):
        with pytest.raises(
            WireError, match="agent 9 sent distances that differ from those known of the same rows"
        ):
            Heard.fresh().entries(places, distances)

    def test_empty_messages(self):
        with pytest.raises(WireError, match="agent 9"):
            Heard.fresh().patterns.receive({"letters": np.zeros(2)}, 9)
        with pytest.raises(WireError, match="agent 9"):
            Entries(Heard.fresh().patterns).receive({}, 9)
