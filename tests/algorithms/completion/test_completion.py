"""Completion of distances: exact where it can be, never silent where it is not."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import Faults, SimulatedNetwork, graphs
from peerlearn.algorithms.completion import BlockCompletion, DiffusionCompletion, completion_of
from peerlearn.algorithms.distances import Exchange, Known, Landmarks
from peerlearn.errors import DataError, InputError, NetworkError, NotConverged
from peerlearn.local.squared_distances import squared_distances
from tests.support.completions import METHODS, SEVEN, TENS, TRUTH, X, away, known_to_all, mask_of
from tests.support.split_network import run_apart

GRAPHS = {"random": SEVEN, "ring": graphs.ring(7), "star": graphs.star(7)}


def exchanged(network=None, **options):
    X = np.array_split(np.random.default_rng(0).standard_normal((28, 3)), 7)
    settings = {"patterns": 0.3, "entries": 0.1, "pattern_rounds": 8, "entry_rounds": 4, **options}
    return Exchange(**settings).share(
        network or SimulatedNetwork(SEVEN), X, seed=0
    ), squared_distances(np.vstack(X))


class TestExactness:
    @pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
    @pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
    @pytest.mark.parametrize("seed", [0, 1])
    @pytest.mark.filterwarnings("ignore::peerlearn.errors.NotConverged")
    def test_sixty_percent_of_seventy_points(self, method, graph, seed):
        completed = method.complete(
            SimulatedNetwork(graph), known_to_all(mask_of(0.6, seed=seed)), seed
        )
        for D in completed.D:
            assert away(D) < (1e-5 if method.name == "diffusion" else 1e-3)
            assert np.array_equal(D, D.T)
            assert D.min() >= 0
            assert not np.diagonal(D).any()

    def test_diffusion_where_agents_know_different_parts(self):
        masks = [mask_of(0.15, seed=k) for k in range(7)]
        known = Known(TENS, [TRUTH * m for m in masks], masks)
        completed = DiffusionCompletion(5, tolerance=1e-9).complete(
            SimulatedNetwork(SEVEN), known, 0
        )
        assert max(away(D) for D in completed.D) < 1e-7
        assert completed.report.converged

    @pytest.mark.parametrize(
        "method", [DiffusionCompletion(), BlockCompletion(tolerance=1e-4)], ids=str
    )
    def test_after_an_exchange_the_rank_is_that_of_the_columns(self, method):
        known, truth = exchanged(patterns=0.6, pattern_rounds=20)
        completed = method.complete(SimulatedNetwork(SEVEN), known, 1)
        assert max(away(D, truth) for D in completed.D) < 1e-3

    def test_what_is_known_stays_as_it_is(self):
        network = SimulatedNetwork(SEVEN)
        known = Landmarks().share(network, np.split(X, 7), seed=0)
        for method in METHODS:
            completed = method.complete(network, known, 0)
            assert all(D is known.D[0] for D in completed.D)
            assert (
                completed.report.iterations == len(completed.misfits) == len(completed.errors) == 0
            )

    def test_momentum_and_steps_of_its_own_beat_the_printed_iteration(self):
        masks = [mask_of(0.15, seed=k) for k in range(7)]
        known = Known(TENS, [TRUTH * m for m in masks], masks)
        ours = DiffusionCompletion(5, iterations=100, tolerance=1e-12)
        printed = DiffusionCompletion(5, momentum=0.0, step=1e-4, iterations=100, tolerance=1e-12)
        with pytest.warns(NotConverged):
            found = [
                method.complete(SimulatedNetwork(SEVEN), known, 0).D[0]
                for method in (ours, printed)
            ]
        assert away(found[0]) < 0.1 * away(found[1])

    @pytest.mark.filterwarnings("ignore::peerlearn.errors.NotConverged")
    def test_steps_shorten_where_rows_start_too_far_apart(self):
        """Of rows close to each other steps may be long, but not before V is close, too; nobody has
        to go back.
        """
        flat = np.random.default_rng(1).standard_normal((70, 2)) * [1, 0.01]
        known = Exchange(0.3, 0.02, 6, 5).share(SimulatedNetwork(SEVEN), np.split(flat, 7), seed=0)
        completed = DiffusionCompletion(iterations=400).complete(SimulatedNetwork(SEVEN), known, 0)
        assert completed.report.note == ""
        assert away(completed.D[0], squared_distances(flat)) < 0.01

    def test_a_size_of_the_data_changes_nothing(self):
        mask = mask_of(0.6)
        small = DiffusionCompletion(5).complete(SimulatedNetwork(SEVEN), known_to_all(mask), 0)
        large = DiffusionCompletion(5).complete(
            SimulatedNetwork(SEVEN), known_to_all(mask, 1e8 * TRUTH), 0
        )
        assert small.report.iterations == large.report.iterations
        assert away(large.D[0], 1e8 * TRUTH) < 1e-4


class TestLittleIsKnown:
    @pytest.mark.parametrize(
        "method", [DiffusionCompletion(3, iterations=30), BlockCompletion(5, iterations=30)]
    )
    @pytest.mark.filterwarnings("ignore::peerlearn.errors.NotConverged")
    def test_a_row_of_which_nobody_knows_anything(self, method):
        mask = mask_of(0.6)
        mask[17] = mask[:, 17] = False
        mask[17, 17] = True
        completed = method.complete(SimulatedNetwork(SEVEN), known_to_all(mask), 0, truth=TRUTH)
        assert all(
            np.isfinite(array).all()
            for array in (*completed.D, completed.misfits, completed.errors)
        )

    @pytest.mark.parametrize(
        "method", [DiffusionCompletion(2, iterations=30), BlockCompletion(3, iterations=30)]
    )
    @pytest.mark.filterwarnings("ignore::peerlearn.errors.NotConverged")
    def test_agents_with_one_row_or_none(self, method):
        X = [
            np.random.default_rng(k).standard_normal((n, 2))
            for k, n in enumerate((1, 0, 1, 5, 1, 1, 1))
        ]
        for rounds in (0, 6):
            known = Exchange(0.5, 0.2, rounds, rounds).share(SimulatedNetwork(SEVEN), X, seed=0)
            completed = method.complete(SimulatedNetwork(SEVEN), known, 0)
            assert all(np.isfinite(D).all() for D in completed.D)

    @pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
    def test_nobody_knows_a_distance(self, method):
        X = [np.random.default_rng(k).standard_normal((1, 5)) for k in range(7)]
        known = Exchange(pattern_rounds=0).share(SimulatedNetwork(SEVEN), X, seed=0)
        with pytest.raises(DataError, match="no agent knows the distance between two rows"):
            type(method)(2).complete(SimulatedNetwork(SEVEN), known, 0)

    @pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
    def test_rows_that_are_all_the_same(self, method):
        completed = method.complete(
            SimulatedNetwork(SEVEN), known_to_all(mask_of(0.6), np.zeros((70, 70))), 0
        )
        assert completed.D[0].max() == 0
        assert completed.report.converged


class TestWhatCannotBe:
    def test_rank_larger_than_the_data(self):
        known = known_to_all(mask_of(0.6))
        with pytest.raises(
            DataError,
            match="rank is 70, but distances between 70 rows need 69 at most: give Diffusion",
        ):
            DiffusionCompletion(70).complete(SimulatedNetwork(SEVEN), known, 0)
        with pytest.raises(
            DataError, match="rank is 71, but distances between 70 rows need 70 at most: give Block"
        ):
            BlockCompletion(71).complete(SimulatedNetwork(SEVEN), known, 0)

    @pytest.mark.filterwarnings("ignore::peerlearn.errors.NotConverged")
    def test_more_columns_than_rows_are_no_mistake(self):
        X = np.array_split(np.random.default_rng(0).standard_normal((14, 30)), 7)
        known = Exchange(0.5, 0.2, 10, 5).share(SimulatedNetwork(SEVEN), X, seed=0)
        for method in (DiffusionCompletion(iterations=20), BlockCompletion(iterations=20)):
            assert np.isfinite(method.complete(SimulatedNetwork(SEVEN), known, 0).D[0]).all()

    @pytest.mark.parametrize(
        "method", [DiffusionCompletion(), BlockCompletion()], ids=lambda method: method.name
    )
    def test_no_rank_and_no_columns(self, method):
        with pytest.raises(
            InputError, match="needs to know how many columns the rows have: give it rank"
        ):
            method.complete(SimulatedNetwork(SEVEN), known_to_all(mask_of(0.6)), 0)

    @pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
    def test_networks_that_do_not_fit(self, method):
        known = known_to_all(mask_of(0.6))
        with pytest.raises(
            NetworkError, match="cannot agree on a round to stop in while messages get lost"
        ):
            method.complete(SimulatedNetwork(SEVEN, faults=Faults(0.1, seed=0)), known, 0)
        with pytest.raises(InputError, match="share and complete over the same network"):
            method.complete(SimulatedNetwork(graphs.ring(5)), known, 0)
        with pytest.raises(InputError, match="truth has shape"):
            method.complete(SimulatedNetwork(SEVEN), known, 0, truth=TRUTH[:5])

    @pytest.mark.parametrize("method", [DiffusionCompletion, BlockCompletion])
    @pytest.mark.parametrize("setting", ["rank", "iterations", "step", "tolerance"])
    def test_settings(self, method, setting):
        for given in (0, -1, "many"):
            with pytest.raises(InputError, match=setting):
                method(**{setting: given})

    @pytest.mark.parametrize("momentum", [-0.1, 1.0, "much"])
    def test_momentum(self, momentum):
        with pytest.raises(InputError, match="momentum is"):
            DiffusionCompletion(momentum=momentum)

    def test_all_agents_refuse_alike(self):
        known = known_to_all(mask_of(0.6))

        def work(network, k):
            own = Known(TENS, known.D[:1], known.mask[:1])
            with pytest.raises(DataError) as error:
                DiffusionCompletion(70).complete(network, own, 0)
            return str(error.value)

        assert len(set(run_apart(SEVEN, work))) == 1


def test_found_by_name():
    assert completion_of("diffusion") == DiffusionCompletion()
    assert completion_of("BlockCompletion") == BlockCompletion()
    assert completion_of(BlockCompletion(3)) == BlockCompletion(3)
    with pytest.raises(InputError, match="completion 'blok' is not known, did you mean 'block'"):
        completion_of("blok")
