"""Scales over a network are those of scikit-learn's scalers on the pooled rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from peerlearn import NetworkScaler, SimulatedNetwork, graphs

RIVALS = {"standard": StandardScaler(), "robust": RobustScaler(), "range": MinMaxScaler()}


@pytest.mark.parametrize("method", RIVALS)
@pytest.mark.parametrize("mean", [0.0, 1e6])
def test_scales_are_those_of_scikit_learn(graph, method, mean):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5)) * [1, 1e-3, 1e6, 1, 1] + mean
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 3] = 7.0  # constant
    scaler = NetworkScaler(method, accuracy=0, network=SimulatedNetwork(graph)).fit(X)
    wanted = RIVALS[method].fit(X).transform(X)
    assert np.allclose(scaler.transform(X), wanted, rtol=1e-6, atol=1e-6, equal_nan=True)
    assert (scaler.transform(X)[:, 3] == 0).all()


def test_the_range_is_not_sent_by_anybody():
    """At the default accuracy the largest value is known to six digits, and no more."""
    X = np.array([[0.1], [np.pi], [2.0], [3.0]])
    scaler = NetworkScaler("range", network=SimulatedNetwork(graphs.ring(4)))
    scaler.fit([(X[[k]], None) for k in range(4)])
    largest = float(scaler.center_[0] + scaler.scale_[0])
    assert largest == pytest.approx(np.pi, rel=2e-6)
    assert largest != np.pi
