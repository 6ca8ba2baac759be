"""Messages that get lost in a simulated network."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import Faults, SimulatedNetwork, graphs
from peerlearn.errors import NetworkError
from tests.support.networks import random_rows


class TestFaults:
    def test_lost_links_keep_the_exact_mean_and_still_agree(self, graph):
        network = SimulatedNetwork(graph, faults=Faults(loss=0.3, seed=1))
        x = random_rows(network, 4)
        mean, spread = x.mean(axis=0), np.linalg.norm(x - x.mean(axis=0))
        for _ in range(400):
            x = network.mix(x)
            np.testing.assert_allclose(x.mean(axis=0), mean, atol=1e-12)
        assert np.linalg.norm(x - mean) < 1e-2 * spread
        assert (
            0.4 < network.ledger.lost / network.ledger.messages < 0.6
        )  # 1 - 0.7^2 of the links are down

    def test_are_reproducible(self):
        def lossy(seed):
            network = SimulatedNetwork(graphs.ring(6), faults=Faults(0.5, seed=seed))
            return network.mix(network.mix(random_rows(network, 2)))

        np.testing.assert_array_equal(lossy(3), lossy(3))
        assert not np.array_equal(lossy(3), lossy(4))

    def test_matrix_of_a_round_is_symmetric_with_unit_rows(self, graph):
        network = SimulatedNetwork(graph, faults=Faults(0.4, seed=2))
        round_matrix = network.mix(np.eye(network.size))
        np.testing.assert_allclose(round_matrix, round_matrix.T, atol=1e-15)
        np.testing.assert_allclose(round_matrix.sum(axis=1), 1, atol=1e-12)
        assert (round_matrix == 0).sum() > (network.weights.toarray() == 0).sum()

    def test_mean_square_contraction_is_that_of_the_average_squared_matrix(self):
        graph, faults = graphs.ring(6), Faults(0.3, seed=0)
        network = SimulatedNetwork(graph, faults=faults)
        claimed = network.contraction
        squares = np.zeros((6, 6))
        for _ in range(20_000):
            round_matrix = network.mix(np.eye(6))
            squares += round_matrix @ round_matrix
        measured = np.sqrt(np.linalg.eigvalsh(squares / 20_000 - 1 / 6)[-1])
        assert claimed == pytest.approx(measured, abs=2e-3)

    def test_no_loss_is_no_fault(self):
        network = SimulatedNetwork(graphs.ring(5), faults=Faults(0.0))
        assert network.reliable
        x = random_rows(network, 2)
        np.testing.assert_array_equal(network.mix(x), SimulatedNetwork(graphs.ring(5)).mix(x))

    def test_what_needs_every_message_says_so(self):
        network = SimulatedNetwork(graphs.ring(5), faults=Faults(0.1))
        with pytest.raises(NetworkError, match="a tree needs every message"):
            network.pass_on(np.ones((5, 1)), np.array([1]), np.array([0]), add=True)

    def test_exchange_loses_both_directions_of_a_dead_link(self):
        network = SimulatedNetwork(graphs.complete(6), faults=Faults(0.4, seed=5))
        inbox = network.exchange([{"x": np.zeros(1)} for _ in range(6)])
        heard = {(sender, k) for k, box in enumerate(inbox) for sender in box}
        assert heard == {(j, k) for k, j in heard}
        assert 0 < len(heard) < 30
        assert network.ledger.lost == 30 - len(heard)
