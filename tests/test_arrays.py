"""Threads over hosted agents: same bits, same errors, same settings of numpy."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from peerlearn import LogisticClassifier, RVFLRegressor, SimulatedNetwork, arrays, graphs


@pytest.fixture
def threads(monkeypatch):
    """Make all work large enough for threads."""
    monkeypatch.setattr(arrays, "MUCH", 0)
    monkeypatch.setattr(arrays, "_cores", lambda: 2)


def test_agents_are_computed_by_several_threads_and_in_order(threads):
    def compute(k):
        time.sleep(0.01 * (3 - k))
        return k, threading.current_thread().name

    found = arrays.map_agents(compute, 4, 1)
    assert [k for k, _ in found] == [0, 1, 2, 3]
    assert threading.main_thread().name not in {name for _, name in found}


@pytest.mark.parametrize(("agents", "numbers"), [(1, 2**40), (4, 10)])
def test_little_work_stays_in_this_thread(agents, numbers):
    here = threading.current_thread()
    used = arrays.map_agents(lambda k: threading.current_thread(), agents, numbers)
    assert used == [here] * agents


def test_errors_and_settings_of_numpy_are_those_of_the_caller(threads):
    def overflow(k):
        return np.exp(np.array([1e4]))

    with np.errstate(over="ignore"):
        assert np.isinf(arrays.map_agents(overflow, 2, 1)).all()
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        arrays.map_agents(overflow, 2, 1)


@pytest.mark.parametrize("kind", [LogisticClassifier, RVFLRegressor])
def test_threads_change_no_bit_of_a_model(kind, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 4))
    y = (X[:, 0] + rng.standard_normal(900) > 0).astype(int)

    def fitted():
        model = kind(network=SimulatedNetwork(graphs.ring(3)), random_state=0)
        return model.fit(X, y).coefficients_

    plain = fitted()
    monkeypatch.setattr(arrays, "MUCH", 0)
    monkeypatch.setattr(arrays, "_cores", lambda: 3)
    assert np.array_equal(fitted(), plain)
