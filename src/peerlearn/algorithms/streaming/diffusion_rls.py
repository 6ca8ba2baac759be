"""Diffusion RLS: recursive least squares at each agent, then one round of mixing.

    A_k <- A_k + H_k'H_k,   A_k[0] = alpha I             alone, with the rows of the new chunk
    p_k <- b_k + A_k^-1 H_k'(Y_k - H_k b_k)              alone (local/recursive.py)
    b_k <- sum_j C_kj p_j                                over the network: one round (combining.py)

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
    """Stream learner by recursive least squares and one round of mixing.

    Parameters
    ----------
    every : int, default 1
        Agents mix after this many chunks.
    threshold : float or None, default None
        Agents send only if their coefficients changed by more than this, relative to their size.
        Where nothing is new it decays, so that agents agree. None: all agents send.
    forgetting : float, default 1.0
        Weight of the past per chunk; below 1 for data that drift.

    Examples
    --------
    >>> from peerlearn import DiffusionRLS, RVFLClassifier, SimulatedNetwork, data, graphs
    >>> iris = data.load("iris")
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> learner = DiffusionRLS(threshold=0.01)
    >>> model = RVFLClassifier(20, stream=learner, network=network, random_state=0)
    >>> for rows in (slice(0, 150, 2), slice(1, 150, 2)):
    ...     model = model.partial_fit(iris.X[rows], iris.y[rows], classes=[0, 1, 2])
    >>> model.score(iris.X, iris.y) > 0.8
    True
    """

    name: ClassVar = "rls"
    exact: ClassVar = False

    every: int = 1
    threshold: float | None = None
    forgetting: float = 1.0

    def __post_init__(self) -> None:
        combining.check_combining(self.every, self.threshold)
        check_forgetting(self.forgetting)

    def start(self, network: Network, shape: tuple[int, int], alpha: float) -> State:
        """Return the state before the first chunk, for B x M coefficients."""
        agents = len(network.hosted)
        return {
            **recursive.start(agents, shape, alpha, self.forgetting),
            **combining.clock(agents),
            **combining.memory(network, shape, self.threshold),
        }

    def learn(self, network: Network, state: State, chunks: Sequence[Chunk], alpha: float) -> State:
        """Return the state after one more chunk at every agent."""
        b, keep = absorb_chunks(network, state, chunks, alpha, self.forgetting)
        must_be_finite(network, b, "DiffusionRLS", "scale the inputs, or raise alpha")
        if combining.is_due(state, self.every):
            b = combining.combine(network, state, b, self.threshold)
        keep()  # after the network, which may fail
        return state | {"b": b}
