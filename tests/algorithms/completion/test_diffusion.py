"""Gradients and history of completion by diffusion."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms.completion import DiffusionCompletion
from peerlearn.algorithms.completion.block import apply_pseudo_inverse
from peerlearn.algorithms.completion.diffusion import curvature, gradient_of, kappa
from peerlearn.errors import NotConverged
from peerlearn.local.squared_distances import squared_distances
from tests.support.completions import METHODS, SEVEN, TRUTH, X, away, known_to_all, mask_of


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
