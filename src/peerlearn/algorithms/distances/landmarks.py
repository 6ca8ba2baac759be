"""Landmarks: every agent tells how far its rows are from a few points that all know, and everybody knows all distances.

    c        the mean of all rows                                                    over the network: one sum
    s        the largest root mean square of |x - c| at an agent                     over the network: flooded
    c, c + s q_1, .., c + s q_d     the landmarks; q: orthonormal, drawn from the common seed                alone
    t_i0 = |x_i - c|^2,   t_ij = |x_i - c - s q_j|^2                                                         alone
    T        everybody's t                                                           over the network: a tree
    z_ij = (t_i0 + s^2 - t_ij) / 2s,   which is (x_i - c)'q_j                                                alone
    D_ij = |z_i - z_j|^2                                                                                     alone

Trilateration; Silva and Tenenbaum, Global versus local methods in nonlinear dimensionality
reduction, 2003. The landmarks span the space, so D is exact: what travels are N (d + 1) numbers
where the thesis completes N^2 (sections 7.3.2 and 7.3.3). It gives every row away to every agent:
all know c and q, and x_i = c + sum_j z_ij q_j. See docs/privacy.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from peerlearn.algorithms.agreement import Drawn, probe
from peerlearn.algorithms.all_gather import WAY_OUT
from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.distances.partial_matrix import Known
from peerlearn.algorithms.distances.row_index import Places
from peerlearn.algorithms.flooding import maximum
from peerlearn.arrays import Array, sendable
from peerlearn.errors import DataError, WireError
from peerlearn.local.squared_distances import squared_distances
from peerlearn.network.base import Network

__all__ = ["Landmarks"]

LARGEST = 1e120  # of a scale whose square, and sums of it, are still numbers
FEW = 64


@dataclass(frozen=True)
class Landmarks:
    """Has no settings: d + 1 landmarks for d columns are enough, and fewer are not."""

    name: ClassVar = "landmarks"

    def drawn(self, columns: int, seed: int) -> Drawn:
        """Return what agents compare of the landmarks, which they draw alike: those of rows with FEW columns at most.

        The factorisation of many columns takes as long as all else, and its signs are those of few.
        """
        d = min(columns, FEW)
        return Drawn("the landmarks", computed=squared_distances(probe(4, d), orthonormal(d, seed)))

    def share(self, network: Network, patterns: Sequence[Array], seed: int) -> Known:
        """The distances between all rows, from those of the hosted agents; all agents draw from the same seed."""
        network.must_hear_everybody(WAY_OUT)
        d = patterns[0].shape[1]
        places = Places.agree(network, [len(X) for X in patterns])
        c = total(network, np.stack([np.add.reduce(X, axis=0) for X in patterns]))[0] / places.N
        centred = [X - c for X in patterns]
        squares = np.array([np.vdot(X, X) / max(len(X), 1) for X in centred])
        s = float(
            maximum(network, sendable(np.sqrt(squares)))[0]
        )  # what the first hosted agent knows, all know
        if not s <= LARGEST:
            raise DataError(
                f"rows lie {s:.3g} from their mean at one agent, too far to square: scale the columns at all agents"
            )
        s = s or 1.0  # all rows are the same
        points = np.vstack([np.zeros(d), s * orthonormal(d, seed)])
        T = places.all_gather(network, [squared_distances(X, points) for X in centred], d + 1)
        _possible(T, places, s)
        z = (T[:, :1] + s**2 - T[:, 1:]) / (2 * s)
        return Known(places, [squared_distances(z)] * len(patterns), columns=d)


def orthonormal(d: int, seed: int) -> Array:
    """d orthonormal rows, the same for everybody with the seed."""
    q: Array = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]
    return q


def _possible(T: Array, places: Places, s: float) -> None:
    """Refuse distances that no row can have: at no agent lies one beyond sqrt(N_k) s."""
    for agent, count in enumerate(places.counts):
        if np.count_nonzero(T[places.of(agent)] > 1.001 * (np.sqrt(count) + 1) ** 2 * s**2):
            raise WireError(
                f"agent {agent} sent distances that no row of its can have: it runs something else"
            )
