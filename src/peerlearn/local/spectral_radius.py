"""The spectral radius of a sparse matrix, the same bits in every process.

    max |lambda|, lambda the eigenvalues of W

Units that are in no loop do not matter: the eigenvalues are those of the strongly connected parts
of the graph of W. Without a loop the radius is exactly zero, where a numerical method would return
rounding. The eigenvalues of a large part come from Arnoldi's method, with a fixed start and for
SEVERAL eigenvalues, because many eigenvalues of a random matrix have almost the same size. For a
small part, or if the method fails, all eigenvalues are computed.

Lehoucq, Sorensen and Yang, ARPACK users' guide, 1998.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, eigs

from peerlearn.arrays import Array, one_blas_thread

SMALL = 100  # units; all eigenvalues of so many take milliseconds
SEVERAL = 6  # eigenvalues of Arnoldi's method


def spectral_radius(W: Array) -> float:
    """Return max |lambda|."""
    _, part = connected_components(scipy.sparse.csr_array(W), directed=True, connection="strong")
    alone = np.bincount(part)[part] == 1
    parts = [np.flatnonzero(part == one) for one in np.unique(part[~alone])]
    with one_blas_thread():  # the last bits depend on the number of threads
        largest = [_radius_of_part(W[np.ix_(own, own)]) for own in parts]
    loops = np.abs(np.diagonal(W)[alone])  # a unit that is its own part may be linked to itself
    return float(max(largest + loops.tolist()))


def _radius_of_part(W: Array) -> float:
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
