"""The lasso from sums alone, to the accuracy of the numbers: G = H'H and P = H'Y are all that is needed of the rows.

    minimise  1/2 b'G b - P'b + alpha |b|_1            each column of P on its own

    b is a minimum  <=>  g = G b - P  has  g_j = -alpha sign(b_j)  where b_j is not 0,  |g_j| <= alpha  where it is

Newton's method on an active set A, the coefficients that are not 0 and the worst of those that
should not be:

    d_A = -(G_AA + delta diag G_AA)^-1 (g_A + alpha s_A)       s_j = sign(b_j), or -sign(g_j) of one that is still 0
    b_A <- b_A + t d_A                                 t: where the objective is smallest on this ray

The objective is quadratic between the points where a coefficient of the ray passes 0, so that t is
found exactly, and a coefficient that the best point holds at 0 is exactly 0 there. After Lee et
al., Efficient sparse coding algorithms, 2006, which lets coefficients in one at a time. The states
of a reservoir have condition numbers of 1e10 and more, where coordinate descent needs millions of
sweeps; this needs some hundred factorisations.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from peerlearn.arrays import Array, Indices

Flags: TypeAlias = NDArray[np.bool_]

TOLERANCE = 1e-10  # how far the conditions may be missed, relative to the largest of |P|, and still count as met
EPSILON, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)
ROUNDING = (
    8 * EPSILON
)  # what rounding may leave of a gradient, relative to the terms that it is the sum of
LET_IN = 4  # of so many active coefficients, one more may be let in at a time
DRIED_OUT = 10  # iterations per coefficient after which nothing more is to be hoped for


def lasso(G: Array, P: Array, alpha: float) -> tuple[Array, float]:
    """b, and how far the worst column misses the conditions of a minimum, relative to its largest |P|."""
    pairs = [_column(G, p, alpha) for p in P.T]
    return np.stack([b for b, _ in pairs], axis=1), max(
        (missed for _, missed in pairs), default=0.0
    )


def _column(G: Array, P: Array, alpha: float) -> tuple[Array, float]:
    sizes, scale, fine = np.abs(G), np.abs(P), 0
    b, missed = np.zeros_like(P), np.zeros_like(P)
    for _ in range(DRIED_OUT * len(P) + 100):
        g, active = G @ b - P, b != 0
        s = np.where(active, np.sign(b), -np.sign(g))
        missed = np.where(active, np.abs(g + alpha * s), np.abs(g) - alpha)
        rounding = ROUNDING * (sizes @ np.abs(b) + scale)
        fine += int(missed.max() <= TOLERANCE * scale.max())
        if not (missed > rounding).any() or fine > len(P) + 50:
            break
        A, d = _direction(G, g + alpha * s, s, active, _let_in(missed, rounding, active))
        b[A] = _best_on_ray(b[A], d, G[np.ix_(A, A)] @ d, float(d @ (g + alpha * s)[A]), alpha)
    worst = max(float(missed.max()), 0.0)
    relative = max(
        worst / max(float(scale.max()), TINY), TOLERANCE * worst / alpha
    )  # no more than alpha, ever
    return (b, relative) if np.isfinite(relative) else (np.zeros_like(P), 1.0)


def _let_in(missed: Array, rounding: Array, active: Flags) -> Indices:
    """Of the coefficients that should not be 0 the worst, as soon as they are worse than those at work.

    What those at work miss by a little more than rounding does not count: it may be all that can be
    had.
    """
    outside = np.flatnonzero((missed > rounding) & ~active)
    if len(outside) == 0 or missed[outside].max() < missed[active & (missed > 8 * rounding)].max(
        initial=0.0
    ):
        return outside[:0]
    most = max(1, np.count_nonzero(active) // LET_IN)
    return outside[np.argsort(-missed[outside], kind="stable")[:most]]


def _direction(
    G: Array, gradient: Array, s: Array, active: Flags, new: Indices
) -> tuple[Indices, Array]:
    """The active set and Newton's step on it. New coefficients that it would move the wrong way stay out."""
    A, delta = np.concatenate([np.flatnonzero(active), new]), EPSILON * len(G)
    while delta < 1 / EPSILON:
        curvature = G[np.ix_(A, A)]
        curvature.flat[:: len(A) + 1] *= (
            1 + delta
        )  # of each its own share: columns may differ in size
        try:
            factor = scipy.linalg.cho_factor(curvature, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:  # rounding made it indefinite
            delta *= 100
            continue
        d: Array = scipy.linalg.cho_solve(factor, -gradient[A], check_finite=False)
        astray = ~active[A] & (d * s[A] <= 0)
        if not astray.any():
            return A, d
        A = A[~astray]
    return A, np.full(
        len(A), np.nan
    )  # G has no diagonal to speak of: it is beyond what numbers can tell


def _best_on_ray(b: Array, d: Array, Gd: Array, slope: float, alpha: float) -> Array:
    """b + t d with the best t: the slope of the objective grows with t, and jumps where a coefficient passes 0."""
    passing = np.flatnonzero(b * d < 0)
    times = -b[passing] / d[passing]
    order = np.argsort(times, kind="stable")
    passing, times = passing[order], times[order]
    jumps = np.concatenate([[0.0], np.cumsum(2 * alpha * np.abs(d[passing]))])
    curvature = max(float(d @ Gd), EPSILON * float(np.abs(d) @ np.abs(Gd)))
    before = slope + curvature * times
    i = int(np.count_nonzero(before + jumps[1:] < 0))  # coefficients that have passed 0 for good
    held = i < len(times) and before[i] + jumps[i] < 0
    t = times[i] if held else -(slope + jumps[i]) / curvature
    best: Array = b + t * d
    if held:
        best[passing[i]] = 0.0
    return best
