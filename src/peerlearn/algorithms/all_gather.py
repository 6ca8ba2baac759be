"""Everybody's table at every agent: for what all must know row by row, such as distances to landmarks.

    T_k <- T_k and the tables of k's children                        up the tree, the deepest agents first
    T_k <- T of k's parent                                           down the tree

Every table crosses every link of the tree once on its way down, and on its way up only those
towards the root. All agents end with the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np

from peerlearn.arrays import Array, all_finite
from peerlearn.errors import WireError
from peerlearn.network.base import Message, Network

WAY_OUT = "use a network that delivers every message"
Tables = dict[int, Array]  # by agent


def all_gather(network: Network, tables: Sequence[Array], width: int) -> list[Array]:
    """The table of every agent, by its number, from those of the hosted ones: unlike many rows, alike many columns."""
    network.must_hear_everybody(WAY_OUT)
    tree, hosted = network.tree, network.hosted
    known: list[Tables] = [{agent: own} for agent, own in zip(hosted, tables, strict=True)]
    below = _subtrees(network)
    for level in range(tree.height, 0, -1):
        outbox = [
            _pack(own) if tree.depth[k] == level else {}
            for k, own in zip(hosted, known, strict=True)
        ]
        inbox = network.exchange(outbox, [[int(tree.parent[k])] for k in hosted])
        for own, box in zip(known, inbox, strict=True):
            for child in sorted(box):
                own |= _unpack(box[child], below[child], width, child)
    children = {
        k: [child for child in sorted(network.graph[k]) if tree.parent[child] == k] for k in hosted
    }
    everybody = frozenset(range(network.size))
    for level in range(tree.height):
        outbox = [
            _pack(own) if tree.depth[k] == level else {}
            for k, own in zip(hosted, known, strict=True)
        ]
        inbox = network.exchange(outbox, [children[k] for k in hosted])
        known = [
            next(
                (_unpack(message, everybody, width, parent) for parent, message in box.items()),
                own,
            )
            for own, box in zip(known, inbox, strict=True)
        ]
    return [
        known[0][agent] for agent in range(network.size)
    ]  # the first hosted agent knows what all know


def _subtrees(network: Network) -> dict[int, frozenset[int]]:
    """Each agent with all that are below it in the tree: whose tables it may speak for."""
    tree = network.tree
    downwards = nx.DiGraph(
        (int(parent), child) for child, parent in enumerate(tree.parent) if child != tree.root
    )
    downwards.add_nodes_from(range(network.size))
    return {
        agent: frozenset(nx.descendants(downwards, agent)) | {agent}
        for agent in range(network.size)
    }


def _pack(tables: Tables) -> Message:
    agents = sorted(tables)
    return {
        "rows": np.array([len(tables[k]) for k in agents]),
        "table": np.vstack([tables[k] for k in agents]),
    }


def _unpack(message: Message, agents: frozenset[int], width: int, sender: int) -> Tables:
    """The tables of these agents, in the order of their numbers, if that is what was sent."""
    rows, table = message.get("rows"), message.get("table")
    if (
        rows is None
        or table is None
        or rows.dtype != np.int64
        or rows.shape != (len(agents),)
        or table.ndim != 2
        or table.dtype != np.float64
        or rows.min(initial=0) < 0
        or rows.max(initial=0) > len(table)  # the next sum is a number
        or table.shape != (np.add.reduce(rows), width)
        or not all_finite(table)
    ):
        raise WireError(
            f"agent {sender} sent no tables of {width} columns where some were due: it runs something else"
        )
    return dict(zip(sorted(agents), np.split(table, np.cumsum(rows)[:-1]), strict=True))
