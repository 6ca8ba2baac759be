"""Diffusion LMS: each agent takes one small step per row, then one round of mixing.

    p_k <- b_k + mu h (y - h'b_k)' / h'h                 alone, row by row (local/lms.py)
    b_k <- sum_j C_kj p_j                                over the network: one round (combining.py)

Lopes and Sayed, Diffusion least-mean squares over adaptive networks, 2008; adapt-then-combine. No
matrix is kept, and a row costs B operations instead of the B^2 of recursive least squares. It
learns more slowly, the more so the more alike the features are. The ridge penalty plays no part.
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
    """Stream learner by least mean squares and one round of mixing.

    Cheapest per row, and slow to learn. The ridge penalty plays no part.

    Parameters
    ----------
    step : float, default 0.5
        Step size, mu in the formulas.
    normalised : bool, default True
        Whether steps are divided by h'h (NLMS). If not (LMS), a step above 2 / max h'h diverges.
    every : int, default 1
        Agents mix after this many chunks.
    threshold : float or None, default None
        Agents send only if their coefficients changed by more than this, relative to their size.
        Where nothing is new it decays, so that agents agree. None: all agents send.

    Examples
    --------
    >>> from peerlearn import DiffusionLMS, RVFLClassifier, SimulatedNetwork, data, graphs
    >>> iris = data.load("iris")
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> learner = DiffusionLMS(step=0.2)
    >>> model = RVFLClassifier(20, stream=learner, network=network, random_state=0)
    >>> for rows in (slice(0, 150, 2), slice(1, 150, 2)):
    ...     model = model.partial_fit(iris.X[rows], iris.y[rows], classes=[0, 1, 2])
    >>> model.coefficients_.shape  # agents x hidden units x classes
    (5, 20, 3)
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
        """Return the state before the first chunk, for B x M coefficients."""
        agents = len(network.hosted)
        return {
            "b": np.zeros((agents, *shape)),
            **combining.clock(agents),
            **combining.memory(network, shape, self.threshold),
        }

    def learn(self, network: Network, state: State, chunks: Sequence[Chunk], alpha: float) -> State:
        """Return the state after one more chunk at every agent."""
        b = lms.descend(state["b"], chunks, self.step, self.normalised)
        must_be_finite(network, b, "DiffusionLMS", "give a smaller step, or normalised=True")
        if combining.is_due(state, self.every):
            b = combining.combine(network, state, b, self.threshold)
        return state | {"b": b}
