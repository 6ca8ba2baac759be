"""The ridge solution of normal equations, and the inverse behind it (thesis, section 2.2.1)."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from peerlearn.arrays import Array
from peerlearn.errors import DataError


def solve_ridge(
    G: Array,
    HY: Array,
    alpha: float | Array,
) -> Array:
    """Return (G + alpha I)^-1 HY by Cholesky, or raise DataError if it is not determined.

    alpha: one number, or one per row of G.
    """
    solution: Array = scipy.linalg.cho_solve(_factor(G, alpha), HY, check_finite=False)
    return solution


def inverse(G: Array, alpha: float | Array) -> Array:
    """Return (G + alpha I)^-1, for solvers that apply it in every iteration."""
    identity = np.eye(len(G))
    result: Array = scipy.linalg.cho_solve(_factor(G, alpha), identity, check_finite=False)
    return result


def augment(R: Array, B: int, alpha: float) -> tuple[Array, Array]:
    """Return the triangle T and the right sides t of the ridge problem that R stands for.

    [R_H R_Y; sqrt(alpha) I 0] = Q [T t1; 0 t2], so that  b = T^-1 t1  and the residual of the
    pooled problem has length |t2|. t: t1 above t2. The condition is not squared.
    """
    n, width = R.shape
    stack = np.zeros((n + B, width))
    stack[:n] = R
    stack[n:, :B].flat[:: B + 1] = np.sqrt(alpha)
    (joint,) = scipy.linalg.qr(stack, mode="r", overwrite_a=True, check_finite=False)
    return joint[:B, :B], joint[:, B:]


def undetermined_error(alpha: float) -> DataError:
    """Return the error for features that do not determine the coefficients."""
    return DataError(
        f"the features are linearly dependent, so that alpha={alpha:g} leaves the coefficients "
        "undetermined: raise alpha, or use fewer units (n_hidden, or n_reservoir)"
    )


def _factor(G: Array, alpha: float | Array) -> tuple[Array, bool]:
    A = G.copy()
    A.flat[:: len(A) + 1] += alpha
    try:
        factor: tuple[Array, bool] = scipy.linalg.cho_factor(
            A, overwrite_a=True, check_finite=False
        )
    except np.linalg.LinAlgError:
        raise undetermined_error(float(np.max(alpha))) from None
    diagonal = np.abs(np.diagonal(factor[0]))
    if np.max(alpha) == 0 and diagonal.min() <= 1e-7 * diagonal.max():
        raise undetermined_error(float(np.max(alpha)))
    return factor
