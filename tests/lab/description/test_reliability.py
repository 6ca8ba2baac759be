"""Reliability of probabilities: curves of runs, and of several runs together."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from peerlearn.lab.description.metrics import ClassProbabilities
from peerlearn.lab.description.reliability import (
    BINS,
    EVENTS,
    FEWEST,
    SHARES,
    merge_runs,
    reliability_curves,
)

RNG = np.random.default_rng(0)


def run_of(p, y):
    """The curves of a run of one agent, as its row has them."""
    found = reliability_curves(ClassProbabilities(p[None], y))
    at, shares = found[SHARES]
    assert at == found[EVENTS][0]
    return np.array(at), np.array(shares), np.array(found[EVENTS][1])


def two_classes(rows):
    p = RNG.random(rows)
    return np.column_stack([1 - p, p]), (RNG.random(rows) < p**2).astype(int)


def test_two_classes_as_scikit_learn():
    p, y = two_classes(500)
    at, shares, events = run_of(p, y)
    wanted, mean = calibration_curve(y, p[:, 1], n_bins=BINS)
    np.testing.assert_allclose(at, mean)
    np.testing.assert_allclose(shares, wanted)
    assert events.sum() == pytest.approx(500)


def test_more_classes_count_every_class():
    p = RNG.dirichlet(np.ones(4), 300)
    y = RNG.integers(0, 4, 300)
    at, shares, events = run_of(p, y)
    assert events.sum() == pytest.approx(1200)
    assert events @ shares == pytest.approx(300)
    assert events @ at == pytest.approx(300)


def test_agents_see_the_same_rows():
    p, y = two_classes(100)
    one = reliability_curves(ClassProbabilities(p[None], y))
    three = reliability_curves(ClassProbabilities(np.stack([p] * 3), y))
    np.testing.assert_allclose(three[EVENTS][1], one[EVENTS][1])
    np.testing.assert_allclose(three[SHARES][1], one[SHARES][1])


def test_runs_together():
    (p, y), (q, z) = two_classes(4000), two_classes(2000)
    at, shares, events = merge_runs([run_of(p, y), run_of(q, z)])
    whole = run_of(np.vstack([p, q]), np.concatenate([y, z]))
    np.testing.assert_allclose([at, shares, events], whole)


def test_bins_with_few_events_are_put_together():
    p, y = two_classes(90)
    at, shares, events = merge_runs([run_of(p, y)])
    assert len(at) in (3, 4)
    assert (events >= FEWEST).all()
    assert events @ shares == pytest.approx(y.sum())
    assert (np.diff(at) > 0).all()
    few = merge_runs([run_of(p[:5], y[:5])])
    assert few[2].tolist() == pytest.approx([5.0])


def test_certain_predictions():
    p = np.array([[0.0, 1.0], [1.0, 0.0]])
    at, shares, events = run_of(p, np.array([1, 0]))
    assert at.tolist() == shares.tolist() == [0.0, 1.0]
    assert events.tolist() == [1.0, 1.0]
