"""What agents know of the distances between all rows, by landmarks and by exchange; and who is refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from peerlearn import Faults, SimulatedNetwork, graphs
from peerlearn.algorithms.distances import Exchange, Known, Landmarks, Places, distances_of
from peerlearn.algorithms.distances.exchange import Entries, Patterns, round_randomly
from peerlearn.errors import DataError, InputError, NetworkError, WireError
from peerlearn.local.squared_distances import squared_distances
from peerlearn.testing.cases.distances import cases
from peerlearn.testing.comparing import check_threads
from tests.support.split_network import run_apart

GRAPHS = {
    "ring": graphs.ring(5),
    "star": graphs.star(5),
    "complete": graphs.complete(5),
    "random": graphs.erdos_renyi(5, 0.5, seed=1),
}
SEVEN = graphs.erdos_renyi(7, 0.5, seed=3)


def tables(agents=5, rows=(1, 6, 3, 9, 4), d=4, seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((rows[k % len(rows)], d)) + offset for k in range(agents)]


def by_differences(X):
    return ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)


def away(D, truth):
    return np.linalg.norm(D - truth) / np.linalg.norm(truth)


class TestSquaredDistances:
    @pytest.mark.parametrize("offset", [0.0, 1e6])
    def test_are_those_of_differences(self, offset):
        X, Y = np.random.default_rng(0).standard_normal((2, 20, 7)) + offset
        D = squared_distances(X)
        assert away(D, by_differences(X)) < 1e-14
        assert np.array_equal(D, D.T)
        assert not np.diagonal(D).any()
        assert away(squared_distances(X, Y), ((X[:, None] - Y[None]) ** 2).sum(axis=2)) < 1e-14

    def test_of_rows_that_are_the_same_are_never_negative(self):
        X = np.repeat(np.random.default_rng(0).standard_normal((1, 5)), 8, axis=0)
        assert squared_distances(X, X).min() >= 0
        assert squared_distances(X).max() < 1e-30


class TestPlaces:
    def test_are_agreed_upon(self):
        together = Places.agree(SimulatedNetwork(GRAPHS["ring"]), [3, 0, 2, 1, 4])
        assert together == Places((3, 0, 2, 1, 4))
        assert (together.N, together.of(2), together.of(1)) == (10, slice(3, 5), slice(3, 3))
        counts = [3, 0, 2, 1, 4]
        assert (
            run_apart(GRAPHS["ring"], lambda network, k: Places.agree(network, [counts[k]]))
            == [together] * 5
        )

    def test_one_row_in_all(self):
        with pytest.raises(
            DataError,
            match="all agents together have 1 row, and a distance needs two: give more rows",
        ):
            Places.agree(SimulatedNetwork(GRAPHS["ring"]), [1, 0, 0, 0, 0])

    def test_too_many_rows(self):
        with pytest.raises(DataError, match="distances between all of them"):
            Places((15_000, 10_000))
        with pytest.raises(DataError, match="or use AnchorLapClassifier, which needs no distances"):
            Places.agree(SimulatedNetwork(GRAPHS["ring"]), [3, 2, 2, 30_000, 4])

    @pytest.mark.parametrize("said", [-4.0, np.nan, np.inf, 2.5, 1e17])
    def test_a_number_of_rows_that_cannot_be(self, said):
        with pytest.raises(
            NetworkError, match=r"agent 3 (announced|computed numbers that are not finite)"
        ):
            Places.agree(SimulatedNetwork(GRAPHS["ring"]), [3, 2, 2, said, 4])


class TestKnown:
    D = squared_distances(np.arange(6.0).reshape(3, 2))

    @pytest.mark.parametrize(
        ("D", "mask", "sentence"),
        [
            (D[:2], None, "distances must be 3 x 3 of float64, not 2 x 3 of float64"),
            (D, np.ones((3, 2), bool), "mask must be 3 x 3"),
            (-D, None, "finite, 0 or more, and 0 on the diagonal"),
            (D + np.eye(3), None, "0 on the diagonal"),
            (D * np.nan, None, "finite"),
            (np.triu(D), None, "symmetric"),
            (D, np.eye(3, dtype=bool), "0 where the mask is False"),
        ],
    )
    def test_refuses_what_are_no_distances(self, D, mask, sentence):
        with pytest.raises(DataError, match=sentence):
            Known(Places((1, 2)), [D], None if mask is None else [mask])


class TestLandmarks:
    @pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
    @pytest.mark.parametrize(
        "options",
        [{}, {"d": 1}, {"d": 60}, {"rows": (1,)}, {"offset": 1e6}, {"rows": (0, 5, 3)}],
        ids=str,
    )
    def test_are_exact(self, graph, options):
        X = tables(**options)
        known = Landmarks().share(SimulatedNetwork(graph), X, seed=4)
        assert known.mask is None
        assert all(D is known.D[0] for D in known.D)
        assert away(known.D[0], by_differences(np.vstack(X))) < 1e-13

    def test_also_of_an_agent_far_out_and_of_one_agent(self):
        X = tables()
        X[2] += 1e3
        far = Landmarks().share(SimulatedNetwork(GRAPHS["star"]), X, seed=0)
        assert away(far.D[0], by_differences(np.vstack(X))) < 1e-13
        alone = Landmarks().share(SimulatedNetwork(graphs.complete(1)), X[1:2], seed=0)
        assert away(alone.D[0], by_differences(X[1])) < 1e-13

    def test_rows_that_are_all_the_same(self):
        known = Landmarks().share(
            SimulatedNetwork(GRAPHS["ring"]), [np.full((2, 3), 7.3)] * 5, seed=0
        )
        assert known.D[0].max() < 1e-25

    def test_what_travels(self):
        """N (d + 1) distances up and down the tree, and little more."""
        network = SimulatedNetwork(GRAPHS["star"])
        Landmarks().share(network, tables(rows=(30,)), seed=0)
        assert network.ledger.bytes < 1.3 * (4 * 30 + 4 * 150) * 5 * 8

    def test_rows_too_far_to_square(self):
        with pytest.raises(
            DataError, match="the squares overflow: scale the columns at all agents"
        ):
            Landmarks().share(
                SimulatedNetwork(GRAPHS["ring"]), [1e200 * X for X in tables()], seed=0
            )

    @pytest.mark.parametrize("wrong", [-1.0, 1e9])
    def test_distances_that_no_row_can_have(self, wrong, monkeypatch):
        def lying(X, points):
            t = squared_distances(X, points)
            t[-1, 2] = wrong if len(X) == 9 else t[-1, 2]  # agent 3 has nine rows
            return t

        monkeypatch.setattr("peerlearn.algorithms.distances.landmarks.squared_distances", lying)
        with pytest.raises(WireError, match="agent 3"):
            Landmarks().share(SimulatedNetwork(GRAPHS["ring"]), tables(), seed=0)

    def test_messages_that_get_lost(self):
        with pytest.raises(NetworkError, match="loses some"):
            Landmarks().share(
                SimulatedNetwork(GRAPHS["ring"], faults=Faults(0.1, seed=0)), tables(), seed=0
            )


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
        """2Moons in the thesis: 0.035 of 28 or 29 rows is about one, and a part of that is none at all."""
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


@pytest.mark.parametrize(
    "graph", [graphs.ring(4), graphs.star(5), graphs.erdos_renyi(7, 0.35, seed=0)], ids=str
)
@pytest.mark.parametrize("name", cases())
def test_apart_to_the_bit(name, graph):
    """Also the completions: one process with all agents, and one thread for each."""
    check_threads(name, graph, cases()[name])


def test_found_by_name():
    assert distances_of("landmarks") == Landmarks()
    assert distances_of("exchange") == Exchange()
    assert distances_of(Exchange(0.5)) == Exchange(0.5)
    with pytest.raises(
        InputError, match="distances 'landmark' is not known, did you mean 'landmarks'"
    ):
        distances_of("landmark")
