"""Maxima, votes and broadcasts reach every agent."""

from __future__ import annotations

import numpy as np

from peerlearn import SimulatedNetwork, everyone, maximum
from peerlearn.algorithms.sums import broadcast_from_center
from tests.support.networks import random_rows as rows


def test_maximum_reaches_everybody_in_diameter_rounds(graph):
    network = SimulatedNetwork(graph)
    start = rows(network, 4)
    np.testing.assert_array_equal(
        maximum(network, start), np.broadcast_to(start.max(axis=0), start.shape)
    )
    assert network.ledger.rounds == network.diameter


def test_one_dissenter_anywhere_is_heard(graph):
    network = SimulatedNetwork(graph)
    assert everyone(network, np.ones(network.size, dtype=bool)) is True
    for k in range(network.size):
        flags = np.ones(network.size, dtype=bool)
        flags[k] = False
        assert everyone(network, flags) is False


def test_following_gives_the_same_bits_to_all(graph):
    network = SimulatedNetwork(graph)
    start = rows(network, 3)
    x = broadcast_from_center(network, start)
    assert (x == start[network.tree.root]).all()
    assert network.ledger.rounds == network.tree.height
    assert network.ledger.messages <= graph.number_of_edges()
