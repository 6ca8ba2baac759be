"""Diffusion: a gradient step alone, one round of mixing (thesis, section 8.3.2).

    adapt then combine:    psi_k = w_k - a[n] (grad h_k(w_k) + alpha/N w_k)        alone
                           w_k   = sum_j C_kj psi_j                                over the network
    combine then adapt:    psi_k = sum_j C_kj w_j                                  over the network
                           w_k   = psi_k - a[n] (grad h_k(psi_k) + alpha/N psi_k)  alone

Sayed, Adaptation, learning, and optimization over networks, 2014, section 7; Bianchi and
Jakubowicz, Convergence of a multi-agent projected stochastic gradient algorithm for non-convex
optimization, 2013. The mean of all w moves along grad F by a/N: for steps like those of one agent
with all data, alpha0 is N times theirs.

No agent knows the gradient of the whole problem. Every so often agents meet at one point and add up
their gradients there (minimum.py), which costs a third more rounds at most: only that can tell when
to stop. With a constant step w
ends near a minimum, at a distance that goes with the step. An automatic step is  1 / max_k (L_k + alpha/N),  L_k the
curvature of h_k at the start, and halves when meetings find little progress and the last halving
has had its effect: it gets there, but slowly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from peerlearn.algorithms.flooding import maximum
from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.smooth.minimum import (
    Minimum,
    check_limits,
    check_start,
    meet,
    rounds_to_meet,
)
from peerlearn.algorithms.smooth.steps import StepRule, check_step
from peerlearn.arrays import HUGE, Array, sendable
from peerlearn.errors import InputError
from peerlearn.local.losses import Losses
from peerlearn.local.surrogates import largest_curvatures
from peerlearn.network.base import Network

__all__ = ["Diffusion"]

ORDERS = ("adapt-then-combine", "combine-then-adapt")
MEETINGS = 0.3  # rounds spent on meetings, per round of mixing, at most
SETTLING = 6.0  # times the network's own time scale between meetings, so that they find what the step amounts to
SLOW, STILL = 0.9, 0.995  # of the gradient left between two meetings
SLOWEST = 1.0  # of the curvature times the way: then exp(-1) is left of what was there before
EFFECT = (
    0.6  # of the gradient left of what it was when the step last halved, which should halve it too
)
FAR_OFF = 10.0  # times the gradient of the last meeting: beyond this the agents go back to it


@dataclass(frozen=True)
class Diffusion:
    """tolerance: of |grad F|; ask for little. step: a StepRule, or None for one by the curvature that halves."""

    name: ClassVar = "diffusion"

    order: Literal["adapt-then-combine", "combine-then-adapt"] = "adapt-then-combine"
    step: StepRule | None = None
    tolerance: float = 1e-2
    max_iterations: int = 20_000

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise InputError(
                f"order {self.order!r} is not known: choose one of {', '.join(ORDERS)}"
            )
        check_step(self.step)
        check_limits(self.tolerance, self.max_iterations, "Diffusion")

    def minimise(
        self, network: Network, losses: Losses, alpha: float, start: Array | None = None
    ) -> Minimum:
        every = max(
            round(rounds_to_meet(network) / MEETINGS),
            math.ceil(SETTLING / (1 - network.contraction)),
        )
        automatic = self.step is None
        loop = Iterations(
            network,
            "Diffusion",
            self.tolerance,
            self.max_iterations,
            check_every=every,
            measure="gradient",
            recovers=automatic,
        )
        w = kept = check_start(network, losses, alpha, start)
        step = self.step or _Halving(network, losses, alpha, w)
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # what diverges is noticed by its gradient
            for n in loop:
                w = self._iterate(network, losses, alpha / network.size, w, step(n - 1))
                if not loop.due:
                    continue
                point = meet(network, losses, alpha, w)
                loop.judge(point.size)  # the same bits at every agent
                if loop.converged:
                    w = point.w
                elif isinstance(step, _Halving):
                    w = kept = kept if step.is_lost(point.size) else w
        change = (
            "raise max_iterations or tolerance, or use solver='tracking', which is much quicker"
        )
        # Where agents met, all took over one agent's w.
        return Minimum(w, loop.report(change), apart=0.0 if loop.converged else None)

    def _iterate(self, network: Network, losses: Losses, beta: float, w: Array, a: float) -> Array:
        if self.order == "adapt-then-combine":
            return network.mix(sendable(w - a * (losses.gradient(w) + beta * w)))
        psi = network.mix(sendable(w))
        return sendable(psi - a * (losses.gradient(psi) + beta * psi))


class _Halving:
    """The automatic step: the same at every agent, since all that enters is."""

    def __init__(self, network: Network, losses: Losses, alpha: float, w: Array) -> None:
        bound = largest_curvatures(losses.gradient, w) + alpha / network.size
        largest = float(maximum(network, sendable(bound))[0])
        self._now = 1 / largest if largest > 0 else 1.0
        self._last = self._when_halved = np.inf
        self._curvature = alpha / network.size  # the least that the mean of all w meets
        self._way = 0.0  # the sum of all steps since the last halving

    def __call__(self, n: int) -> float:
        self._way += self._now
        return self._now

    def is_lost(self, size: float) -> bool:
        """After a meeting; whether to go back to where the last one was."""
        lost = size > FAR_OFF * self._last or size >= HUGE
        # Short steps hardly move either: that nothing moves tells something only after the slowest
        # direction's time.
        still = size > STILL * self._last and self._way * self._curvature >= SLOWEST
        settled = size <= EFFECT * self._when_halved or still
        if lost or (size > SLOW * self._last and settled):
            self._now, self._when_halved, self._way = self._now / 2, size, 0.0
        if not lost:
            self._last = size
        return lost
