"""Completion of distances: exact where it can be, never silent where it is not."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import Faults, SimulatedNetwork, graphs
from peerlearn.algorithms.completion import BlockCompletion, DiffusionCompletion, completion_of
from peerlearn.algorithms.completion.block import apply_pseudo_inverse
from peerlearn.algorithms.completion.diffusion import curvature, gradient_of, kappa
from peerlearn.algorithms.distances import Exchange, Known, Landmarks, Places
from peerlearn.errors import DataError, InputError, NetworkError, NotConverged
from peerlearn.local.squared_distances import squared_distances
from tests.support.split_network import run_apart

SEVEN = graphs.erdos_renyi(7, 0.5, seed=3)
GRAPHS = {"random": SEVEN, "ring": graphs.ring(7), "star": graphs.star(7)}
METHODS = [DiffusionCompletion(5), BlockCompletion(7)]
X = np.random.default_rng(1).standard_normal((70, 5))
TRUTH = squared_distances(X)
TENS = Places((10,) * 7)


def mask_of(share, N=70, seed=0):
    upper = np.triu(np.random.default_rng(seed).random((N, N)) < share, 1)
    return upper | upper.T | np.eye(N, dtype=bool)


def known_to_all(mask, truth=TRUTH, places=TENS, agents=7):
    return Known(places, [truth * mask] * agents, [mask] * agents)


def away(D, truth=TRUTH):
    return np.linalg.norm(D - truth) / np.linalg.norm(truth)


def exchanged(network=None, **options):
    X = np.array_split(np.random.default_rng(0).standard_normal((28, 3)), 7)
    settings = {"patterns": 0.3, "entries": 0.1, "pattern_rounds": 8, "entry_rounds": 4, **options}
    return Exchange(**settings).share(
        network or SimulatedNetwork(SEVEN), X, seed=0
    ), squared_distances(np.vstack(X))


class TestGradients:
    def test_against_finite_differences(self):
        rng = np.random.default_rng(0)
        V, h = rng.standard_normal((2, 9, 3)), 1e-6
        M = np.stack([mask_of(0.5, 9, seed) for seed in (1, 2)]).astype(float)
        D = M * squared_distances(rng.standard_normal((9, 3)))

        def J(V):
            return ((M * (kappa(V) - D)) ** 2).sum(axis=(1, 2))

        gradient, _ = gradient_of(M * (kappa(V) - D), V)
        numeric = np.empty_like(V)
        for i in np.ndindex(9, 3):
            step = np.zeros_like(V)
            step[:, *i] = h
            numeric[:, *i] = (J(V + step) - J(V - step)) / (2 * h)
        assert np.linalg.norm(gradient - numeric) < 1e-6 * np.linalg.norm(numeric)

    def test_kappa_gives_distances(self):
        np.testing.assert_allclose(kappa(X[None])[0], TRUTH, atol=1e-12)

    def test_steps_are_stable_at_the_answer(self):
        """The curvature of J along any U is at most the sum over rows of 16 c d_i |u_i|^2."""
        M = mask_of(0.3).astype(float)
        d = (M * TRUTH).sum(axis=1)
        c = curvature((M * TRUTH)[None], d[None])[0]
        exact = np.linalg.eigvalsh(np.eye(70) - M * TRUTH / np.sqrt(np.outer(d, d)))[-1]
        assert 0.97 * exact < c <= exact + 1e-12
        for seed in range(20):
            U = (
                np.random.default_rng(seed).standard_normal((70, 5))
                * (np.arange(70) % 7 == seed % 7)[:, None]
            )
            along = 2 * (X @ U.T + U @ X.T)
            along = 2 * np.diagonal(X @ U.T)[:, None] + 2 * np.diagonal(X @ U.T)[None] - along
            assert 2 * ((M * along) ** 2).sum() <= 16 * exact * (d @ (U**2).sum(axis=1))

    def test_pseudo_inverse(self):
        A = np.random.default_rng(0).standard_normal((2, 12, 4))
        A[1, :, 3] = A[1, :, 2]  # of lower rank
        D = np.random.default_rng(1).standard_normal((2, 12, 5))
        np.testing.assert_allclose(apply_pseudo_inverse(A, D), np.linalg.pinv(A) @ D, atol=1e-9)


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
        """Of rows close to each other steps may be long, but not before V is close, too; nobody has to go back."""
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


class TestHistory:
    @pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
    def test_misfits_and_errors(self, method):
        known = known_to_all(mask_of(0.6))
        completed = method.complete(SimulatedNetwork(graphs.complete(7)), known, 0, truth=TRUTH)
        assert (
            completed.misfits.shape
            == completed.errors.shape
            == (completed.report.iterations + 1, 7)
        )
        assert completed.errors[0].min() > 0.1
        assert completed.errors[-1].max() < 1e-5
        assert completed.report.residuals[-1] <= 1e-6
        assert completed.report.sent.rounds >= completed.report.iterations

    def test_without_the_truth_there_are_no_errors(self):
        completed = DiffusionCompletion(5).complete(
            SimulatedNetwork(SEVEN), known_to_all(mask_of(0.6)), 0
        )
        assert completed.errors.shape == (0, 7)

    @pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
    def test_the_answer_has_the_misfit_that_all_were_told(self, method):
        mask = mask_of(0.6)
        with pytest.warns(
            NotConverged, match="raise iterations or tolerance, or share more distances"
        ):
            completed = type(method)(method.rank, iterations=12).complete(
                SimulatedNetwork(SEVEN), known_to_all(mask), 0
            )
        assert not completed.report.converged
        assert len(completed.report.residuals) == 2
        assert min(completed.misfits[:, 0]) == pytest.approx(
            min(completed.report.residuals), rel=0.5
        )
        if method.name == "diffusion":  # of the other, half the matrix comes from other agents
            for D in completed.D:
                np.testing.assert_array_equal(D[mask], TRUTH[mask])  # what is known stays as it is

    @pytest.mark.parametrize("unit", [1e-90, 1e60])
    @pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
    def test_the_unit_of_the_columns_does_not_matter(self, method, unit):
        """But for rounding: here it is a power of ten, not of two."""
        few = type(method)(method.rank, iterations=12)
        with pytest.warns(NotConverged):
            one = few.complete(SimulatedNetwork(SEVEN), known_to_all(mask_of(0.6)), 0)
        with pytest.warns(NotConverged):
            other = few.complete(
                SimulatedNetwork(SEVEN), known_to_all(mask_of(0.6), TRUTH * unit**2), 0
            )
        np.testing.assert_allclose(other.D[0], one.D[0] * unit**2, rtol=1e-6, atol=1e-9 * unit**2)

    def test_a_step_far_too_long_is_taken_back(self):
        with pytest.warns(NotConverged):
            completed = DiffusionCompletion(5, step=1.0, iterations=300).complete(
                SimulatedNetwork(SEVEN), known_to_all(mask_of(0.6)), 0
            )
        assert "halved" in completed.report.note
        assert np.isfinite(completed.D[0]).all()
        assert away(completed.D[0]) < 0.5


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
