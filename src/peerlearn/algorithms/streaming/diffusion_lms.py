"""Diffusion LMS: each agent takes one small step per row, then one round of mixing.

    p_k <- b_k + mu h (y - h'b_k)' / h'h                             alone, row by row (local/lms.py)
    b_k <- sum_j C_kj p_j                                            over the network: one round (combining.py)

Lopes and Sayed, Diffusion least-mean squares over adaptive networks, 2008; adapt-then-combine. No
matrix is kept, and a row costs B operations where recursive least squares needs B^2; it learns more
slowly, the more alike the features are, and the ridge penalty plays no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from peerlearn.algorithms.streaming import combining
from peerlearn.algorithms.streaming.learner import must_be_finite
from peerlearn.errors import InputError
from peerlearn.local import lms
from peerlearn.local.chunks import Chunk
from peerlearn.local.recursive import State
from peerlearn.network.base import Network

__all__ = ["DiffusionLMS"]


@dataclass(frozen=True)
class DiffusionLMS:
    """step: mu above. normalised: divide by h'h (NLMS), or not (LMS), where a step above 2 / max h'h diverges.

    every, threshold: when agents speak, see combining.py.
    """

    name: ClassVar = "lms"
    exact: ClassVar = False

    step: float = 0.5
    normalised: bool = True
    every: int = 1
    threshold: float | None = None

    def __post_init__(self) -> None:
        combining.check_combining(self.every, self.threshold)
        if not isinstance(self.step, float | int) or not 0 < self.step < np.inf:
            raise InputError(f"step is {self.step!r}: give a number above 0")
        if self.normalised and self.step >= 2:
            raise InputError(
                f"a normalised step of {self.step:g} diverges: give one below 2, such as 0.5"
            )

    def start(self, network: Network, shape: tuple[int, int], alpha: float) -> State:
        agents = len(network.hosted)
        return {
            "b": np.zeros((agents, *shape)),
            **combining.clock(agents),
            **combining.memory(network, shape, self.threshold),
        }

    def learn(self, network: Network, state: State, chunks: Sequence[Chunk], alpha: float) -> State:
        b = lms.descend(state["b"], chunks, self.step, self.normalised)
        must_be_finite(network, b, "DiffusionLMS", "give a smaller step, or normalised=True")
        if combining.is_due(state, self.every):
            b = combining.combine(network, state, b, self.threshold)
        return state | {"b": b}
