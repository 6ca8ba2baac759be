"""Laplacian kernel ridge regression from distances alone (thesis, section 7.2.1).

    W_ij = exp(-D_ij / 2 t^2)  if i is among the n nearest of j, or j of i
                               t: mean length of these edges
    L    = I - G^-1/2 W G^-1/2,   G = Diag(W 1)             normalised graph Laplacian
    K_ij = exp(-D_ij / 2 w^2)                               Gaussian kernel of width w
    a    = (J K + gamma_A I + gamma_I L^q K)^-1 y           J: 1 where a row has a label

All rows that are as near as the n-th count as nearest, so the order of the rows does not matter.

Belkin, Niyogi and Sindhwani, Manifold regularization, 2006; Melacci and Belkin, Laplacian support
vector machines trained in the primal, 2011. gamma_A and gamma_I as printed in the thesis, without
Belkin's division by the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from peerlearn.arrays import Array
from peerlearn.local.gaussian import gaussian

# Differences that count as rounding: relative to a distance, and to the median distance.
EQUAL = 1e-9
NOTHING = 1e-12


@dataclass(frozen=True)
class Manifold:
    """Settings of the formulas: width w, n_neighbors n, gamma_A, gamma_I, and the power q."""

    width: float
    n_neighbors: int
    gamma_A: float
    gamma_I: float
    power: int

    def coefficients(
        self,
        D: Array,
        J: Array,
        y: Sequence[Array],
    ) -> list[Array]:
        """Return a for each of several y, from squared distances D between all rows."""
        K = gaussian(D, self.width)
        A = np.multiply(J[:, None], K, order="F")  # as LAPACK wants it
        A[np.diag_indices_from(A)] += self.gamma_A
        if self.gamma_I > 0:
            L = laplacian(D, self.n_neighbors)
            LqK = K
            for _ in range(self.power):
                LqK = L @ LqK
            A += self.gamma_I * LqK
        factors = scipy.linalg.lu_factor(A, overwrite_a=True, check_finite=False)
        # One by one: the bits of several at once would depend on how many there are, and so on
        # which agents share a process.
        return [scipy.linalg.lu_solve(factors, own, check_finite=False) for own in y]


def laplacian(D: Array, n_neighbors: int) -> Any:
    """Return the normalised Laplacian, sparse, of the graph that joins each row to its nearest."""
    N = len(D)
    # Not n_neighbors - 1: each row is the nearest to itself, and does not count.
    reach = np.partition(D, n_neighbors, axis=1)[:, n_neighbors]
    reach = reach * (1 + EQUAL) + NOTHING * np.median(D, axis=1)
    near = reach[:, None] >= D
    np.fill_diagonal(near, False)
    t = float(np.sqrt(D[near]).mean()) or 1.0  # the mean is 0 if all rows are the same
    i, j = np.nonzero(near | near.T)
    weights = gaussian(D[i, j], t)
    W = sp.csr_array((weights, (i, j)), shape=(N, N))
    G = W.sum(axis=1)
    # A row so far from all others that its weights are 0 in float64. It smooths nothing.
    alone = G == 0
    inverse_roots = 1 / np.sqrt(np.where(alone, 1.0, G))
    roots = sp.diags_array(np.where(alone, 0.0, inverse_roots))
    return sp.csr_array(sp.diags_array(1.0 - alone) - roots @ W @ roots)
