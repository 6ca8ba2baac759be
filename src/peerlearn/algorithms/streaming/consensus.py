"""Recursive least squares at each agent, then an average of the coefficients.

    A_k <- A_k + H_k'H_k,   A_k[0] = alpha I              alone, with the rows of the new chunk
    b_k <- b_k + A_k^-1 H_k'(Y_k - H_k b_k)               alone (local/recursive.py)
    b_k <- sum_j N_j b_j / sum_j N_j                      over the network, every so many chunks

S-CONS-RVFL, thesis, section 5.1. N_j are the rows that agent j has seen. Agents share coefficients
but not A, so the result has nearly the right error rate but is not the centralised solution: its
distance stays at some tenths of its length. `StreamExact` reaches it. The thesis gives every agent
the same weight (`variant="thesis"`), also those that have seen nothing. Every agent uses the alpha
of the whole network: with its share alpha/L errors were a point higher on two of three data sets.

With a threshold agents do not average but mix once, and only those with news send (combining.py).
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

FORGOTTEN = 1e-200  # weight of a row: products with smaller weights are not exact any more


@dataclass(frozen=True)
class StreamConsensus:
    """Stream learner by recursive least squares and averages of the coefficients.

    Agents send coefficients only. Not exact: see `StreamExact`.

    Parameters
    ----------
    every : int, default 1
        Agents average after this many chunks.
    threshold : float or None, default None
        Agents send only if their coefficients changed by more than this, relative to their size,
        and mix once instead of averaging. Where nothing is new it decays, so that agents agree.
        None: all agents average.
    forgetting : float, default 1.0
        Weight of the past per chunk; below 1 for data that drift.
    averaging : Averaging or str, default "auto"
        How agents average: an `Averaging`, or the name of its method.
    variant : {"weighted", "thesis"}, default "weighted"
        "weighted" weighs agents by the rows they have seen; "thesis" weighs all alike.

    Examples
    --------
    >>> from peerlearn import RVFLClassifier, SimulatedNetwork, StreamConsensus, data, graphs
    >>> iris = data.load("iris")
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> learner = StreamConsensus(every=2)
    >>> model = RVFLClassifier(20, stream=learner, network=network, random_state=0)
    >>> for rows in (slice(0, 150, 2), slice(1, 150, 2)):
    ...     model = model.partial_fit(iris.X[rows], iris.y[rows], classes=[0, 1, 2])
    >>> model.score(iris.X, iris.y) > 0.8
    True
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
                f"variant {self.variant!r} is not known: "
                "StreamConsensus has 'weighted' and 'thesis'"
            )

    def start(self, network: Network, shape: tuple[int, int], alpha: float) -> State:
        """Return the state before the first chunk, for B x M coefficients."""
        agents = len(network.hosted)
        Averaging.of(self.averaging).rounds_on(network)  # refuses networks that lose messages
        return {
            **recursive.start(agents, shape, alpha, self.forgetting),
            **combining.clock(agents),
            **combining.memory(network, shape, self.threshold),
            "seen": np.zeros(agents),
        }

    def learn(self, network: Network, state: State, chunks: Sequence[Chunk], alpha: float) -> State:
        """Return the state after one more chunk at every agent."""
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
        """Return the coefficients after agents have averaged or mixed."""
        if self.threshold is not None:
            return combining.combine(network, state, b, self.threshold)
        averaging = Averaging.of(self.averaging)
        if self.variant == "thesis":
            return averaging.average(network, b)
        N = state["seen"][:, None]
        flat = b.reshape(len(b), -1)
        sums = averaging.average(network, np.hstack([N * flat, N]))
        # b stays as it is if nobody has seen a row yet, or all rows are long forgotten.
        seen = sums[:, -1:] > FORGOTTEN
        means = sums[:, :-1] / np.where(seen, sums[:, -1:], 1.0)
        return np.where(seen, means, flat).reshape(b.shape)
