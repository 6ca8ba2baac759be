"""Scores of rows held out: the loss, its derivatives, and probabilities."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax, softmax

from peerlearn.local.held_out import HeldOutScores, probabilities_of

RNG = np.random.default_rng(0)


def make_rows(classes, rows=40, weighted=False):
    codes = np.arange(rows) % classes
    outputs = np.eye(classes)[codes]
    if classes == 2:
        outputs = np.where(codes == 1, 1.0, -1.0)[:, None]
    scores = outputs + RNG.standard_normal(outputs.shape)
    weights = RNG.uniform(0, 3, rows) if weighted else None
    return HeldOutScores(scores, outputs, weights), codes


def loss(rows, codes, scale, weights):
    """Return the loss as its formula has it."""
    F = np.hstack([0 * rows.scores, rows.scores]) if rows.classes == 2 else rows.scores
    target = ((weights + 1) / (weights + 2))[codes]
    T = np.tile(((1 - target) / (rows.classes - 1))[:, None], (1, rows.classes))
    T[np.arange(len(T)), codes] = target
    w = np.ones(len(F)) if rows.weights is None else rows.weights
    return -w @ (T * log_softmax(scale * F, axis=1)).sum(axis=1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_derivatives_are_those_of_the_loss(classes, weighted):
    rows, codes = make_rows(classes, weighted=weighted)
    weights = rows.totals()[:-1]
    h = 1e-4
    for scale in (0.1, 1.0, 3.0):
        slope, bend = rows.slope_and_bend(scale, weights)
        below, at, above = (loss(rows, codes, scale + d, weights) for d in (-h, 0.0, h))
        np.testing.assert_allclose(slope, (above - below) / (2 * h), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(bend, (above - 2 * at + below) / h**2, rtol=1e-4)


def test_totals_are_weights_of_classes_and_squares():
    rows, codes = make_rows(3, weighted=True)
    totals = rows.totals()
    np.testing.assert_allclose(totals[:3], [rows.weights[codes == c].sum() for c in range(3)])
    about = rows.scores - rows.scores.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(totals[3], rows.weights @ (about**2).sum(axis=1))


def test_probabilities():
    f = RNG.standard_normal((9, 1))
    p = probabilities_of(f, 3.0)
    np.testing.assert_allclose(p[:, 1], expit(3.0 * f[:, 0]))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    F = RNG.standard_normal((9, 4))
    np.testing.assert_allclose(probabilities_of(F, 3.0), softmax(3.0 * F, axis=1))


def test_scores_of_any_size_have_probabilities():
    p = probabilities_of(np.array([[1e12], [-1e12], [0.0]]), 1e3)
    np.testing.assert_array_equal(p, [[0, 1], [1, 0], [0.5, 0.5]])
