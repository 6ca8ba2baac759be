"""A network that fails after some rounds, to see what an error leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx

from peerlearn.arrays import Addends, Array, Indices
from peerlearn.errors import NetworkError
from peerlearn.network.base import Message
from peerlearn.network.simulated import SimulatedNetwork


class FailingNetwork(SimulatedNetwork):
    """A simulated network whose links all fail once so many rounds are done.

    >>> from peerlearn import average, graphs
    >>> average(FailingNetwork(graphs.ring(3), rounds=1), [1.0, 2.0, 3.0])
    Traceback (most recent call last):
    peerlearn.errors.NetworkError: all links failed after 1 rounds
    """

    def __init__(self, graph: nx.Graph, rounds: int) -> None:
        super().__init__(graph, exact_order=True)
        self._rounds = rounds

    def _check_links(self) -> None:
        if self.ledger.rounds >= self._rounds:
            raise NetworkError(f"all links failed after {self._rounds} rounds")

    def mix(self, x: Array) -> Array:
        self._check_links()
        return super().mix(x)

    def recur(self, x: Array, steps: Array) -> Array:
        self._check_links()
        return super().recur(x, steps)

    def mix_and_flood(self, x: Array, largest: Array) -> tuple[Array, Array]:
        self._check_links()
        return super().mix_and_flood(x, largest)

    def flood(self, largest: Array) -> Array:
        self._check_links()
        return super().flood(largest)

    def pass_on(self, x: Addends, senders: Indices, receivers: Indices, *, add: bool) -> None:
        self._check_links()
        super().pass_on(x, senders, receivers, add=add)

    def exchange(
        self, outbox: Sequence[Message], to: Sequence[Sequence[int]] | None = None
    ) -> list[dict[int, Any]]:
        self._check_links()
        return super().exchange(outbox, to)
