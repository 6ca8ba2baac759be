"""Averages hold what they say: under loss, for tiny numbers, and for complex ones."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import Averaging, Faults, SimulatedNetwork, average, graphs, maximum, total
from peerlearn.algorithms.averaging import FAILURE
from peerlearn.arrays import norms
from peerlearn.errors import InputError

GRAPHS = [graphs.star(8), graphs.ring(6), graphs.erdos_renyi(10, 0.35, seed=0)]


def distances_under_loss(graph, loss, tolerance, seeds):
    """Return the relative distances from the true average, one per seed."""
    found = []
    for seed in seeds:
        network = SimulatedNetwork(graph, faults=Faults(loss, seed=seed))
        x = np.random.default_rng((seed, 5)).standard_normal((network.size, 3))
        mean = x.mean(axis=0)
        away = average(network, x, tolerance=tolerance) - mean
        found.append(np.linalg.norm(away) / np.linalg.norm(x - mean))
    return np.array(found)


@pytest.mark.parametrize("loss", [0.05, 0.1, 0.3])
def test_the_tolerance_holds_with_the_probability_stated(loss):
    """Without the reserve, 6-15 % of the averages on a star are not within tolerance."""
    distances = [distances_under_loss(graph, loss, 1e-3, range(200)) for graph in GRAPHS]
    exceptions = np.count_nonzero(np.concatenate(distances) > 1e-3)
    assert exceptions <= np.ceil(FAILURE * 600)


def test_the_probability_is_stated():
    lossy = SimulatedNetwork(graphs.ring(6), faults=Faults(0.1))
    sure = SimulatedNetwork(graphs.ring(6))
    averaging = Averaging("plain", 1e-6)
    assert averaging.failure_on(lossy) == FAILURE == 1e-4
    assert averaging.failure_on(sure) == 0
    n = averaging.rounds_on(lossy)
    assert (
        (lossy.contraction**n / 1e-6) ** 2 <= FAILURE < (lossy.contraction ** (n - 1) / 1e-6) ** 2
    )
    assert sure.contraction ** averaging.rounds_on(sure) > 1e-8  # no reserve where none is needed


@pytest.mark.parametrize("scale", [1e-170, 1e-200, 1e-300, 1e-100, 1e150])
@pytest.mark.parametrize("stopping", ["messages", "oracle", "bound"])
@pytest.mark.parametrize("method", ["plain", "chebyshev"])
def test_numbers_of_any_size_are_averaged(scale, stopping, method):
    x = scale * np.random.default_rng(0).standard_normal((10, 3))
    settings = {"method": method, "stopping": stopping, "tolerance": 1e-6}
    found = average(SimulatedNetwork(graphs.ring(10)), x, **settings)
    np.testing.assert_allclose(found / scale, np.tile((x / scale).mean(axis=0), (10, 1)), atol=1e-5)


def test_norms_of_tiny_numbers():
    x = np.array([[3e-170, 4e-170], [3.0, 4.0], [0.0, 0.0], [3e-320, 0.0]])
    np.testing.assert_allclose(norms(x), [5e-170, 5.0, 0.0, 3e-320], rtol=1e-3)


@pytest.mark.parametrize("method", ["tree", "plain", "chebyshev"])
def test_complex_numbers_are_pairs(method):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 2)) + 1j * rng.standard_normal((6, 2))
    network = SimulatedNetwork(graphs.ring(6))
    mean = average(network, x, method=method, tolerance=1e-9)
    np.testing.assert_allclose(mean, np.tile(x.mean(axis=0), (6, 1)), atol=1e-8)
    sums = total(network, list(x[:, 0]), method=method, tolerance=1e-9)
    np.testing.assert_allclose(sums, np.full(6, x[:, 0].sum()), atol=1e-7)
    with pytest.raises(InputError, match="x has complex numbers, and agents send real ones"):
        maximum(network, x)


def test_whole_numbers_are_averaged_as_numbers():
    network = SimulatedNetwork(graphs.ring(4))
    np.testing.assert_array_equal(average(network, np.array([1, 2, 3, 5])), [2.75] * 4)
    np.testing.assert_array_equal(total(network, np.array([1, 2, 3, 5])), [11] * 4)
