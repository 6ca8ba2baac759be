"""The factor of probabilities: the answer of the pooled rows, over any network."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from peerlearn import Averaging, SimulatedNetwork, graphs
from peerlearn.algorithms.calibration import LEAST, fit_scales
from peerlearn.algorithms.sums import sum_alike
from peerlearn.local.held_out import HeldOutScores, probabilities_of
from peerlearn.network.faults import Faults

RNG = np.random.default_rng(1)
CODES = RNG.integers(0, 2, 200)
SIGNS = np.where(CODES == 1, 1.0, -1.0)[:, None]
NOISY = SIGNS + 1.5 * RNG.standard_normal(SIGNS.shape)
PARTS = [slice(0, 0), slice(0, 7), slice(7, 150), slice(150, None)]


def alone(sums):
    return sums


def dealt(scores, outputs, weights=None):
    return [
        HeldOutScores(scores[own], outputs[own], None if weights is None else weights[own])
        for own in PARTS
    ]


def sums_over(network):
    return lambda x: sum_alike(network, x, Averaging(tolerance=1e-12))


def logistic_regression(scores, weights=None):
    """Return the slope by scikit-learn, from every row twice: once for each class."""
    w = np.ones(len(scores)) if weights is None else weights
    of_class = np.array([w[c == CODES].sum() for c in (0, 1)])[CODES]
    right = (of_class + 1) / (of_class + 2)
    model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-14, max_iter=10_000)
    X = np.vstack([scores, scores])
    y = np.concatenate([CODES, 1 - CODES])
    model.fit(X, y, np.concatenate([w * right, w * (1 - right)]))
    return model.coef_[0, 0]


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_as_scikit_learn_on_the_pooled_rows(weighted, unit):
    weights = RNG.uniform(0, 3, len(SIGNS)) if weighted else None
    network = SimulatedNetwork(graphs.ring(4))
    found = fit_scales(dealt(unit * NOISY, SIGNS, weights), sums_over(network))
    wanted = logistic_regression(NOISY, weights)
    np.testing.assert_allclose(found * unit, wanted, rtol=1e-8)
    assert len(set(found.tolist())) == 1


def test_few_sums_are_needed():
    calls = []

    def count(sums):
        calls.append(sums.shape)
        return sums

    fit_scales([HeldOutScores(NOISY, SIGNS)], count)
    assert len(calls) <= 9
    assert all(width <= 3 for _, width in calls)


def test_messages_that_get_lost():
    network = SimulatedNetwork(graphs.ring(4), faults=Faults(loss=0.1))
    found = fit_scales(dealt(NOISY, SIGNS), sums_over(network))
    np.testing.assert_allclose(found, logistic_regression(NOISY), rtol=1e-6)


def test_scores_that_are_always_right_have_a_finite_factor():
    scale = fit_scales([HeldOutScores(SIGNS, SIGNS)], alone)[0]
    right = probabilities_of(np.ones((1, 1)), scale)[0, 1]
    # Platt's targets, (N + 1) / (N + 2) for the N rows of a class.
    few, many = sorted(np.bincount(CODES))
    assert (few + 1) / (few + 2) <= right <= (many + 1) / (many + 2)


def test_scores_that_are_wrong_keep_their_order():
    scale = fit_scales([HeldOutScores(-NOISY, SIGNS)], alone)[0]
    size = np.sqrt(np.mean(NOISY**2 / 2))
    np.testing.assert_allclose(scale, LEAST / size)


def test_agents_that_do_not_work_together():
    parts = dealt(NOISY, SIGNS)
    found = fit_scales(parts, alone)
    assert np.isfinite(found).all()
    for own, rows in zip(found[2:], parts[2:], strict=True):
        np.testing.assert_allclose(own, fit_scales([rows], alone)[0], rtol=1e-12)


def test_scores_that_are_all_the_same():
    zeros = np.zeros((200, 3))
    found = fit_scales([HeldOutScores(zeros, np.eye(3)[CODES])], alone)
    np.testing.assert_allclose(probabilities_of(zeros[:1], found[0]), 1 / 3)
