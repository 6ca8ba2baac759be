"""Other packages that average over agents, each in its own terms: made ready here, run by the
benchmark.

Each takes the graph, one row of X per agent and the number of rounds, and returns what is to be
timed. Metropolis weights are the default of both. A package that is not installed raises
ImportError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

from peerlearn.arrays import Array


def tvopt_average(graph: nx.Graph, X: Array, rounds: int) -> Callable[[], Array]:
    from tvopt.distributed_solvers import average_consensus
    from tvopt.networks import Network

    network = Network(nx.to_numpy_array(graph, nodelist=range(len(graph))))
    states = np.ascontiguousarray(X.T)  # its last axis is the agents
    return lambda: average_consensus(network, states, rounds).T


def decent_bench_average(graph: nx.Graph, X: Array, rounds: int) -> Callable[[], Array]:
    from decent_array import interoperability as iop
    from decent_bench.agents import Agent
    from decent_bench.algorithms.p2p import P2PAlgorithm
    from decent_bench.costs import ZeroCost
    from decent_bench.networks import P2PNetwork

    iop.set_backend("numpy")

    class Mixing(P2PAlgorithm):
        name = "mixing"

        def initialize(self, network: Any) -> None:
            for agent in network.agents():
                agent.initialize(x=iop.from_numpy(X[agent.index]))
            self.W = network.weights

        def step(self, network: Any, _: int) -> None:  # as in its own DGD, without the gradient
            for i in network.active_agents():
                network.broadcast(i, i.x)
            for i in network.active_agents():
                mixed = self.W[i, i] * i.x
                for j, x_j in i.messages().items():
                    mixed += self.W[i, j] * x_j
                i.x = mixed

    # Snapshots of every iteration would be charged to it otherwise.
    agents = [Agent(ZeroCost(X.shape[1:]), state_snapshot_period=rounds + 1) for _ in X]
    network = P2PNetwork(graph, agents)

    def run() -> Array:
        Mixing().run(network, rounds)
        return np.stack([iop.to_numpy(agent.x) for agent in network.agents()])

    return run
