"""Sums over the network: the one place where numbers of several agents are added.

    s_k = x_k + sum of s_j over the children j of k        up a spanning tree, the deepest agents first
    s_k <- s of the root                                   down the tree

    function            who has the result             sent                   who sees what
    sum_to_root         the agent at the root          one row per link       a parent: the sum of each child's subtree
    sum_everywhere      all, by tree or by gossip      two rows per link, or  the same, and all the total; by gossip
                                                       rounds of `mix`        agents compute most values of others
    sum_alike           all, with the same bits        the same, and by       as sum_everywhere
                                                       gossip one broadcast
    merge_to_root       the agent at the root          what parts pack into   a parent: the merged parts of a subtree
    broadcast_from_root all                            one row per link       all: the root's row

Over a tree rows are float64, int64 or uint64: float64 sums have the rounding of as many additions
as the tree is high,
integers are added modulo 2^64. By gossip rows are float64, and sums have the tolerance of the
averaging. A merge is associative, and no sum: R factors are stacked and factorised again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self, TypeVar, cast

import numpy as np

from peerlearn.algorithms.flooding import broadcast_from_center
from peerlearn.arrays import Addends, Array, addends_per_agent
from peerlearn.errors import InputError
from peerlearn.network.base import Message, Network


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


def sum_to_root(network: Network, x: Any) -> Any:
    """Return sums up the tree: the root's row is the sum of all rows, those of others are sums of their subtrees."""
    sums, tree = addends_per_agent(x, len(network.hosted)).copy(), network.tree
    for agents in reversed(tree.levels):
        network.pass_on(sums, agents, tree.parent[agents], add=True)
    return sums


def broadcast_from_root(network: Network, x: Any) -> Any:
    """Return the root's row at every agent."""
    return _send_down(network, addends_per_agent(x, len(network.hosted)).copy())


def sum_everywhere(network: Network, x: Any, averaging: Averager) -> Any:
    """Return the sum of all agents' rows at every agent.

    Over a tree the result has the type of x. By gossip it is float64, and sums modulo 2^64 are
    refused.
    """
    if averaging.exact_on(network):
        averaging.check_rounds(network)
        return _send_down(network, sum_to_root(network, x))
    if getattr(x, "dtype", None) == np.uint64:
        raise InputError(
            "sums modulo 2^64 are made over a tree only: use method='tree', on a network that loses no message"
        )
    return network.size * averaging.average(network, x)


def sum_alike(network: Network, x: Array, averaging: Averager) -> Array:
    """Return the sum of all agents' rows, with the same bits at every agent."""
    sums = cast(Array, sum_everywhere(network, x, averaging))
    return sums if averaging.exact_on(network) else broadcast_from_center(network, sums)


class Mergeable(Protocol):
    """What an agent knows of some rows, and can merge with what others know of theirs."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to send."""
        ...

    def pack(self) -> dict[str, Any]:
        """Return named arrays to send."""
        ...

    def plus(self, others: Sequence[Self]) -> Self:
        """Return what all of these know together."""
        ...


Part = TypeVar("Part", bound=Mergeable)


def merge_to_root(
    network: Network, parts: Sequence[Part], unpack: Callable[[Message, int], Part]
) -> list[Part]:
    """Return what the hosted agents know when all below them in the tree have told: the root knows all.

    unpack: gives the part of a message and its sender's number, or raises WireError.
    """
    tree, hosted, merged = network.tree, network.hosted, list(parts)
    for level in range(tree.height, 0, -1):
        outbox: list[dict[str, Any]] = [
            own.pack() if tree.depth[agent] == level and not own.empty else {}
            for agent, own in zip(hosted, merged, strict=True)
        ]
        inbox = network.exchange(outbox, [[int(tree.parent[agent])] for agent in hosted])
        for k, received in enumerate(inbox):
            if received:
                merged[k] = merged[k].plus(
                    [unpack(received[child], child) for child in sorted(received)]
                )
    return merged


def _send_down(network: Network, rows: Addends) -> Addends:
    """Replace all rows by the root's."""
    for agents in network.tree.levels:
        network.pass_on(rows, network.tree.parent[agents], agents, add=False)
    return rows
