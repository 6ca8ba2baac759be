"""The lasso from sums, to the accuracy of float64: of the rows only G = H'H and P = H'Y are needed.

    minimise  1/2 b'G b - P'b + alpha |b|_1            each column of P on its own

b is a minimum if and only if g = G b - P has

    g_j = -alpha sign(b_j)  where b_j is not 0,        |g_j| <= alpha  where it is

Newton's method on an active set A, the coefficients that are not 0 and the worst of those that
should not be:

    d_A = -(G_AA + delta diag G_AA)^-1 (g_A + alpha s_A)      s_j = sign(b_j), or -sign(g_j) of a
                                                              coefficient that is still 0
    b_A <- b_A + t d_A                                t: where the objective is smallest on this ray

The objective is quadratic between the points where a coefficient of the ray passes 0. So t is found
exactly, and a coefficient that the best point holds at 0 is exactly 0 there. After Lee et al.,
Efficient sparse coding algorithms, 2006, who let coefficients in one at a time. The states of a
reservoir have condition numbers of 1e10 and more, where coordinate descent needs millions of
sweeps. This needs some hundred factorisations.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from peerlearn.arrays import Array, Indices

Flags: TypeAlias = NDArray[np.bool_]

# Largest error of the conditions, relative to the largest |P|, with which they count as met.
TOLERANCE = 1e-10
EPSILON = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)
ROUNDING = 8 * EPSILON  # rounding error of a gradient, relative to the terms that it is the sum of
LET_IN = 4  # one new coefficient may enter for this many active ones
MOST_ITERATIONS = 10  # per coefficient, before giving up


def lasso(
    G: Array,
    P: Array,
    alpha: float,
) -> tuple[Array, float]:
    """Return b, and by how much its worst column misses the conditions of a minimum.

    The second number is relative to the column's largest |P|.
    """
    pairs = [_column(G, p, alpha) for p in P.T]
    b = np.stack([own for own, _ in pairs], axis=1)
    return b, max((missed for _, missed in pairs), default=0.0)


def _column(
    G: Array,
    P: Array,
    alpha: float,
) -> tuple[Array, float]:
    """Return b and its relative error for one column of P."""
    sizes = np.abs(G)
    scale = np.abs(P)
    fine = 0  # iterations after which the conditions were met
    b = np.zeros_like(P)
    missed = np.zeros_like(P)
    for _ in range(MOST_ITERATIONS * len(P) + 100):
        g = G @ b - P
        active = b != 0
        s = np.where(active, np.sign(b), -np.sign(g))
        gradient = g + alpha * s
        missed = np.where(active, np.abs(gradient), np.abs(g) - alpha)
        rounding = ROUNDING * (sizes @ np.abs(b) + scale)
        fine += int(missed.max() <= TOLERANCE * scale.max())
        if not (missed > rounding).any() or fine > len(P) + 50:
            break
        new = _let_in(missed, rounding, active)
        A, d = _direction(
            G,
            gradient,
            s,
            active,
            new,
        )
        slope = float(d @ gradient[A])
        Gd = G[np.ix_(A, A)] @ d
        b[A] = _best_on_ray(
            b[A],
            d,
            Gd,
            slope,
            alpha,
        )
    worst = max(float(missed.max()), 0.0)
    # The second term is above TOLERANCE if the conditions are missed by more than alpha.
    largest = max(float(scale.max()), TINY)
    relative = max(worst / largest, TOLERANCE * worst / alpha)
    if not np.isfinite(relative):
        return np.zeros_like(P), 1.0
    return b, relative


def _let_in(
    missed: Array,
    rounding: Array,
    active: Flags,
) -> Indices:
    """Return the coefficients that enter the active set.

    They are the worst of those that should not be 0, as soon as they are worse than the active
    ones. An active coefficient that misses its condition by little more than rounding does not
    count, because no better may be possible.
    """
    outside = np.flatnonzero((missed > rounding) & ~active)
    worst_active = missed[active & (missed > 8 * rounding)].max(initial=0.0)
    if len(outside) == 0 or missed[outside].max() < worst_active:
        return outside[:0]
    most = max(1, np.count_nonzero(active) // LET_IN)
    return outside[np.argsort(-missed[outside], kind="stable")[:most]]


def _direction(
    G: Array,
    gradient: Array,
    s: Array,
    active: Flags,
    new: Indices,
) -> tuple[Indices, Array]:
    """Return the active set and Newton's step on it.

    New coefficients that the step would move the wrong way stay out.
    """
    A = np.concatenate([np.flatnonzero(active), new])
    delta = EPSILON * len(G)
    while delta < 1 / EPSILON:
        curvature = G[np.ix_(A, A)]
        # Relative to each diagonal entry, because columns may differ in size.
        curvature.flat[:: len(A) + 1] *= 1 + delta
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
    # The diagonal of G is so small that no shift makes G positive definite.
    return A, np.full(len(A), np.nan)


def _best_on_ray(
    b: Array,
    d: Array,
    Gd: Array,
    slope: float,
    alpha: float,
) -> Array:
    """Return b + t d with the best t.

    The slope of the objective grows with t, and jumps where a coefficient passes 0.
    """
    passing = np.flatnonzero(b * d < 0)
    times = -b[passing] / d[passing]
    order = np.argsort(times, kind="stable")
    passing = passing[order]
    times = times[order]
    sizes = 2 * alpha * np.abs(d[passing])
    jumps = np.concatenate([[0.0], np.cumsum(sizes)])
    rounding = EPSILON * float(np.abs(d) @ np.abs(Gd))
    curvature = max(float(d @ Gd), rounding)
    before = slope + curvature * times
    i = int(np.count_nonzero(before + jumps[1:] < 0))  # coefficients that have passed 0 for good
    stops_at_0 = i < len(times) and before[i] + jumps[i] < 0
    t = times[i] if stops_at_0 else -(slope + jumps[i]) / curvature
    best: Array = b + t * d
    if stops_at_0:
        best[passing[i]] = 0.0
    return best
