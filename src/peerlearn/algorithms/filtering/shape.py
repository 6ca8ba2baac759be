"""Settings of adaptive filters over a network: how a filter begins, and how agents combine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from peerlearn.algorithms.filtering.kernels import FADE, RLS
from peerlearn.algorithms.filtering.task import Design
from peerlearn.algorithms.streaming import combining
from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.local.recursive import State
from peerlearn.local.splines import Spline
from peerlearn.network.base import Network

BEFORE, AFTER, NONE = "combine-then-adapt", "adapt-then-combine", "none"
OPENING = 128  # samples from which the scale is first estimated
ALONE = 512  # samples from which an agent that learns alone starts once more


@dataclass(frozen=True)
class Cooperation:
    """Settings of how agents combine.

    when: before or after they adapt, or not at all. exchange: "full" or "span". every: samples
    between two rounds. threshold: relative change that is worth a message; None: all agents send.
    """

    when: str
    exchange: str
    every: int
    threshold: float | None

    def __post_init__(self) -> None:
        one_of(self.when, "cooperation", (AFTER, BEFORE, NONE))
        one_of(self.exchange, "exchange", ("full", "span"))
        combining.check_combining(self.every, self.threshold, "samples")
        if self.exchange == "span" and self.threshold is not None:
            raise InputError(
                "a threshold compares all coefficients of an agent with what it last sent: "
                "give exchange='full'"
            )

    def sends_on(self, network: Network) -> bool:
        """Return whether anything is sent at all."""
        return self.when != NONE and network.size > 1


@dataclass(frozen=True)
class Shape:
    """A filter as it begins: its design, its coefficients, and how certain they are.

    scaled: the spline, if they are adapted to the size of the signals (opening.py).
    """

    design: Design
    B: Array
    theta: Array
    prior: Array
    scaled: Spline | None = None

    def start(self, network: Network, how: Cooperation) -> State:
        """Return the state before the first sample: all that agents remember between samples."""
        agents = len(network.hosted)
        recursive = self.design.update == RLS
        width = len(self.theta)
        kept = 0
        if self.scaled is not None:
            kept = OPENING if how.sends_on(network) else ALONE
        state = {
            "theta": np.tile(self.theta, (agents, 1)),
            "start": np.tile(self.theta, (agents, 1)),
            "prior": np.tile(self.prior, (agents, 1)),
            "units": np.ones((agents, 2)),
            "P": np.zeros((agents, width, width) if recursive else (agents, 0, 0)),
            "fade": np.full(agents, FADE if recursive and self.design.Q else 0.0),
            "watch": np.zeros((agents, 4)),
            "strain": np.zeros(agents),
            "loudness": np.zeros(agents),
            "tail": np.zeros((agents, self.design.order - 1)),
            "largest": np.zeros((agents, 2)),
            "clock": np.zeros(agents),
            "opening": np.zeros((agents, 2, kept)),
            "scale": np.ones((agents, 5 if self.scaled else 0)),
        }
        if recursive:
            np.einsum("kii->ki", state["P"])[:] = self.prior
        if how.sends_on(network):
            if how.exchange == "span":
                network.must_hear_everybody("give exchange='full'")
            memory = combining.memory(network, (width, 1), how.threshold)
            for name in {"sent", "heard"} & set(memory):  # all know what all begin with
                memory[name] += self.theta[:, None]
            state |= memory
        return state


def one_of(value: Any, name: str, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is not one of the allowed texts."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} is {value!r}: give one of {', '.join(map(repr, allowed))}")
