"""Step sizes: by a rule, or by the curvature that the iteration shows.

    a[n] = alpha0 / (n + 1)^delta                                              thesis, section 8.4

Automatic steps. The iteration is  w <- C (w + a p(w)),  p a descent direction. The largest relative
change of p seen,

    lambda = max_k |p_k - p_k'| / |w_k - w_k'|        between the starts of the last two windows,

stands for the curvature. The step is  a = DAMPING (1 - sigma) / lambda,  sigma being the
contraction of one iteration's mixing; a grows by at most GROWTH per window. (Malitsky and
Mishchenko, Adaptive gradient descent without descent, 2020, for one agent. The factor 1 - sigma was
found by measurements: the best fixed step on random graphs and on a ring is proportional to it.)
lambda is flooded, so that all agents step alike.

The allowed step halves if for PATIENCE windows neither the gradient nor the value of the whole
problem fell below their smallest so far, or if the value rises by a tenth of its first value. It
recovers when they fall again. In the second case the agents also go back to the last better point.
A growing gradient alone is no sign of trouble: on the way out of a saddle it must grow.
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
# How far the value may rise above the lowest, relative to the first value, to the way down, or to
# what the first step promises.
MARGIN = 0.1


@dataclass(frozen=True)
class StepRule:
    """Step sizes that shrink by a rule: a[n] = alpha0 / (n + 1)^delta.

    Parameters
    ----------
    alpha0 : float
        The first step.
    delta : float, default 0.0
        How fast steps shrink. 0 is a constant step; the thesis asks for a delta in (0.5, 1].

    Examples
    --------
    >>> from peerlearn import StepRule
    >>> rule = StepRule(0.6, 0.5)
    >>> [rule(n) for n in (0, 3)]
    [0.6, 0.3]
    """

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
        """Return the step of iteration n = 0, 1, ..."""
        return float(self.alpha0 * (n + 1.0) ** -self.delta)


def check_step(step: Any) -> None:
    """Refuse a step that is neither a StepRule nor None."""
    if step is not None and not isinstance(step, StepRule):
        raise InputError(
            f"step is {step!r}: give a StepRule, such as StepRule(0.6, 0.8), "
            "or None for automatic steps"
        )


class AutomaticSteps:
    """The step of the next window: the same at all agents, because all that enters is flooded.

    sigma: the contraction of one iteration's mixing. largest: the longest step allowed. metric:
    directions are about as long as gradients divided by it.
    """

    def __init__(self, sigma: float, largest: float, metric: float = 1.0) -> None:
        self._most_allowed = self._allowed = DAMPING * (1 - sigma)  # a step, times the curvature
        self._largest = largest
        self._metric = metric
        self._first_value: float | None = None
        self._scale = 0.0  # of values
        self._smallest_gradient = self._lowest_value = np.inf
        self._idle = 0  # windows since one of them was found
        self._most = np.inf  # before the first curvature is seen there is no step to grow from
        self.now = 0.0  # the first window only listens

    def begin(self, curvature: float) -> None:
        """Set the first step, from a bound on the curvature."""
        self.now = min(self._allowed / curvature, self._largest) if curvature > 0 else self._largest

    def judge(
        self, gradient: float, value: float, curvature: float
    ) -> Literal["better", "worse", "lost"]:
        """Adapt the step, and return how the start of the last window compares with earlier ones.

        "lost" means that the agents must go back to the last point that was better.
        """
        if self._first_value is None:
            self._first_value = value
            # The value may be 0: then the scale is what a first step promises.
            self._scale = max(abs(value), self.now * gradient**2 / self._metric)
        better = gradient < self._smallest_gradient or value < self._lowest_value
        margin = MARGIN * max(self._scale, self._first_value - self._lowest_value)
        lost = value > self._lowest_value + margin or gradient >= HUGE
        self._idle = 0 if better else self._idle + 1
        if lost or self._idle >= PATIENCE:
            self._allowed /= 2
            self.now /= 2
            self._idle = 0
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
