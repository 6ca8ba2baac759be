"""What one agent computes alone, against plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peerlearn.errors import DataError, InputError
from peerlearn.local.features import ACTIVATIONS, RandomFeatures
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.normal_equations import NormalEquations
from peerlearn.local.penalties import Lasso, Ridge
from peerlearn.local.ridge import solve_ridge
from tests.support.readout_problems import closed_form

BY_HAND = {
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "tanh": np.tanh,
    "relu": lambda z: z * (z > 0),
    "sine": np.sin,
}


def shares(sizes, B, M, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, B)) for n in sizes], [
        rng.standard_normal((n, M)) for n in sizes
    ]


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("direct", [False, True])
def test_features_are_the_formula(activation, direct):
    features = RandomFeatures.draw(4, 7, seed=1, activation=activation, direct_links=direct)
    X = np.random.default_rng(0).standard_normal((9000, 4))
    expected = BY_HAND[activation](X @ features.W + features.b)
    expected = np.hstack([expected, X]) if direct else expected
    np.testing.assert_allclose(features(X), expected, atol=1e-12)
    assert features.width == expected.shape[1]
    np.testing.assert_array_equal(np.vstack([h.copy() for _, h in features.blocks(X)]), features(X))


def test_features_are_uniform_seeded_and_never_overflow():
    features = RandomFeatures.draw(30, 400, seed=5)
    again = RandomFeatures.draw(30, 400, seed=5)
    assert (features.W == again.W).all()
    assert (features.b == again.b).all()
    assert (features.W != RandomFeatures.draw(30, 400, seed=6).W).any()
    assert -1 <= features.W.min() < -0.99 < 0.99 < features.W.max() <= 1
    assert features.W.mean() == pytest.approx(0, abs=0.02)
    assert np.isfinite(features(np.full((2, 30), 1e6))).all()


def test_unknown_activation_gets_its_sentence():
    with pytest.raises(
        InputError, match="activation 'step' is not known: choose one of sigmoid, tanh, relu, sine"
    ):
        RandomFeatures.draw(2, 3, seed=0, activation="step")


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


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 15), min_size=1, max_size=5), st.integers(1, 10), st.integers(1, 3))
def test_normal_equations_add_up_and_survive_packing(sizes, B, M):
    H, Y = shares(sizes, B, M)
    parts = [NormalEquations.of_rows(np.hstack([h, y]), (B, M)) for h, y in zip(H, Y, strict=True)]
    sent = [NormalEquations.unpack(part.pack(), (B, M)) for part in parts]
    together = sent[0].plus(sent[1:])
    np.testing.assert_allclose(
        together.ridge(0.5), closed_form(np.vstack(H), np.vstack(Y), 0.5), atol=1e-8
    )
    for part, n in zip(parts, sizes, strict=True):
        numbers = sum(array.size for array in part.pack().values())
        assert numbers <= min(n * (B + M), B * (B + 1) // 2 + B * M)


def test_penalties_are_their_proximal_formulas():
    v = np.array([-3.0, -0.5, 0.0, 0.2, 4.0])
    np.testing.assert_allclose(Ridge(2.0).prox(v, 0.25), v / 1.5)
    np.testing.assert_allclose(Lasso(2.0).prox(v, 0.25), [-2.5, 0, 0, 0, 3.5])
    grid = np.linspace(-5, 5, 100_001)
    for penalty, g in ((Ridge(2.0), grid**2), (Lasso(2.0), 2 * np.abs(grid))):
        for value in v:
            best = grid[np.argmin(g + (grid - value) ** 2 / 0.5)]
            assert penalty.prox(np.array([value]), 0.25)[0] == pytest.approx(best, abs=2e-4)


def test_dependent_features_without_penalty_get_their_sentence():
    H = np.random.default_rng(0).standard_normal((50, 4))
    H = np.hstack([H, H[:, :1]])
    with pytest.raises(
        DataError, match="linearly dependent, so that alpha=0 leaves the coefficients undetermined"
    ):
        solve_ridge(H.T @ H, H.T @ H[:, :1], 0.0)
