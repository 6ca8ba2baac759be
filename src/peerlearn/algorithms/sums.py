"""Sums, maxima and votes over the network: the one place where agents' numbers are combined.

    s_k = x_k + sum of s_j over the children j of k        up a spanning tree, deepest agents first
    s_k <- s of the root                                   down the tree

sum_to_root: the result is at the root. One row per link is sent. A parent sees the sum of each
child's subtree.

sum_everywhere: the result is at all agents, by tree or by gossip. A tree sends two rows per link,
and shows what sum_to_root shows, and the total to all. Gossip takes rounds of `mix`, from which an
agent can compute most values of others.

sum_alike: the same, with the same bits at all agents. Gossip is followed by one broadcast.

merge_to_root: the result is at the root. What is sent is what the parts pack into. A parent sees
the merged parts of each child's subtree.

broadcast_from_root: all agents get the root's row. One row per link is sent.

Over a tree rows are float64, int64 or uint64. Sums of float64 have the rounding of as many
additions as the tree is high; integers are added modulo 2^64. By gossip rows are float64, and sums
have the tolerance of the averaging. A merge is associative but not a sum: R factors are stacked
and factorised again.

maximum, everyone, broadcast_from_center: by flooding, with the same bits at every agent,

    x_k <- the largest of x_k and all x_j of the neighbors j        over the network

repeated as often as the graph is wide, or more often where messages get lost
(`Network.flood_rounds`).

Under secrecy sums of numbers are secret totals (secret_sums.py), in a block that has a session:
the root learns those of sum_to_root, and all agents those of sum_everywhere and sum_alike.
Everything else is refused by the network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from peerlearn.arrays import Addends, Array, addends_per_agent, per_agent
from peerlearn.errors import InputError
from peerlearn.network.base import Message, Network

__all__ = ["everyone", "maximum"]


class Averager(Protocol):
    """What sums need of `averaging.Averaging`, which is built on them."""

    def exact_on(self, network: Network) -> bool:
        """Return whether sums are made over a tree here."""
        ...

    def check_rounds(self, network: Network) -> None:
        """Raise NetworkError where a tree takes more rounds than are allowed."""
        ...

    def average(self, network: Network, x: Any) -> Array:
        """Return the average of all agents' rows at every agent."""
        ...


def sum_to_root(network: Network, x: Any, what: str = "sums") -> Any:
    """Return sums up the tree: the root's row is the sum of all rows.

    The rows of other agents are the sums of their subtrees; under secrecy they are zeros.

    what: the name of the sum in a report about secrecy.
    """
    if network.hides_sums:
        return network.sessions.current().sum_rows(what, np.asarray(x, dtype=np.float64))
    sums = addends_per_agent(x, len(network.hosted)).copy()
    tree = network.tree
    for agents in reversed(tree.levels):
        network.pass_on(sums, agents, tree.parent[agents], add=True)
    return sums


def broadcast_from_root(network: Network, x: Any) -> Any:
    """Return the root's row at every agent."""
    if network.hides_sums:
        return network.sessions.current().broadcast(np.asarray(x, dtype=np.float64))
    return _send_down(network, addends_per_agent(x, len(network.hosted)).copy())


def sum_everywhere(network: Network, x: Any, averaging: Averager, what: str = "sums") -> Any:
    """Return the sum of all agents' rows at every agent.

    Over a tree the result has the type of x. By gossip and under secrecy it is float64, and sums
    modulo 2^64 are refused.

    what: the name of the sum in a report about secrecy.
    """
    if averaging.exact_on(network):
        averaging.check_rounds(network)
        if network.hides_sums:
            return network.sessions.current().total(what, np.asarray(x, dtype=np.float64))
        return _send_down(network, sum_to_root(network, x))
    if getattr(x, "dtype", None) == np.uint64:
        raise InputError(
            "sums modulo 2^64 are made over a tree only: use method='tree', "
            "on a network that loses no message"
        )
    return network.size * averaging.average(network, x)


def sum_alike(network: Network, x: Array, averaging: Averager, what: str = "sums") -> Array:
    """Return the sum of all agents' rows, with the same bits at every agent.

    what: the name of the sum in a report about secrecy.
    """
    sums = cast(Array, sum_everywhere(network, x, averaging, what))
    return sums if averaging.exact_on(network) else broadcast_from_center(network, sums)


class Mergeable(Protocol):
    """Partial knowledge of some rows, which can be merged with that of other agents."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to send."""
        ...

    def pack(self) -> dict[str, Any]:
        """Return named arrays to send."""
        ...

    def plus(self, others: Sequence[Self]) -> Self:
        """Return the merger of this part and the others."""
        ...


Part = TypeVar("Part", bound=Mergeable)


def merge_to_root(
    network: Network, parts: Sequence[Part], unpack: Callable[[Message, int], Part]
) -> list[Part]:
    """Return the hosted agents' parts, each merged with those of its subtree: the root's has all.

    unpack: returns the part of a message and its sender's number, or raises WireError.
    """
    tree = network.tree
    merged = list(parts)
    parents = [[int(tree.parent[agent])] for agent in network.hosted]
    for level in range(tree.height, 0, -1):
        outbox: list[dict[str, Any]] = []
        for agent, own in zip(network.hosted, merged, strict=True):
            sends = tree.depth[agent] == level and not own.empty
            outbox.append(own.pack() if sends else {})
        for k, received in enumerate(network.exchange(outbox, parents)):
            if received:
                children = [unpack(received[child], child) for child in sorted(received)]
                merged[k] = merged[k].plus(children)
    return merged


def _send_down(network: Network, rows: Addends) -> Addends:
    """Replace all rows by the root's."""
    for agents in network.tree.levels:
        network.pass_on(rows, network.tree.parent[agents], agents, add=False)
    return rows


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
