"""Generalised cross-validation: the ridge penalty that should predict new rows best.

    V(alpha) = RSS(alpha) / (N - c - sum_i g_i / (g_i + alpha))^2         to be least
    RSS(alpha) = |Y|^2 - sum_i |z_i|^2 (g_i + 2 alpha) / (g_i + alpha)^2

G = H'H = U diag(g) U' and z = U'H'Y give every alpha at once. N: rows, c: coefficients without a
penalty, such as an intercept. Golub, Heath and Wahba, Generalized cross-validation as a method for
choosing a good ridge parameter, 1979.
"""

from __future__ import annotations

import numpy as np

from peerlearn.arrays import Array

STEPS = 4  # values of alpha per power of ten


def best_alpha(
    G: Array, P: Array, squares: float, rows: float, *, free: int, rounding: float
) -> float:
    """Return the alpha of least V among those from max g times `rounding` to max g.

    G: H'H. P: H'Y. squares: |Y|^2. free: c in the formulas. rounding: relative error of G.
    """
    g, U = np.linalg.eigh(G)
    largest = float(g[-1])
    if not largest > 0:
        return 1.0  # without rows any alpha has the same answer
    known = g > rounding * largest  # the others are rounding errors
    g = g[known]
    z = ((U.T @ P) ** 2).sum(axis=1)[known]
    powers = np.arange(0, np.log10(rounding), -1 / STEPS)
    alphas = largest * 10.0**powers  # descending: of equal ones the largest is chosen
    shifted = g + alphas[:, None]
    errors = squares - (z * (g + 2 * alphas[:, None]) / shifted**2).sum(axis=1)
    errors = np.maximum(errors, 0.0) + rounding * squares
    left = rows - free - (g / shifted).sum(axis=1)
    scores = np.full(len(alphas), np.inf)
    np.divide(errors, left**2, out=scores, where=left > 0)
    return float(alphas[np.argmin(scores)])
