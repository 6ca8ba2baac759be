"""The contract of stream learners, their registry, and what they share.

A learner is a frozen dataclass of settings. All that it remembers between chunks is its state:
named arrays with a leading axis of hosted agents, so that a stream can be saved, resumed, and run
by any engine. state["b"] are the coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from peerlearn.algorithms.registry import Family
from peerlearn.arrays import Array, all_finite, is_real
from peerlearn.errors import DataError, InputError, NetworkError
from peerlearn.local import recursive
from peerlearn.local.chunks import Chunk
from peerlearn.local.recursive import State
from peerlearn.network.base import Network


class Learner(Protocol):
    """The contract of a stream learner: any object with these methods can be a model's `stream`.

    name: what `stream="..."` calls it. exact: whether its coefficients are the centralised ones of
    all rows seen so far. A learner with `takes_intercept = True` is given one penalty per feature
    if the first feature is a constant without a penalty.
    """

    name: ClassVar[str]
    exact: ClassVar[bool]

    def start(self, network: Network, shape: tuple[int, int], alpha: float) -> State:
        """Return the state before the first chunk, for B x M coefficients."""
        ...

    def learn(self, network: Network, state: State, chunks: Sequence[Chunk], alpha: float) -> State:
        """Return the state after one more chunk at every agent; chunks may be empty.

        Arrays of the old state may be changed in place.
        """
        ...


STREAMING: Family[Learner] = Family("peerlearn.algorithms.streaming", "learn", "stream")
learners = STREAMING.kinds
learner_of = STREAMING.of


def absorb_chunks(
    network: Network, state: State, chunks: Sequence[Chunk], alpha: float, forgetting: float
) -> tuple[Array, Callable[[], None]]:
    """Return each agent's b after its chunk, by recursive least squares, and a function.

    Call the function to keep the new state, after everything that may fail.
    """
    try:
        return recursive.absorb(state, chunks, alpha, forgetting)
    except recursive.Indefinite as where:
        agent = network.hosted[where.args[0]]
        raise DataError(
            f"the rows that agent {agent} has seen outweigh the ridge penalty beyond double "
            "precision, so that its equations are not positive definite any more: "
            "raise alpha, or scale the inputs"
        ) from None


def check_forgetting(forgetting: Any) -> None:
    """Refuse a forgetting factor that is not above 0 and at most 1."""
    if not is_real(forgetting) or not 0 < forgetting <= 1:
        raise InputError(
            f"forgetting is {forgetting!r}: give a number above 0 and at most 1, such as 0.99; "
            "1 forgets nothing"
        )


def must_be_finite(network: Network, b: Array, learner: str, way_out: str) -> None:
    """Refuse to send NaN or infinity: one agent that diverged would ruin all others."""
    if not all_finite(b):
        finite = np.isfinite(b).reshape(len(b), -1).all(axis=1)
        agent = network.hosted[int(np.flatnonzero(~finite)[0])]
        raise NetworkError(f"{learner}: the coefficients of agent {agent} overflow: {way_out}")
