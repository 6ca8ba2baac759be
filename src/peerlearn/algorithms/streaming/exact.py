"""Exact streaming: what the chunks say is added up, so that after any chunk all have the centralised coefficients.

    G <- f G + sum_k H_k'H_k,   c <- f c + sum_k H_k'Y_k             over the network, of the new rows alone
    b = (G + alpha I)^-1 c                                           alone

f is the forgetting factor per chunk, 1 to forget nothing. On a tree the rows' R factors travel up,
which for few rows is little more than coefficients; the root keeps G and c, solves, and only b
travels down (see gram.py). By gossip every agent keeps its own G and c, and B (B + 1) / 2 numbers
travel in every round.

Rows can be computed from the sums of a chunk, because all agents know the random features: always
where the chunk has
a single row. `StreamConsensus` sends coefficients only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.flooding import everyone
from peerlearn.algorithms.readout.gram import merge_equations, ridge_if_any
from peerlearn.algorithms.streaming.learner import check_forgetting
from peerlearn.algorithms.sums import broadcast_from_root
from peerlearn.arrays import Array
from peerlearn.local.chunks import Chunk
from peerlearn.local.normal_equations import NormalEquations
from peerlearn.local.recursive import State
from peerlearn.local.ridge import undetermined_error
from peerlearn.network.base import Network

__all__ = ["StreamExact"]


@dataclass(frozen=True)
class StreamExact:
    """forgetting: the weight of the past per chunk. averaging: how sums are made, by default over a tree."""

    name: ClassVar = "exact"
    exact: ClassVar = True

    forgetting: float = 1.0
    averaging: Averaging | Method = "auto"

    def __post_init__(self) -> None:
        check_forgetting(self.forgetting)
        Averaging.of(self.averaging)

    def start(self, network: Network, shape: tuple[int, int], alpha: float) -> State:
        agents, (B, M) = len(network.hosted), shape
        Averaging.of(self.averaging).rounds_on(network)  # refused now where messages get lost
        return {
            "b": np.zeros((agents, B, M)),
            "G": np.zeros((agents, B, B)),
            "c": np.zeros((agents, B, M)),
        }

    def learn(self, network: Network, state: State, chunks: Sequence[Chunk], alpha: float) -> State:
        averaging = Averaging.of(self.averaging, tolerance=1e-13)  # errors of all chunks add up
        if averaging.exact_on(network):
            return state | {"b": self._on_a_tree(network, state, chunks, alpha)}
        return state | {"b": self._by_gossip(network, state, chunks, alpha, averaging)}

    def _on_a_tree(
        self, network: Network, state: State, chunks: Sequence[Chunk], alpha: float
    ) -> Array:
        b, found, seen = np.zeros_like(state["b"]), np.zeros((len(state["b"]), 1)), {}
        sums = merge_equations(network, _equations(chunks, len(b), b.shape[1:]))
        for k, agent in enumerate(network.hosted):
            if agent == network.tree.root:
                seen[k] = self._seen(state, k, *sums[k].gram())
                b[k], found[k] = ridge_if_any(seen[k], alpha)
        answer: Array = broadcast_from_root(network, np.hstack([b.reshape(len(b), -1), found]))
        if not answer[0, -1]:  # what the root found, all agents say
            raise undetermined_error(alpha)
        for k, equations in seen.items():  # after the network, which may fail
            state["G"][k], state["c"][k] = equations.gram()
        return answer[:, :-1].reshape(b.shape)

    def _by_gossip(
        self,
        network: Network,
        state: State,
        chunks: Sequence[Chunk],
        alpha: float,
        averaging: Averaging,
    ) -> Array:
        agents, B, M = state["b"].shape
        own = np.stack([equations.numbers() for equations in _equations(chunks, agents, (B, M))])
        sums, b, found, seen = (
            averaging.total(network, own),
            np.empty_like(state["b"]),
            np.empty(agents),
            [],
        )
        for k, row in enumerate(sums):
            seen.append(self._seen(state, k, *NormalEquations.of_numbers(row, (B, M)).gram()))
            b[k], found[k] = ridge_if_any(seen[k], alpha)
        if not everyone(network, found):
            raise undetermined_error(alpha)
        for k, equations in enumerate(seen):
            state["G"][k], state["c"][k] = equations.gram()
        return b

    def _seen(self, state: State, k: int, G: Array, c: Array) -> NormalEquations:
        """What hosted agent k knows of all rows, with the new ones."""
        G, c = self.forgetting * state["G"][k] + G, self.forgetting * state["c"][k] + c
        return NormalEquations((len(G), c.shape[1]), G=G, P=c)


def _equations(
    chunks: Sequence[Chunk], agents: int, shape: tuple[int, int]
) -> list[NormalEquations]:
    """What each agent's new rows say; of an agent without any, nothing."""
    equations = [NormalEquations.of_rows(np.zeros((0, sum(shape))), shape)] * agents
    for chunk in chunks:
        for k, n, H, Y in zip(chunk.agents, chunk.rows, chunk.H, chunk.Y, strict=True):
            equations[k] = NormalEquations.of_rows(np.hstack([H, Y])[:n], shape)
    return equations
