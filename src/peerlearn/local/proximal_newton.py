"""Newton's method for smooth losses and a lasso penalty: the next point from sums at the last one.

    minimise  F(w) = h(w) + alpha sum_j |w_j| / s_j                     s_j = inf: no penalty
    u = argmin  g'u + 1/2 (u - w)'A (u - w) + alpha sum_j |u_j| / s_j   g, A: of h at w
    w <- w + t (u - w),   t = 1, 1/2, 1/4, ..                           the first that lowers F

Lee, Sun and Saunders, Proximal Newton-type methods for minimizing composite functions, 2014. The
coefficients without a penalty, which come first, are eliminated; then u is a lasso from sums
(lasso.py), with exact zeros. Nothing is sent here: `algorithms/proximal.py` carries the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peerlearn.arrays import Array
from peerlearn.local.lasso import lasso
from peerlearn.local.losses import ROUNDING

ENOUGH = 1e-4  # of the fall that the model promises
SHORTEST = 2.0**-40  # of a step
RELATIVE = 1e-10  # a gradient that has fallen by this factor counts as small


@dataclass(frozen=True)
class _Point:
    """What is known at w. size: by how much w misses the conditions of a minimum."""

    w: Array
    value: float
    g: Array
    A: Array
    size: float


class ProximalNewton:
    """A search for the minimum. `look` takes sums at `w`, and moves `w` to where to look next.

    Parameters
    ----------
    w: the start.
    free: how many of the first coefficients have no penalty.
    alpha: weight of the penalty.
    scale: s of the other coefficients.
    tolerance: size of the gradient, penalty included, at which to stop.
    """

    def __init__(self, w: Array, free: int, alpha: float, scale: Array, tolerance: float) -> None:
        self.w = w
        self.size = np.inf
        self.over = False
        self._free = free
        self._alpha = alpha
        self._scale = scale
        self._tolerance = tolerance
        self._best: _Point | None = None
        self._aim = w
        self._t = 1.0
        self._small = 0.0

    def look(self, value: float, g: Array, A: Array) -> None:
        """Take h, its gradient and its Hessian at w, and move w to where to look next."""
        point = _Point(self.w, value + self._penalty(self.w), g, A, self._miss(self.w, g))
        best = self._best
        if best is None:
            self._small = max(self._tolerance, RELATIVE * point.size)
            self._accept(point)
            return
        promised = self._promise(best)
        if abs(promised) <= ROUNDING * abs(best.value):
            # Values no longer tell points apart: only the gradient does.
            if point.size < best.size:
                self._accept(point)
            else:
                self.finish()
        elif promised < 0 and point.value <= best.value + ENOUGH * promised:
            self._accept(point)
        elif self._t < SHORTEST:
            self.finish()
        else:
            self._t /= 2
            self._move(best)

    def finish(self) -> None:
        """End the search at the best point so far."""
        assert self._best is not None
        self.over = True
        self.w = self._best.w
        self.size = self._best.size

    def _accept(self, point: _Point) -> None:
        self._best = point
        self._t = 1.0
        if point.size <= self._small:
            self.finish()
            return
        self._aim = self._model_minimum(point)
        self._move(point)

    def _move(self, point: _Point) -> None:
        if self._t == 1.0:
            self.w = self._aim  # its zeros stay exact
        else:
            self.w = point.w + self._t * (self._aim - point.w)
        self.size = point.size

    def _promise(self, best: _Point) -> float:
        """Return the change of F that slopes promise for the step to w; it is below 0."""
        slope = float(best.g @ (self._aim - best.w))
        return self._t * (slope + self._penalty(self._aim) - self._penalty(best.w))

    def _penalty(self, w: Array) -> float:
        sizes: Array = np.abs(w[self._free :]) / self._scale
        return self._alpha * float(sizes @ np.ones(len(sizes)))

    def _miss(self, w: Array, g: Array) -> float:
        """Return the size of the smallest subgradient of F."""
        own = w[self._free :]
        slope = g[self._free :]
        threshold = self._alpha / self._scale
        beyond = np.maximum(np.abs(slope) - threshold, 0.0)
        missed = np.where(own != 0, slope + threshold * np.sign(own), beyond)
        return float(np.linalg.norm(np.concatenate([g[: self._free], missed])))

    def _model_minimum(self, point: _Point) -> Array:
        """Return u: a lasso of the coefficients times s, after eliminating the free ones."""
        f = self._free
        h = point.A @ point.w - point.g
        inverse = np.linalg.pinv(point.A[:f, :f], hermitian=True)
        cross = point.A[:f, f:]
        G = (point.A[f:, f:] - cross.T @ inverse @ cross) * np.outer(self._scale, self._scale)
        P = (h[f:] - cross.T @ (inverse @ h[:f])) * self._scale
        b, _ = lasso((G + G.T) / 2, P[:, None], self._alpha)
        own = b[:, 0] * self._scale
        return np.concatenate([inverse @ (h[:f] - cross @ own), own])
