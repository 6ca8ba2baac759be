"""Probabilities from scores: one factor, fitted on scores of rows that were held out.

    weights of classes, squares of scores                           one sum
    derivatives of the loss at s, then a step of Newton's method    about 6 sums of two numbers

`peerlearn.local.held_out` has the loss. It is convex in s, so its slope has one zero, which is kept
between two points. All agents take the same steps from the same sums, over any network. A factor
above 0 changes no order: the class with the largest probability is the one that is predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from peerlearn.arrays import Array
from peerlearn.local.held_out import HeldOutScores

# Factors, for scores whose mean square is 1. Scores that say nothing get the least.
LEAST = 1e-3
MOST = 1e6
START = 2.0
SMALL_STEP = 1e-8  # relative; the error after it is about its square
MOST_SUMS = 60


class _Zero:
    """The search for the zero of the slope, which rises."""

    def __init__(self) -> None:
        self.at = START
        self.is_found = False
        self._low: float | None = None
        self._high: float | None = None

    def move(self, slope: float, bend: float) -> None:
        """Take a step, given the slope at the present point and its derivative."""
        if self.is_found or slope == 0.0:
            self.is_found = True
            return
        if slope > 0:
            self._high = self.at
        else:
            self._low = self.at
        low = LEAST if self._low is None else self._low
        high = MOST if self._high is None else self._high
        new = self.at - slope / bend if bend > 0 else np.inf
        if new <= low and self._low is None:
            new = LEAST
        elif new >= high and self._high is None:
            new = MOST
        elif not low < new < high:
            new = (low + high) / 2
        self.is_found = abs(new - self.at) <= SMALL_STEP * new
        self.at = float(new)


def fit_scales(held_out: Sequence[HeldOutScores], sum_up: Callable[[Array], Array]) -> Array:
    """Return the factor s of each hosted agent.

    sum_up: returns sums over all agents at every hosted agent, with the same bits; or an agent's
        own numbers if agents do not work together.
    """
    totals = sum_up(np.stack([own.totals() for own in held_out]))
    weights = totals[:, :-1]
    squares = np.maximum(totals[:, -1], 0.0)
    units = np.sqrt(squares / np.maximum(weights.sum(axis=1), 1e-300))
    factors = 1.0 / np.where(units > 0, units, 1.0)
    searches = [_Zero() for _ in held_out]
    for _ in range(MOST_SUMS):
        agents = zip(held_out, searches, factors, weights, strict=True)
        own = [rows.slope_and_bend(one.at * unit, w) for rows, one, unit, w in agents]
        sums = sum_up(np.stack(own)).tolist()
        for one, unit, (slope, bend) in zip(searches, factors, sums, strict=True):
            one.move(slope * unit, bend * unit**2)
        if all(one.is_found for one in searches):
            break
    return np.array([one.at for one in searches]) * factors
