"""What every hosted agent predicts: the first line is `predict`, and scores are those of
the lines.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, r2_score

from peerlearn import (
    AnchorLapClassifier,
    ESNRegressor,
    LapKRRClassifier,
    RVFLClassifier,
    RVFLRegressor,
    S3VMClassifier,
    SimulatedNetwork,
    VerticalRVFLClassifier,
    VerticalRVFLRegressor,
    data,
    graphs,
)

AGENTS = 4
IRIS = data.load("iris")
X, Y = IRIS.X[::2], IRIS.y[::2]
TWO = (Y == 0).astype(int)
NETWORK = SimulatedNetwork(graphs.ring(AGENTS))
OURS = {"network": NETWORK, "random_state": 0}
CLASSIFIERS = {
    "rvfl": (RVFLClassifier(10, solver="local", **OURS), Y),
    "rvfl, two classes": (RVFLClassifier(10, solver="local", **OURS), TWO),
    "vertical": (VerticalRVFLClassifier(10, solver="local", **OURS), Y),
    "vertical, together": (VerticalRVFLClassifier(10, **OURS), Y),
    "s3vm": (S3VMClassifier(**OURS), TWO),
    "anchors": (AnchorLapClassifier(**OURS), Y),
    "lapkrr": (LapKRRClassifier(distances="local", **OURS), Y),
    "lapkrr, together": (LapKRRClassifier(**OURS), Y),
}
REGRESSORS = {
    "rvfl": RVFLRegressor(10, solver="local", **OURS),
    "vertical": VerticalRVFLRegressor(10, solver="local", **OURS),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name):
    model, y = CLASSIFIERS[name]
    said = model.fit(X, y).agent_predictions(X)
    assert said.shape == (AGENTS, len(y))
    np.testing.assert_array_equal(said[0], model.predict(X))
    np.testing.assert_allclose(model.agent_scores(X, y), [accuracy_score(y, own) for own in said])


@pytest.mark.parametrize("name", ["rvfl", "vertical", "lapkrr"])
def test_agents_alone_say_different_things(name):
    model, y = CLASSIFIERS[name]
    said = model.fit(X, y).agent_predictions(X)
    assert any((own != said[0]).any() for own in said[1:])


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name, outputs):
    model, y = REGRESSORS[name], X[:, 0] if outputs == 1 else X[:, :2]
    said = model.fit(X, y).agent_predictions(X)
    assert said.shape == (AGENTS, *y.shape)
    np.testing.assert_allclose(said[0], model.predict(X), atol=1e-12)
    np.testing.assert_allclose(model.agent_scores(X, y), [r2_score(y, own) for own in said])


def test_each_line_is_of_one_agents_coefficients():
    model = RVFLRegressor(10, solver="local", fit_intercept=False, **OURS).fit(X, X[:, 0])
    H = model.features_(X)
    np.testing.assert_allclose(
        model.agent_predictions(X), np.stack([(H @ b)[:, 0] for b in model.coefficients_])
    )


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("feedback", [0.0, 0.3])
def test_echo_state_networks(outputs, feedback):
    x = np.random.default_rng(0).uniform(-1, 1, (2, 60, 1))
    d = np.concatenate([np.roll(x, 1, axis=1), x**2], axis=2)[:, :, :outputs]
    d = d[:, :, 0] if outputs == 1 else d
    model = ESNRegressor(20, washout=10, solver="local", feedback_scaling=feedback, **OURS)
    model.fit([(one, two) for one, two in zip(list(x) * 2, list(d) * 2, strict=True)])
    known = None if feedback == 0 else [one[:10] for one in d]
    first, second = model.agent_predictions(list(x), known)
    assert first.shape == (AGENTS, *d[0].shape)
    for own, said in zip(model.predict(list(x), known), (first, second), strict=True):
        np.testing.assert_allclose(said[0], own, atol=1e-12)
    alone = model.agent_predictions(x[1], None if known is None else known[1])
    np.testing.assert_allclose(alone, second, atol=1e-12)
    errors = (
        np.concatenate([first, second], axis=1).reshape(AGENTS, 2, 60, -1)[:, :, 10:]
        - d.reshape(2, 60, -1)[:, 10:]
    )
    centred = (late := d.reshape(2, 60, -1)[:, 10:].reshape(100, -1)) - late.mean(axis=0)
    expected = np.sqrt(np.sum(errors**2, axis=(1, 2, 3)) / np.sum(centred**2))
    np.testing.assert_allclose(model.agent_nrmse(list(x), list(d)), expected)
