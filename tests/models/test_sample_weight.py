"""Weights of rows and classes: the same answer as scikit-learn's Ridge on all features."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge, RidgeClassifier

from peerlearn import RVFLClassifier, RVFLRegressor, SimulatedNetwork, data, graphs
from peerlearn.errors import DataError, InputError

X, y = load_diabetes(return_X_y=True)
W = np.random.default_rng(0).uniform(0, 3, len(y)) * (np.arange(len(y)) % 7 > 0)


def net(agents=5):
    return SimulatedNetwork(graphs.ring(agents))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("hidden", [20, 200], ids=["many rows", "few rows"])
@pytest.mark.parametrize("agents", [0, 5])
def test_as_scikit_learn(agents, hidden, intercept):
    network = net(agents) if agents else None
    model = RVFLRegressor(
        hidden,
        solver="gram",
        fit_intercept=intercept,
        network=network,
        random_state=0,
        alpha=1.0,
        activation="sigmoid",
    )
    model.fit(X, y, sample_weight=W)
    H = model.features_(X)
    rival = Ridge(1.0, fit_intercept=intercept, solver="cholesky").fit(H, y, sample_weight=W)
    np.testing.assert_allclose(model.predict(X), rival.predict(H), rtol=1e-10)
    shares = [(X[k::5], y[k::5]) for k in range(5)]
    if agents:
        model.fit(shares, sample_weight=[W[k::5] for k in range(5)])
        np.testing.assert_allclose(model.predict(X), rival.predict(H), rtol=1e-10)


@pytest.mark.parametrize("name", ["iris", "breast-cancer"])
@pytest.mark.parametrize("weights", [False, True])
def test_balanced_classes(name, weights):
    table = data.load(name)
    keep = (table.y != table.y[0]) | (np.arange(len(table.y)) % 5 == 0)  # rare
    inputs = (table.X - table.X.mean(axis=0))[keep] / table.X.std(axis=0)
    labels = table.y[keep]
    w = np.linspace(0.5, 2, len(labels)) if weights else None
    model = RVFLClassifier(
        30, class_weight="balanced", network=net(), random_state=0, alpha=1.0, activation="sigmoid"
    )
    model.fit(inputs, labels, w)
    H = model.features_(inputs)
    rival = RidgeClassifier(class_weight="balanced", solver="cholesky").fit(H, labels, w)
    decided = rival.decision_function(H)
    if len(model.classes_) > 2:
        decided = (decided + 1) / 2  # targets of -1 and 1 there, 0 and 1 here
    np.testing.assert_allclose(model.decision_function(inputs), decided, atol=1e-9)


def test_weights_by_label():
    table = data.load("iris")
    weights = {0: 0.5, 2: 3.0}
    model = RVFLClassifier(
        20, class_weight=weights, network=net(), random_state=0, alpha=1.0, activation="sigmoid"
    )
    model.fit(table.X, table.y)
    w = np.choose(table.y, [0.5, 1.0, 3.0])
    same = RVFLClassifier(20, network=net(), random_state=0, alpha=1.0, activation="sigmoid").fit(
        table.X, table.y, w
    )
    np.testing.assert_allclose(model.coefficients_, same.coefficients_, rtol=1e-12)


def test_agents_with_one_class_each():
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((90, 3))
    labels = np.repeat([0, 1, 2], 30)
    shares = [(inputs[labels == k], labels[labels == k]) for k in range(3)]
    model = RVFLClassifier(
        10, class_weight="balanced", network=net(3), random_state=0, alpha=1.0, activation="sigmoid"
    ).fit(shares)
    plain = RVFLClassifier(10, network=net(3), random_state=0, alpha=1.0, activation="sigmoid").fit(
        shares
    )  # balanced already
    np.testing.assert_allclose(model.coefficients_, plain.coefficients_, atol=1e-12)


def test_what_is_refused():
    model = RVFLRegressor(5, network=net(), random_state=0, alpha=1.0, activation="sigmoid")
    for weights, why in [
        (W[:-1], "there are 442 rows"),
        (-W - 1, "negative"),
        (np.full(len(y), np.nan), "NaN"),
        (["a"] * len(y), "must hold numbers"),
    ]:
        with pytest.raises(DataError, match=why):
            model.fit(X, y, weights)
    with pytest.raises(DataError, match="a list of 5 arrays"):
        model.fit([(X[k::5], y[k::5]) for k in range(5)], sample_weight=W)
    with pytest.raises(DataError, match="sample_weight is zero for all rows"):
        model.fit(X, y, 0 * W)
    with pytest.raises(InputError, match="class_weight is 'even': give 'balanced', None, or a"):
        RVFLClassifier(class_weight="even", alpha=1.0, activation="sigmoid").fit(X, y > 100)
    with pytest.raises(InputError, match="class_weight is set, and streams take no weights"):
        RVFLClassifier(class_weight="balanced", alpha=1.0, activation="sigmoid").partial_fit(
            X, y > 100
        )
