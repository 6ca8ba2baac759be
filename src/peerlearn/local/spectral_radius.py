"""The spectral radius of a sparse matrix, the same bits in every process.

    max |lambda|, lambda the eigenvalues of W

Units that no loop joins have no part in it: eigenvalues are those of the strongly connected parts
of the graph of W,
and without a loop there is exactly zero, where a numerical method would see rounding. A large part
by Arnoldi's method, from a fixed start and with several eigenvalues, as many of a random matrix are
of almost the same size; a small one, or where the method fails, by all eigenvalues.

Lehoucq, Sorensen and Yang, ARPACK users' guide, 1998.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, eigs

from peerlearn.arrays import Array
from peerlearn.local.threads import one_blas_thread

SMALL = 100  # units of which all eigenvalues take milliseconds
SEVERAL = 6  # eigenvalues


def spectral_radius(W: Array) -> float:
    _, part = connected_components(scipy.sparse.csr_array(W), directed=True, connection="strong")
    alone = np.bincount(part)[part] == 1
    parts = [np.flatnonzero(part == one) for one in np.unique(part[~alone])]
    with one_blas_thread():  # the last bits depend on how many there are
        largest = [_of_connected(W[np.ix_(own, own)]) for own in parts]
    return float(max(largest + np.abs(np.diagonal(W)[alone]).tolist()))


def _of_connected(W: Array) -> float:
    if len(W) <= SMALL:
        return _largest(np.linalg.eigvals(W))
    start = np.random.default_rng(0).uniform(-1.0, 1.0, len(W))
    try:
        return _largest(
            eigs(scipy.sparse.csr_array(W), k=SEVERAL, v0=start, return_eigenvectors=False)
        )
    except ArpackError:
        return _largest(np.linalg.eigvals(W))


def _largest(eigenvalues: Any) -> float:
    return float(np.abs(eigenvalues).max())
