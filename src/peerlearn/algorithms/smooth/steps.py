"""How far to step: by a rule of one's own, or by what the iteration shows of the curvature.

    a[n] = alpha0 / (n + 1)^delta                                              thesis, section 8.4

Automatic steps. The iteration is  w <- C (w + a p(w)),  p a descent direction. The largest relative change of p seen,

    lambda = max_k |p_k - p_k'| / |w_k - w_k'|        between the starts of the last two windows,

stands for the curvature, and  a = DAMPING (1 - sigma) / lambda  for what it allows, sigma being the contraction of one
iteration's mixing; a grows by at most GROWTH per window. (Malitsky and Mishchenko, Adaptive
gradient descent without descent, 2020, for one agent. The factor 1 - sigma was found by measuring:
the best fixed step on random graphs and on a ring goes with it.) lambda is flooded, so that all
agents step alike. If for long neither the gradient nor the value of the whole problem fell below
what they were, or if the value rises by a tenth of what it was at first, the step allowed halves,
and recovers as they fall again; in the second case the agents also go back to where it was better.
That the gradient grows is no sign of trouble: on the way out of a saddle it must.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from peerlearn.arrays import HUGE, is_real
from peerlearn.errors import InputError

__all__ = ["StepRule"]

DAMPING = 1.5
GROWTH = 1.3  # of a step, per window
PATIENCE = 20  # windows without a smaller gradient or a lower value
RECOVERY = 1.1  # of what a step is allowed, in a window with one of them
MARGIN = 0.1  # how far the value may rise above the lowest, relative to the first, to the way down, or to a first step


@dataclass(frozen=True)
class StepRule:
    """a[n] = alpha0 / (n + 1)^delta. The thesis asks for delta in (0.5, 1]; 0 is a constant step."""

    alpha0: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        for name, value, least in (
            ("alpha0", self.alpha0, "above 0"),
            ("delta", self.delta, "of 0 or more"),
        ):
            if not is_real(value) or not 0 <= value < np.inf or (name == "alpha0" and value == 0):
                raise InputError(f"{name} of a StepRule is {value!r}: give a number {least}")

    def __call__(self, n: int) -> float:
        return float(self.alpha0 * (n + 1.0) ** -self.delta)


def check_step(step: Any) -> None:
    if step is not None and not isinstance(step, StepRule):
        raise InputError(
            f"step is {step!r}: give a StepRule, such as StepRule(0.6, 0.8), or None for automatic steps"
        )


class AutomaticSteps:
    """The step of the next window. All agents hold the same, since all that enters is flooded."""

    def __init__(self, sigma: float, largest: float, metric: float = 1.0) -> None:
        self._most_allowed = self._allowed = DAMPING * (1 - sigma)  # a step, times the curvature
        self._largest, self._metric = (
            largest,
            metric,
        )  # directions are about as long as gradients over the metric
        self._first_value: float | None = None
        self._scale = 0.0  # of values
        self._smallest_gradient = self._lowest_value = np.inf
        self._idle = 0  # windows since one of them was found
        self._most = np.inf  # before the first curvature is seen there is no step to grow from
        self.now = 0.0  # the first window only listens

    def begin(self, curvature: float) -> None:
        """The first step, from a bound on the curvature."""
        self.now = min(self._allowed / curvature, self._largest) if curvature > 0 else self._largest

    def judge(
        self, gradient: float, value: float, curvature: float
    ) -> Literal["better", "worse", "lost"]:
        """What the last window began with; if agents are lost they must go back to where it last was better."""
        if self._first_value is None:  # it may be 0: then what a first step promises is the scale
            self._first_value, self._scale = (
                value,
                max(abs(value), self.now * gradient**2 / self._metric),
            )
        better = gradient < self._smallest_gradient or value < self._lowest_value
        margin = MARGIN * max(self._scale, self._first_value - self._lowest_value)
        lost = value > self._lowest_value + margin or gradient >= HUGE
        self._idle = 0 if better else self._idle + 1
        if lost or self._idle >= PATIENCE:
            self._allowed, self.now, self._idle = self._allowed / 2, self.now / 2, 0
            self._smallest_gradient = self._lowest_value = np.inf
        elif better:
            self._allowed = min(RECOVERY * self._allowed, self._most_allowed)
        if lost:
            return "lost"
        self._smallest_gradient = min(gradient, self._smallest_gradient)
        self._lowest_value = min(value, self._lowest_value)
        if curvature > 0:
            self.now = min(self._most, self._allowed / curvature, self._largest)
            self._most = GROWTH * self.now
        return "better" if better else "worse"
