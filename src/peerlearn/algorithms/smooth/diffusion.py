"""Diffusion: a gradient step alone, then one round of mixing.

    adapt then combine:    psi_k = w_k - a[n] (grad h_k(w_k) + alpha/N w_k)        alone
                           w_k   = sum_j C_kj psi_j                                over the network
    combine then adapt:    psi_k = sum_j C_kj w_j                                  over the network
                           w_k   = psi_k - a[n] (grad h_k(psi_k) + alpha/N psi_k)  alone

Thesis, section 8.3.2; Sayed, Adaptation, learning, and optimization over networks, 2014, section 7;
Bianchi and Jakubowicz, Convergence of a multi-agent projected stochastic gradient algorithm for
non-convex optimization, 2013. The mean of all w moves along grad F by a/N: for the steps of one
agent with all data, alpha0 must be N times as large.

No agent knows the gradient of the whole problem. From time to time agents meet at one point and
add up their gradients there (minimum.py), which costs a third more rounds at most. Only that shows
when to stop. With a constant step w ends near a minimum, at a distance proportional to the step.
An automatic step is  1 / max_k (L_k + alpha/N),  L_k the curvature of h_k at the start. It halves
when meetings find little progress and the last halving has had its effect: it converges, but
slowly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.smooth.distance import Goal
from peerlearn.algorithms.smooth.minimum import (
    Minimum,
    check_limits,
    check_start,
    meet,
    rounds_to_meet,
    step_off,
)
from peerlearn.algorithms.smooth.steps import StepRule, check_step
from peerlearn.algorithms.sums import maximum
from peerlearn.arrays import HUGE, Array, sendable
from peerlearn.errors import InputError
from peerlearn.local.losses import Losses, are_convex
from peerlearn.local.surrogates import largest_curvatures
from peerlearn.network.base import Network

__all__ = ["Diffusion"]

ORDERS = ("adapt-then-combine", "combine-then-adapt")
MEETINGS = 0.3  # largest number of rounds spent on meetings, per round of mixing
# Time between meetings, in time scales of the network: long enough to show the step's effect.
SETTLING = 6.0
# Parts of the gradient left after the time between two meetings.
SLOW = 0.9
STILL = 0.995
# Curvature times the way since the last halving: exp(-1) is then left of the slowest direction.
SLOWEST = 1.0
# Part of the gradient left since the step last halved, which should halve the gradient too.
EFFECT = 0.6
FAR_OFF = 10.0  # times the gradient of the last meeting: beyond this the agents go back to it


@dataclass(frozen=True)
class Diffusion:
    """Minimisation of smooth losses by diffusion gradient descent.

    The only smooth solver that works while messages get lost. Slow: ask for little accuracy.

    Parameters
    ----------
    order : {"adapt-then-combine", "combine-then-adapt"}, default "adapt-then-combine"
        Whether agents step before they mix, or after.
    step : StepRule or None, default None
        Steps by a rule. None takes a step by the curvature, which halves when progress ends.
    tolerance : float, default 1e-2
        Size of |grad F| at which to stop.
    max_iterations : int, default 20000
        Limit of iterations; a solution that needs more warns.

    Examples
    --------
    >>> from peerlearn import Diffusion, S3VMClassifier, SimulatedNetwork, graphs
    >>> X, y = [[0.0], [1.0], [0.1], [0.9], [0.2], [0.8]], [0, 1, 0, 1, -1, -1]  # -1: no label
    >>> network = SimulatedNetwork(graphs.ring(3))
    >>> model = S3VMClassifier(solver=Diffusion(), network=network, random_state=0).fit(X, y)
    >>> model.report_.converged
    True
    """

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
        """Return a minimum of the losses of all agents and the penalty."""
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
        ends = Goal(loop, are_convex(losses), curved=False)
        w = kept = check_start(network, losses, alpha, start)
        step = self.step or _Halving(network, losses, alpha, w)
        # Divergence is noticed by the size of the gradient.
        with np.errstate(over="ignore", invalid="ignore"):
            for n in loop:
                w = self._iterate(network, losses, alpha / network.size, w, step(n - 1))
                if not loop.due:
                    continue
                point = meet(network, losses, alpha, w)
                if not loop.residuals and ends.vanishes(point.size) and not loop.exhausted:
                    # The start may be a saddle: leave it.
                    loop.record(point.size)
                    w = kept = step_off(point.w)
                    step = self.step or _Halving(network, losses, alpha, w)
                    continue
                loop.judge(point.size)  # the same bits at every agent
                if loop.converged:
                    w = point.w
                elif isinstance(step, _Halving):
                    w = kept = kept if step.is_lost(point.size) else w
        change = (
            "raise max_iterations or tolerance, or use solver='tracking', which is much quicker"
        )
        # If the agents converged, they met: all took one agent's w.
        return Minimum(w, ends.report(change, math.inf), apart=0.0 if loop.converged else None)

    def _iterate(self, network: Network, losses: Losses, beta: float, w: Array, a: float) -> Array:
        """Return w after one step and one round of mixing."""
        if self.order == "adapt-then-combine":
            return network.mix(sendable(w - a * (losses.gradient(w) + beta * w)))
        psi = network.mix(sendable(w))
        return sendable(psi - a * (losses.gradient(psi) + beta * psi))


class _Halving:
    """The automatic step: the same at every agent, because it depends on common numbers only."""

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
        """Adapt the step after a meeting, and return whether to go back to the previous meeting."""
        lost = size > FAR_OFF * self._last or size >= HUGE
        # Short steps hardly move: a gradient that stays shows something only after enough time
        # for the slowest direction.
        still = size > STILL * self._last and self._way * self._curvature >= SLOWEST
        settled = size <= EFFECT * self._when_halved or still
        if lost or (size > SLOW * self._last and settled):
            self._now /= 2
            self._when_halved = size
            self._way = 0.0
        if not lost:
            self._last = size
        return lost
