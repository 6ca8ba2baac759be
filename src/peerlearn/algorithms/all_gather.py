"""All agents' tables at every agent, for what all must know row by row.

    T_k <- T_k and the tables of k's children                        up the tree, deepest first
    T_k <- T of k's parent                                           down the tree

An example are distances to landmarks. On the way down every table crosses every link of the tree
once; on the way up a table crosses only the links between its agent and the root. All agents end
with the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np

from peerlearn.algorithms.unexpected import unexpected_message
from peerlearn.arrays import Array, all_finite
from peerlearn.network.base import Message, Network

WAY_OUT = "use a network that delivers every message"
Tables = dict[int, Array]  # by agent


def all_gather(network: Network, tables: Sequence[Array], width: int) -> list[Array]:
    """Return the table of every agent, in the order of their numbers.

    tables: those of the hosted agents. They may differ in rows; all have `width` columns.
    """
    network.must_hear_everybody(WAY_OUT)
    tree = network.tree
    hosted = network.hosted
    known: list[Tables] = [{agent: own} for agent, own in zip(hosted, tables, strict=True)]
    below = _subtrees(network)
    parents = [[int(tree.parent[k])] for k in hosted]
    for level in range(tree.height, 0, -1):
        outbox = _pack_level(network, known, level)
        inbox = network.exchange(outbox, parents)
        for own, box in zip(known, inbox, strict=True):
            for child in sorted(box):
                own |= _unpack(box[child], below[child], width, child)
    children = [
        [child for child in sorted(network.graph[k]) if tree.parent[child] == k] for k in hosted
    ]
    everybody = frozenset(range(network.size))
    for level in range(tree.height):
        outbox = _pack_level(network, known, level)
        for k, box in enumerate(network.exchange(outbox, children)):
            for parent, message in box.items():  # one message at most
                known[k] = _unpack(message, everybody, width, parent)
    # The first hosted agent knows what all know.
    return [known[0][agent] for agent in range(network.size)]


def _subtrees(network: Network) -> dict[int, frozenset[int]]:
    """Return each agent with all agents below it in the tree: whose tables it may send."""
    tree = network.tree
    downwards = nx.DiGraph(
        (int(parent), child) for child, parent in enumerate(tree.parent) if child != tree.root
    )
    downwards.add_nodes_from(range(network.size))
    return {
        agent: frozenset(nx.descendants(downwards, agent)) | {agent}
        for agent in range(network.size)
    }


def _pack_level(network: Network, known: Sequence[Tables], level: int) -> list[Message]:
    """Return the messages of the hosted agents at this depth of the tree; empty for others."""
    depth = network.tree.depth
    return [
        _pack(own) if depth[k] == level else {}
        for k, own in zip(network.hosted, known, strict=True)
    ]


def _pack(tables: Tables) -> Message:
    agents = sorted(tables)
    return {
        "rows": np.array([len(tables[k]) for k in agents]),
        "table": np.vstack([tables[k] for k in agents]),
    }


def _unpack(message: Message, agents: frozenset[int], width: int, sender: int) -> Tables:
    """Return the tables of these agents from a message, which must have exactly these."""
    rows = message.get("rows")
    table = message.get("table")
    if (
        rows is None
        or table is None
        or rows.dtype != np.int64
        or rows.shape != (len(agents),)
        or table.ndim != 2
        or table.dtype != np.float64
        or rows.min(initial=0) < 0
        or rows.max(initial=0) > len(table)  # so that the next sum cannot overflow
        or table.shape != (np.add.reduce(rows), width)
        or not all_finite(table)
    ):
        raise unexpected_message(sender, f"tables of {width} columns")
    parts = np.split(table, np.cumsum(rows)[:-1])
    return dict(zip(sorted(agents), parts, strict=True))
