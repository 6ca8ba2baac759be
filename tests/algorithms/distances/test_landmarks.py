"""Distances by landmarks."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import Faults, SimulatedNetwork, graphs
from peerlearn.algorithms.distances import Landmarks
from peerlearn.errors import DataError, NetworkError, WireError
from peerlearn.local.squared_distances import squared_distances
from tests.support.distance_shares import GRAPHS, away, by_differences, tables


class TestLandmarks:
    @pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
    @pytest.mark.parametrize(
        "options",
        [{}, {"d": 1}, {"d": 60}, {"rows": (1,)}, {"offset": 1e6}, {"rows": (0, 5, 3)}],
        ids=str,
    )
    def test_are_exact(self, graph, options):
        X = tables(**options)
        known = Landmarks().share(SimulatedNetwork(graph), X, seed=4)
        assert known.mask is None
        assert all(D is known.D[0] for D in known.D)
        assert away(known.D[0], by_differences(np.vstack(X))) < 1e-13

    def test_also_of_an_agent_far_out_and_of_one_agent(self):
        X = tables()
        X[2] += 1e3
        far = Landmarks().share(SimulatedNetwork(GRAPHS["star"]), X, seed=0)
        assert away(far.D[0], by_differences(np.vstack(X))) < 1e-13
        alone = Landmarks().share(SimulatedNetwork(graphs.complete(1)), X[1:2], seed=0)
        assert away(alone.D[0], by_differences(X[1])) < 1e-13

    def test_rows_that_are_all_the_same(self):
        known = Landmarks().share(
            SimulatedNetwork(GRAPHS["ring"]), [np.full((2, 3), 7.3)] * 5, seed=0
        )
        assert known.D[0].max() < 1e-25

    def test_what_travels(self):
        """N (d + 1) distances up and down the tree, and little more."""
        network = SimulatedNetwork(GRAPHS["star"])
        Landmarks().share(network, tables(rows=(30,)), seed=0)
        assert network.ledger.bytes < 1.3 * (4 * 30 + 4 * 150) * 5 * 8

    def test_rows_too_far_to_square(self):
        with pytest.raises(
            DataError, match="the squares overflow: scale the columns at all agents"
        ):
            Landmarks().share(
                SimulatedNetwork(GRAPHS["ring"]), [1e200 * X for X in tables()], seed=0
            )

    @pytest.mark.parametrize("wrong", [-1.0, 1e9])
    def test_distances_that_no_row_can_have(self, wrong, monkeypatch):
        def lying(X, points):
            t = squared_distances(X, points)
            t[-1, 2] = wrong if len(X) == 9 else t[-1, 2]  # agent 3 has nine rows
            return t

        monkeypatch.setattr("peerlearn.algorithms.distances.landmarks.squared_distances", lying)
        with pytest.raises(WireError, match="agent 3"):
            Landmarks().share(SimulatedNetwork(GRAPHS["ring"]), tables(), seed=0)

    def test_messages_that_get_lost(self):
        with pytest.raises(NetworkError, match="loses some"):
            Landmarks().share(
                SimulatedNetwork(GRAPHS["ring"], faults=Faults(0.1, seed=0)), tables(), seed=0
            )
