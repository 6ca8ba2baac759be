"""Diffusion RLS: recursive least squares at each agent, then one round of mixing.

    A_k <- A_k + H_k'H_k,   A_k[0] = alpha I                         alone, with the rows of the new chunk
    p_k <- b_k + A_k^-1 H_k'(Y_k - H_k b_k)                          alone (local/recursive.py)
    b_k <- sum_j C_kj p_j                                            over the network: one round (combining.py)

Cattivelli, Lopes and Sayed, Diffusion recursive least-squares for distributed estimation over
adaptive networks, 2008, without the exchange of rows that they also allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from peerlearn.algorithms.streaming import combining
from peerlearn.algorithms.streaming.learner import absorb_chunks, check_forgetting, must_be_finite
from peerlearn.local import recursive
from peerlearn.local.chunks import Chunk
from peerlearn.local.recursive import State
from peerlearn.network.base import Network

__all__ = ["DiffusionRLS"]


@dataclass(frozen=True)
class DiffusionRLS:
    """every, threshold: when agents speak, see combining.py. forgetting: the weight of the past per chunk."""

    name: ClassVar = "rls"
    exact: ClassVar = False

    every: int = 1
    threshold: float | None = None
    forgetting: float = 1.0

    def __post_init__(self) -> None:
        combining.check_combining(self.every, self.threshold)
        check_forgetting(self.forgetting)

    def start(self, network: Network, shape: tuple[int, int], alpha: float) -> State:
        agents = len(network.hosted)
        return {
            **recursive.start(agents, shape, alpha, self.forgetting),
            **combining.clock(agents),
            **combining.memory(network, shape, self.threshold),
        }

    def learn(self, network: Network, state: State, chunks: Sequence[Chunk], alpha: float) -> State:
        b, keep = absorb_chunks(network, state, chunks, alpha, self.forgetting)
        must_be_finite(network, b, "DiffusionRLS", "scale the inputs, or raise alpha")
        if combining.is_due(state, self.every):
            b = combining.combine(network, state, b, self.threshold)
        keep()  # after the network, which may fail
        return state | {"b": b}
