"""Agreement by flooding, with the same bits at every agent: the largest value, a vote, and what one agent has.

    x_k <- the largest of x_k and all x_j of the neighbors j        over the network, as long as the graph is wide

Where messages get lost, floods take more rounds (`Network.flood_rounds`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from peerlearn.arrays import Array, per_agent
from peerlearn.network.base import Network

__all__ = ["everyone", "maximum"]


def maximum(network: Network, x: ArrayLike) -> Array:
    """Return the largest of all agents' x, entry by entry, at every agent and with the same bits.

    >>> from peerlearn import SimulatedNetwork, graphs
    >>> maximum(SimulatedNetwork(graphs.ring(3)), [1.0, 5.0, 2.0])
    array([5., 5., 5.])
    """
    largest = per_agent(x, len(network.hosted)).copy()
    for _ in range(network.flood_rounds):
        largest = network.flood(largest)
    return largest


def everyone(network: Network, flags: Any) -> bool:
    """Return True at every agent if all agents say True, and False at every agent if one does not.

    >>> from peerlearn import SimulatedNetwork, graphs
    >>> everyone(SimulatedNetwork(graphs.ring(3)), [True, False, True])
    False
    """
    dissent = maximum(network, ~np.asarray(flags, dtype=bool).reshape(len(network.hosted), -1))
    return not dissent[0].any()  # after the flood the first hosted agent knows what all know


def broadcast_from_center(network: Network, x: ArrayLike) -> Array:
    """Return one agent's x at every agent, with the same bits: that of the agent in the middle of the graph.

    Whoever has it hands it on to all neighbors further out, once; where messages get lost, in every
    round.
    """
    rows, center = per_agent(x, len(network.hosted)).copy(), network.tree.root
    if network.reliable:
        for senders, receivers in network.rings:
            network.pass_on(rows, senders, receivers, add=False)
        return rows
    rows[np.array(network.hosted) != center] = np.finfo(np.float64).min  # -inf is never sent
    return maximum(network, rows)
