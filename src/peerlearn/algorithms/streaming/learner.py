"""What learns from a stream, and where the learners are found.

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
    """Anything with these can be a model's `stream`; one with a name is found by it."""

    name: ClassVar[str]  # what stream="..." calls it
    exact: ClassVar[bool]  # whether coefficients are the centralised ones of all rows seen so far

    def start(self, network: Network, shape: tuple[int, int], alpha: float) -> State:
        """Before the first chunk, for B x M coefficients."""
        ...

    def learn(self, network: Network, state: State, chunks: Sequence[Chunk], alpha: float) -> State:
        """After one more chunk at every agent, some of them empty. Arrays of the old state may be changed in place."""
        ...


STREAMING: Family[Learner] = Family("peerlearn.algorithms.streaming", "learn", "stream")
learners, learner_of = STREAMING.kinds, STREAMING.of


def absorb_chunks(
    network: Network, state: State, chunks: Sequence[Chunk], alpha: float, forgetting: float
) -> tuple[Array, Callable[[], None]]:
    """Each agent's b after its chunk, by recursive least squares; and what to call when all is well."""
    try:
        return recursive.absorb(state, chunks, alpha, forgetting)
    except recursive.Indefinite as where:
        raise DataError(
            f"the rows that agent {network.hosted[where.args[0]]} has seen outweigh the ridge penalty beyond double "
            "precision, so that its equations are not positive definite any more: raise alpha, or scale the inputs"
        ) from None


def check_forgetting(forgetting: Any) -> None:
    if not is_real(forgetting) or not 0 < forgetting <= 1:
        raise InputError(
            f"forgetting is {forgetting!r}: give a number above 0 and at most 1, such as 0.99; 1 forgets nothing"
        )


def must_be_finite(network: Network, b: Array, learner: str, way_out: str) -> None:
    """Refuse to send what is no number: one agent that diverged would ruin all others."""
    if not all_finite(b):
        bad = network.hosted[
            int(np.flatnonzero(~np.isfinite(b).reshape(len(b), -1).all(axis=1))[0])
        ]
        raise NetworkError(
            f"{learner}: the coefficients of agent {bad} grew beyond all numbers: {way_out}"
        )
