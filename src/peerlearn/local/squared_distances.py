"""Squared Euclidean distances between rows, by one matrix product.

    |x - y|^2 = |x - c|^2 + |y - c|^2 - 2 (x - c)'(y - c)    c: the median row of Y, or else of X

This holds with any c. With rows far from the origin and c = 0, the three terms would be large and
their sum small, and rounding would leave little of it. The median is used because one row far from
all others would move a mean. The error of an entry is about 1e-16 (|x - c|^2 + |y - c|^2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from peerlearn.arrays import Array


def squared_distances(X: Any, Y: Array | None = None) -> Array:
    """Return D_ij = |x_i - y_j|^2.

    Without Y, return the distances between the rows of X: symmetric, with zeros on the diagonal.
    X may be sparse if Y is given. It is not centred then, because that would fill it.

    >>> squared_distances(np.array([[1e8, 0.0], [1e8 + 3.0, 4.0]]))
    array([[ 0., 25.],
           [25.,  0.]])
    """
    if sp.issparse(X) and Y is not None:
        return _of_sparse(X, Y)
    among = X if Y is None else Y
    c = np.median(among, axis=0) if len(among) else 0.0
    X = X - c
    Y = X if Y is None else Y - c
    xx = np.einsum("ij,ij->i", X, X)
    yy = xx if Y is X else np.einsum("ij,ij->i", Y, Y)
    D: Array = X @ Y.T
    D *= -2.0
    D += xx[:, None]
    D += yy
    np.maximum(D, 0.0, out=D)
    if Y is X:
        D = (D + D.T) / 2  # (i, j) and (j, i) were summed in different orders
        np.fill_diagonal(D, 0.0)
    return D


def _of_sparse(X: Any, Y: Array) -> Array:
    rows = sp.csr_array(X)
    xx = np.asarray((rows * rows).sum(axis=1))
    D: Array = np.asarray(rows @ Y.T)
    D *= -2.0
    D += xx[:, None]
    D += np.einsum("ij,ij->i", Y, Y)
    return np.maximum(D, 0.0)
