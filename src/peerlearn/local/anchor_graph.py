"""Features and graph on anchors that all agents know, and the sums that agents add up.

    k(x)_j = exp(-|x - a_j|^2 / 2 w^2)                     Gaussian kernel of width w
                                                           a_j: the anchors, rows of A
    phi(x) = P'k(x),   P = U S^-1/2,   k(A) = U S U'       Nystrom features: the r largest
                                                           eigenvalues of k(A)
    z(x)_j = exp(-|x - a_j|^2 / h) / sum of these          over the s anchors nearest to x, else 0
                                                           h: the largest of these s squared
                                                           distances
    W = Z Lambda^-1 Z',   Lambda = Diag(Z'1),   L = I - W  anchor graph of all N rows: two rows are
                                                           near each other if they are near the
                                                           same anchors

    b = (Phi_l'Phi_l + gamma_A I + gamma_I Phi'L^q Phi)^-1 Phi_l'Y         l: the rows with a label

No matrix here has N columns. With R = Lambda^-1/2 and T = R Z'Z R, whose eigenvalues lie between 0
and 1,

    Phi'L^q Phi = Phi'Phi - Phi'Z R (I + (I - T) + .. + (I - T)^(q-1)) R Z'Phi

where nothing grows and nothing is divided. All of it follows from H'H with H = [Phi Z], and from
Phi_l'Phi_l and Phi_l'Y, which are sums over rows. Z'1 = Z'Z 1, since rows of Z sum to one.

Williams and Seeger, Using the Nystrom method to speed up kernel machines, 2001; Liu, He and Chang,
Large graph construction for scalable semi-supervised learning, 2010, sections 3 and 4; gammas as in
the thesis, section 7.2.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from peerlearn.arrays import Array, Indices
from peerlearn.local.gaussian import gaussian
from peerlearn.local.normal_equations import NormalEquations
from peerlearn.local.squared_distances import squared_distances

ROWS = 4096  # rows at once, so that memory does not grow with an agent's rows
SMALLEST = 1e-10  # least eigenvalue of k(A) relative to the largest; smaller ones are rounding


def pieces(rows: int) -> Iterator[slice]:
    """Yield slices of all rows, some at a time."""
    return (slice(first, first + ROWS) for first in range(0, rows, ROWS))


def projection(
    A: Array,
    width: float,
    rank: int,
) -> Array:
    """Return P, anchors x rank, with columns of zeros for eigenvalues that are too small."""
    S, U = scipy.linalg.eigh(gaussian(squared_distances(A), width))
    S = S[::-1][:rank]
    U = U[:, ::-1][:, :rank]
    used = S / S[0] > SMALLEST
    roots = np.sqrt(np.where(used, S, 1.0))
    P: Array = np.where(used, U, 0.0) / roots
    return P


@dataclass(frozen=True)
class AnchorGraph:
    """Anchors and projection, the same at all agents.

    A: anchors, m x columns. P: projection, m x r. width: w. nearest: s, anchors per row.
    """

    A: Array
    P: Array
    width: float
    nearest: int

    def features(self, X: Any) -> Array:
        """Return Phi, rows x r. X may be sparse."""
        Phi = np.empty((X.shape[0], self.P.shape[1]))
        for piece in pieces(X.shape[0]):
            D = squared_distances(X[piece], self.A)
            Phi[piece] = gaussian(D, self.width) @ self.P
        return Phi

    def numbers(
        self,
        X: Any,
        Y: Array,
        labelled: Indices,
    ) -> Array:
        """Return what an agent adds to the sums.

        These are the numbers of rows and of labels, the triangles of H'H and Phi_l'Phi_l, and
        Phi_l'Y. labelled: which rows have a label. Y: targets of all rows.
        """
        m, r = self.P.shape
        HH = np.zeros((r + m, r + m))
        for piece in pieces(X.shape[0]):
            D = squared_distances(X[piece], self.A)
            Phi = gaussian(D, self.width) @ self.P
            Z = anchor_weights(D, self.nearest)
            H = np.hstack([Phi, Z])
            HH += H.T @ H
        graph = NormalEquations((r + m, 0), G=HH, P=np.zeros((r + m, 0)))
        counts = [X.shape[0], len(labelled)]
        return np.concatenate([counts, graph.numbers(), self.label_numbers(X, Y, labelled)])

    def label_numbers(self, X: Any, Y: Array, labelled: Indices) -> Array:
        """Return the last of these numbers, about labels: the triangle of Phi_l'Phi_l, and Phi_l'Y.

        labelled: which rows have a label that counts.
        """
        Phi_l = self.features(X[labelled])
        shape = (self.P.shape[1], Y.shape[1])
        return NormalEquations(shape, G=Phi_l.T @ Phi_l, P=Phi_l.T @ Y[labelled]).numbers()

    def coefficients(
        self,
        sums: Array,
        gamma_A: float,
        gamma_I: float,
        power: int,
    ) -> Array:
        """Return b, r x M, from the sums over all agents."""
        m, r = self.P.shape
        start = 2  # after the two counts
        stop = start + (r + m) * (r + m + 1) // 2
        graph = sums[start:stop]
        readout = sums[stop:]
        M = (len(readout) - r * (r + 1) // 2) // r
        HH, _ = NormalEquations.of_numbers(graph, (r + m, 0)).gram()
        G, PY = NormalEquations.of_numbers(readout, (r, M)).gram()
        A = G + gamma_I * _roughness(HH, r, power)
        e, V = scipy.linalg.eigh(A, check_finite=False)
        rounding = r * np.finfo(float).eps * e[-1]
        e = np.maximum(e, rounding)  # only rounding makes one negative
        scaled = (V.T @ PY) / (e + gamma_A)[:, None]
        return np.asarray(V @ scaled)


def anchor_weights(D: Array, nearest: int) -> Array:
    """Return Z from squared distances to the anchors, rows x m."""
    chosen = np.argpartition(D, nearest - 1, axis=1)[:, :nearest]
    d = np.take_along_axis(D, chosen, axis=1)
    h = np.max(d, axis=1, keepdims=True)
    near = np.exp(-d / np.where(h > 0, h, 1.0))  # equal weights if x lies on all of them
    Z = np.zeros_like(D)
    near /= np.sum(near, axis=1, keepdims=True)
    np.put_along_axis(Z, chosen, near, axis=1)
    return Z


def _roughness(
    HH: Array,
    r: int,
    power: int,
) -> Array:
    """Return Phi'L^q Phi."""
    PhiPhi = HH[:r, :r]
    PhiZ = HH[:r, r:]
    ZZ = HH[r:, r:]
    Lambda = np.sum(ZZ, axis=1)
    # Lambda is 0 at an anchor that is near to no row.
    R = 1 / np.sqrt(np.where(Lambda > 0, Lambda, 1.0))
    one = np.eye(len(ZZ))
    rest = one - R[:, None] * ZZ * R
    series = one
    for _ in range(power - 1):
        series = one + rest @ series
    PhiZR = PhiZ * R
    return np.asarray(PhiPhi - PhiZR @ series @ PhiZR.T)
