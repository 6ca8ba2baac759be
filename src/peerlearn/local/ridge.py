"""The ridge solution of normal equations, and the inverse behind it (thesis, section 2.2.1)."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from peerlearn.arrays import Array
from peerlearn.errors import DataError


def solve_ridge(G: Array, HY: Array, alpha: float) -> Array:
    """(G + alpha I)^-1 HY by Cholesky, or the sentence for data that does not determine it."""
    A = G.copy()
    A.flat[:: len(A) + 1] += alpha
    try:
        factor = scipy.linalg.cho_factor(A, overwrite_a=True, check_finite=False)
        smallest, largest = (f(np.abs(np.diagonal(factor[0]))) for f in (np.min, np.max))
        if smallest <= 1e-7 * largest and alpha == 0:
            raise np.linalg.LinAlgError
    except np.linalg.LinAlgError:
        raise DataError(
            f"the features are linearly dependent, so that alpha={alpha:g} leaves the coefficients undetermined: "
            "raise alpha, or use fewer hidden units"
        ) from None
    solution: Array = scipy.linalg.cho_solve(factor, HY, check_finite=False)
    return solution


def inverse(G: Array, shift: float) -> Array:
    """(G + shift I)^-1, for a matrix that is applied in every iteration."""
    A = G.copy()
    A.flat[:: len(A) + 1] += shift
    factor = scipy.linalg.cho_factor(A, overwrite_a=True, check_finite=False)
    inverted: Array = scipy.linalg.cho_solve(factor, np.eye(len(A)), check_finite=False)
    return inverted
