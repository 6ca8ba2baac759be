"""Losses of generalised linear models: derivatives by their formulas, and samples of rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from peerlearn import LogisticClassifier, SimulatedNetwork, graphs
from peerlearn.local.families import Logistic, Multinomial
from peerlearn.local.glm_losses import Design, GLMLosses, GLMRows

ROWS = 6000  # more than a block has


def table(means, classes, seed=0):
    """Return the rows of one agent, with weights and offsets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, 60)) + means
    y = np.eye(classes)[rng.integers(classes, size=ROWS)]
    if classes == 2:
        y = 2.0 * y[:, 1:] - 1.0
    return GLMRows(X, y, rng.uniform(0.5, 2.0, ROWS), 0.3 * rng.standard_normal(ROWS))


def standardised(rows, intercept):
    centre = rows.X.mean(axis=0) if intercept else np.zeros(rows.X.shape[1])
    scale = np.linspace(0.5, 2.0, rows.X.shape[1])
    Z = (rows.X - centre) / scale
    if intercept:
        Z = np.column_stack([np.ones(len(Z)), Z])
    return Design(intercept, centre, scale), Z


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("means", [0.3, 1e4], ids=["small means", "large means"])
def test_gradient_and_hessian_are_those_of_the_formulas(means, classes, intercept):
    rows = table(means if intercept else 0.3, classes)
    design, Z = standardised(rows, intercept)
    family = Logistic() if classes == 2 else Multinomial()
    losses = GLMLosses([rows], family, design, np.zeros(design.width))
    W = 0.1 * np.random.default_rng(1).standard_normal((design.width, classes - 1))
    f = np.column_stack([np.zeros(ROWS), Z @ W + rows.offsets[:, None]])
    p = softmax(f, axis=1)[:, 1:]
    truth = rows.y[:, 1:] if classes > 2 else (rows.y + 1) / 2
    gradient = Z.T @ (rows.weights[:, None] * (p - truth))
    bends = p[:, :, None] * (np.eye(classes - 1) - p[:, None, :])
    terms = (rows.weights, Z, bends, Z)
    hessian = np.einsum("i,ij,iab,ik->jakb", *terms, optimize=True)
    w = W.reshape(1, -1)
    np.testing.assert_allclose(losses.gradient(w)[0], gradient.ravel(), atol=1e-9)
    found = losses.hessian(w)[0]
    np.testing.assert_allclose(found, hessian.reshape(found.shape), atol=1e-9)
    np.testing.assert_array_equal(found, found.T)
    longest = np.linalg.norm(Z, axis=1).max()
    assert losses.self_concordance()[0] == pytest.approx(family.concordance * longest, rel=1e-9)


def test_a_sample_has_rare_rows_and_a_hessian_near_that_of_all_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000, 4))
    X[:, 3] = np.arange(len(X)) < 10  # a category of ten rows
    y = np.where(rng.random((len(X), 1)) < 0.5, 1.0, -1.0)
    rows = GLMRows(X, y, np.ones(len(X)), np.zeros(len(X)))
    design = Design(True, X.mean(axis=0), X.std(axis=0))
    losses = GLMLosses([rows], Logistic(), design, np.zeros(5), share=0.1)
    sample = losses.sample()
    assert sample.sample() is None
    (taken,) = sample._rows
    assert taken.X[:, 3].sum() == 10
    assert len(taken) < 0.2 * len(X)
    w = np.zeros((1, 5))
    ratios = np.linalg.eigvals(np.linalg.solve(losses.hessian(w)[0], sample.hessian(w)[0]))
    assert abs(ratios - 1).max() < 0.1


def test_samples_change_the_way_and_not_the_answer(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 3))
    X[:, 2] += 100.0
    y = rng.random(len(X)) < 1 / (1 + np.exp(-X @ [1.0, -2.0, 0.0]))
    network = SimulatedNetwork(graphs.ring(4))
    sampled = LogisticClassifier(network=network, random_state=0).fit(X, y)
    monkeypatch.setattr(GLMLosses, "sample", lambda self: None)
    exact = LogisticClassifier(network=network, random_state=0).fit(X, y)
    assert sampled.report_.residuals[1] != exact.report_.residuals[1]
    assert sampled.report_.bound <= 1e-8
    assert sampled.report_.iterations <= exact.report_.iterations + 1
    np.testing.assert_allclose(sampled.coefficients_, exact.coefficients_, rtol=1e-7)
