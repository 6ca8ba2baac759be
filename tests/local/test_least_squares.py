"""Stacked least squares problems, against plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import LeastSquares
from tests.support.local_problems import shares
from tests.support.readout_problems import closed_form


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(1, 12), st.integers(1, 3))
def test_stacked_agents_compute_what_each_would_alone(sizes, B, M):
    H, Y = shares(sizes, B, M)
    problems = LeastSquares.of_rows(H, Y)
    rng = np.random.default_rng(1)
    d, rho, alpha = rng.standard_normal((len(sizes), B, M)), 0.7, rng.uniform(0.1, 2, len(sizes))
    near, inverse = problems.proximal(rho), problems.shifted_inverse(alpha)
    normal, ridge, prox, inverted = problems.normal(d), problems.ridge(alpha), near(d), inverse(d)
    eigenvalues, triangles, equations = (
        problems.largest_eigenvalues(),
        problems.triangles(),
        problems.normal_equations(),
    )
    for k, (h, y) in enumerate(zip(H, Y, strict=True)):
        np.testing.assert_allclose(normal[k], h.T @ h @ d[k], atol=1e-10)
        np.testing.assert_allclose(problems.moment[k], h.T @ y, atol=1e-10)
        np.testing.assert_allclose(ridge[k], closed_form(h, y, alpha[k]), atol=1e-8)
        shifted = np.linalg.inv(h.T @ h + rho * np.eye(B))
        np.testing.assert_allclose(prox[k], shifted @ (h.T @ y + rho * d[k]), atol=1e-8)
        np.testing.assert_allclose(
            inverted[k], np.linalg.inv(h.T @ h + alpha[k] * np.eye(B)) @ d[k], atol=1e-8
        )
        assert eigenvalues[k] == pytest.approx(np.linalg.eigvalsh(h.T @ h)[-1])
        np.testing.assert_allclose(triangles[k], (h.T @ h)[np.triu_indices(B)], atol=1e-10)
        np.testing.assert_allclose(equations[k].ridge(0.5), closed_form(h, y, 0.5), atol=1e-8)


def test_from_inputs_is_from_features():
    features = RandomFeatures.draw(3, 20, seed=0)
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((n, 3)) for n in (5, 9100, 20)]
    Y = [rng.standard_normal((len(x), 2)) for x in X]
    blockwise, whole = (
        LeastSquares.of_inputs(features, X, Y),
        LeastSquares.of_rows([features(x) for x in X], Y),
    )
    alpha = np.ones(3)
    np.testing.assert_allclose(blockwise.ridge(alpha), whole.ridge(alpha), atol=1e-9)
