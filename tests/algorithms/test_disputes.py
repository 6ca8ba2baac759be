"""Codes of columns: all agents learn that they differ, and who does."""

from __future__ import annotations

import numpy as np

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms.disputes import codes_of_all, count_codes, name_agents


def test_codes_are_counted_and_those_of_all_agents_found(graph):
    network = SimulatedNetwork(graph)
    codes = np.random.default_rng(0).integers(0, 3, (network.size, 4))
    counts = count_codes(network, codes, 3)
    assert counts.tolist() == [[int(np.sum(own == code)) for code in range(3)] for own in codes.T]
    assert np.array_equal(codes_of_all(network, codes, [2, 0]), codes[:, [2, 0]])


def test_agents_are_named():
    network = SimulatedNetwork(graphs.ring(20))
    assert name_agents(network, [3]) == "agent 3"
    assert name_agents(network, [0, 2]) == "agents 0 and 2"
    assert name_agents(network, list(range(20))) == "agents 0, 1, 2, 3, 4, 5, 6 and 13 more"
