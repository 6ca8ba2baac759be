"""Quantiles by summed histograms are those of numpy on the pooled rows."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import Faults, SimulatedNetwork, graphs, quantiles
from peerlearn.errors import InputError

AT = [0.0, 0.1, 0.25, 0.5, 0.9, 1.0]


def shares_of(agents, seed=0):
    """Return rows with gaps, ties, both signs, and sizes from 1e-300 to 1e100."""
    rng = np.random.default_rng(seed)
    shares = []
    for rows in rng.integers(0, 30, agents):
        X = rng.standard_normal((rows, 6)) * [1, 1e-300, 1e100, 1, 1e6, 1]
        X[:, 3] = np.round(X[:, 3])
        X[:, 5] = -3.0
        X[rng.random(X.shape) < 0.2] = np.nan
        shares.append(X)
    return shares


def test_exact_quantiles_are_those_of_numpy(graph):
    shares = shares_of(len(graph))
    found = quantiles(SimulatedNetwork(graph), shares, AT, accuracy=0)
    wanted = np.nanquantile(np.vstack(shares), AT, axis=0)
    assert np.allclose(found, wanted, rtol=1e-14, atol=0)
    assert np.array_equal(found[[0, -1]], wanted[[0, -1]])


@pytest.mark.parametrize("accuracy", [0.1, 1e-3, 1e-6, 1e-12])
def test_the_error_is_no_larger_than_asked(accuracy):
    shares = shares_of(5)
    found = quantiles(SimulatedNetwork(graphs.ring(5)), shares, [0.0, 1.0], accuracy)
    wanted = np.nanquantile(np.vstack(shares), [0.0, 1.0], axis=0)
    assert np.all(np.abs(found - wanted) <= accuracy * np.abs(wanted))
    assert np.all(np.abs(found) <= np.abs(wanted))


def test_a_coarser_accuracy_sends_less():
    sent = []
    for accuracy in (0, 1e-6, 1e-3):
        network = SimulatedNetwork(graphs.ring(5))
        quantiles(network, shares_of(5), [0.5], accuracy)
        sent.append(network.ledger.bytes)
    assert sent[0] > sent[1] > sent[2]


def test_whole_numbers_are_exact_at_the_default_accuracy():
    X = np.arange(-500.0, 501.0)[:, None]
    network = SimulatedNetwork(graphs.ring(4))
    found = quantiles(network, np.array_split(X, 4), [0.0, 0.25, 0.5, 1.0])
    assert found.ravel().tolist() == [-500.0, -250.0, 0.0, 500.0]


def test_a_column_without_values_has_no_quantile():
    shares = [np.full((3, 1), np.nan), np.zeros((0, 1))]
    assert np.isnan(quantiles(SimulatedNetwork(graphs.ring(2)), shares, [0.5])).all()


def test_where_messages_get_lost_counts_are_right_as_well():
    network = SimulatedNetwork(graphs.ring(4), faults=Faults(loss=0.1, seed=0))
    shares = shares_of(4)
    found = quantiles(network, shares, [0.5], accuracy=0)
    assert np.allclose(found, np.nanquantile(np.vstack(shares), [0.5], axis=0), rtol=1e-14, atol=0)


def test_what_cannot_be_asked_for_is_refused():
    network = SimulatedNetwork(graphs.ring(2))
    shares = [np.ones((2, 1)), np.ones((2, 1))]
    with pytest.raises(InputError, match="numbers from 0 to 1"):
        quantiles(network, shares, [1.5])
    with pytest.raises(InputError, match="accuracy is -1"):
        quantiles(network, shares, [0.5], accuracy=-1)
