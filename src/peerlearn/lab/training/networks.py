"""The network of a run: its graph, drawn from the run's seed or given, and its weights."""

from __future__ import annotations

from functools import lru_cache
from inspect import signature
from typing import Any

import networkx as nx

from peerlearn import graphs
from peerlearn import weights as mixing
from peerlearn.lab.description.comparison import Net
from peerlearn.lab.description.memo import Asked, key_of
from peerlearn.lab.description.trial import Trial
from peerlearn.network import SimulatedNetwork


def network_of(trial: Trial) -> SimulatedNetwork | None:
    """Return the network of a run, its graph drawn from the run's seed; None: centralised."""
    if trial.network is None:
        return None
    net = trial.network
    seed = trial.seed("graph")
    graph = graph_of(net, seed)
    weights = _fastest(Asked(key_of(net, seed), graph)) if net.weights == "fastest" else net.weights
    return SimulatedNetwork(graph, weights, secrecy=net.secrecy, colluders=net.colluders or 1)


@lru_cache(maxsize=32)
def _fastest(asked: Asked[nx.Graph]) -> Any:
    """Compute the fastest weights once for all models of a repetition: it takes minutes."""
    return mixing.fastest(asked.about)


def graph_of(net: Net, seed: int) -> nx.Graph:
    """Return the fixed graph, or one of its kind."""
    if net.fixed is not None:
        return net.fixed
    generator = graphs.GENERATORS[net.graph]
    given = {
        key: value
        for key, value in (("n", net.agents), ("seed", seed))
        if key in signature(generator).parameters
    }
    return generator(**(given | dict(net.parameters)))
