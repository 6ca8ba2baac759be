"""Recursive least squares at each agent, then an average of the coefficients (S-CONS-RVFL, thesis, section 5.1).

    A_k <- A_k + H_k'H_k,   A_k[0] = alpha I                         alone, with the rows of the new chunk
    b_k <- b_k + A_k^-1 H_k'(Y_k - H_k b_k)                          alone (local/recursive.py)
    b_k <- sum_j N_j b_j / sum_j N_j                                 over the network, after every so many chunks

N_j are the rows that agent j has seen. Agents then share coefficients but not A: the result has
nearly the right error rate and is not the centralised solution, from which it stays some tenths of
its length away; `StreamExact` reaches it. The thesis gives every agent the same say
(`variant="thesis"`), also those that have seen nothing. An agent's alpha is that of the network:
with its part of it, alpha/L, errors were a point higher on two of three data sets.

With a threshold agents do not average but mix once, and only those speak who have news
(combining.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.streaming import combining
from peerlearn.algorithms.streaming.learner import absorb_chunks, check_forgetting, must_be_finite
from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.local import recursive
from peerlearn.local.chunks import Chunk
from peerlearn.local.recursive import State
from peerlearn.network.base import Network

__all__ = ["StreamConsensus"]

FORGOTTEN = 1e-200  # of a row: products with less are not exact any more


@dataclass(frozen=True)
class StreamConsensus:
    """every: average after so many chunks. threshold: speak only of relative changes above it. forgetting: the weight
    of the past per chunk, below 1 for data that drift. variant: "weighted" by rows seen, as above,
    or "thesis".
    """

    name: ClassVar = "consensus"
    exact: ClassVar = False

    every: int = 1
    threshold: float | None = None
    forgetting: float = 1.0
    averaging: Averaging | Method = "auto"
    variant: Literal["weighted", "thesis"] = "weighted"

    def __post_init__(self) -> None:
        combining.check_combining(self.every, self.threshold)
        check_forgetting(self.forgetting)
        Averaging.of(self.averaging)
        if self.variant not in ("weighted", "thesis"):
            raise InputError(
                f"variant {self.variant!r} is not known: StreamConsensus has 'weighted' and 'thesis'"
            )

    def start(self, network: Network, shape: tuple[int, int], alpha: float) -> State:
        agents = len(network.hosted)
        Averaging.of(self.averaging).rounds_on(network)  # refused now where messages get lost
        return {
            **recursive.start(agents, shape, alpha, self.forgetting),
            **combining.clock(agents),
            **combining.memory(network, shape, self.threshold),
            "seen": np.zeros(agents),
        }

    def learn(self, network: Network, state: State, chunks: Sequence[Chunk], alpha: float) -> State:
        b, keep = absorb_chunks(network, state, chunks, alpha, self.forgetting)
        state["seen"] = self.forgetting * state["seen"]
        for chunk in chunks:
            state["seen"][chunk.agents] += chunk.rows
        must_be_finite(network, b, "StreamConsensus", "scale the inputs, or raise alpha")
        if combining.is_due(state, self.every):
            b = self._average(network, state, b)
        keep()  # after the network, which may fail
        return state | {"b": b}

    def _average(self, network: Network, state: State, b: Array) -> Array:
        if self.threshold is not None:
            return combining.combine(network, state, b, self.threshold)
        averaging = Averaging.of(self.averaging)
        if self.variant == "thesis":
            return averaging.average(network, b)
        N = state["seen"][:, None]
        sums = averaging.average(network, np.hstack([N * b.reshape(len(b), -1), N]))
        seen = (
            sums[:, -1:] > FORGOTTEN
        )  # or nobody has seen a row yet, or all are long forgotten: then b stays
        means = sums[:, :-1] / np.where(seen, sums[:, -1:], 1.0)
        return np.where(seen, means, b.reshape(len(b), -1)).reshape(b.shape)
