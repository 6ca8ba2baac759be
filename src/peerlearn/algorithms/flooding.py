"""Agreement by flooding: a maximum, a vote, and a broadcast, with the same bits at every agent.

    x_k <- the largest of x_k and all x_j of the neighbors j        over the network

repeated as often as the graph is wide, or more often where messages get lost
(`Network.flood_rounds`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from peerlearn.arrays import Array, per_agent
from peerlearn.network.base import Network

__all__ = ["everyone", "maximum"]


def maximum(network: Network, x: ArrayLike) -> Array:
    """Return the largest of all agents' x, entry by entry, at every agent and with the same bits.

    Parameters
    ----------
    network : Network
        The network of the agents.
    x : array-like
        One row (or number) for each agent hosted here.

    Returns
    -------
    ndarray
        The same shape as x.

    Examples
    --------
    >>> from peerlearn import SimulatedNetwork, graphs, maximum
    >>> maximum(SimulatedNetwork(graphs.ring(3)), [1.0, 5.0, 2.0])
    array([5., 5., 5.])
    """
    largest = per_agent(x, len(network.hosted)).copy()
    for _ in range(network.flood_rounds):
        largest = network.flood(largest)
    return largest


def everyone(network: Network, flags: ArrayLike) -> bool:
    """Return True at every agent if the flags of all agents are true, else False at every agent.

    Parameters
    ----------
    network : Network
        The network of the agents.
    flags : array-like of bool
        One flag, or one row of flags, for each agent hosted here.

    Returns
    -------
    bool
        The same at every agent.

    Examples
    --------
    >>> from peerlearn import SimulatedNetwork, everyone, graphs
    >>> everyone(SimulatedNetwork(graphs.ring(3)), [True, False, True])
    False
    """
    agree = np.asarray(flags, dtype=bool).reshape(len(network.hosted), -1)
    dissent = maximum(network, ~agree)
    return not dissent[0].any()  # after the flood the first hosted agent knows what all know


def broadcast_from_center(network: Network, x: ArrayLike) -> Array:
    """Return the x of the agent in the middle of the graph at every agent, with the same bits.

    Each agent that has it passes it on once, to all neighbors further out. Where messages get lost,
    it is passed on in every round.
    """
    rows = per_agent(x, len(network.hosted)).copy()
    center = network.tree.root
    if network.reliable:
        for senders, receivers in network.rings:
            network.pass_on(rows, senders, receivers, add=False)
        return rows
    rows[np.array(network.hosted) != center] = np.finfo(np.float64).min  # -inf is never sent
    return maximum(network, rows)
