"""Landmarks: agents send how far their rows are from a few points that all know.

    c        the mean of all rows                                       over the network: one sum
    s        the largest root mean square of |x - c| at an agent        over the network: flooded
    c, c + s q_1, .., c + s q_d     the landmarks                       alone
    t_i0 = |x_i - c|^2,   t_ij = |x_i - c - s q_j|^2                    alone
    T        t of all rows                                              over the network: a tree
    z_ij = (t_i0 + s^2 - t_ij) / 2s,   which is (x_i - c)'q_j           alone
    D_ij = |z_i - z_j|^2                                                alone

q is orthonormal, drawn from the common seed. Trilateration; Silva and Tenenbaum, Global versus
local methods in nonlinear dimensionality reduction, 2003. The landmarks span the space, so D is
exact: N (d + 1) numbers are sent where the thesis completes N^2 (sections 7.3.2 and 7.3.3). It
reveals every row to every agent: all know c and q, and x_i = c + sum_j z_ij q_j. See
docs/privacy.md.
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
from peerlearn.algorithms.sums import maximum
from peerlearn.algorithms.unexpected import LIKELY_CAUSE
from peerlearn.arrays import Array, sendable
from peerlearn.errors import DataError, WireError
from peerlearn.local.squared_distances import squared_distances
from peerlearn.network.base import Network

__all__ = ["Landmarks"]

LARGEST = 1e120  # scale: its square, and sums of squares, do not overflow
FEW = 64  # columns whose landmarks are compared


@dataclass(frozen=True)
class Landmarks:
    """Exact distances between all rows, from distances to d + 1 common points.

    There are no settings: d + 1 landmarks for d columns are enough, and fewer are not. All agents
    can compute all rows from what is sent.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import Landmarks, SimulatedNetwork, graphs
    >>> rows = [np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), np.array([[0.0, 1.0]])]
    >>> known = Landmarks().share(SimulatedNetwork(graphs.ring(3)), rows, seed=0)
    >>> known.D[0].round(6)  # squared distances, at agent 0
    array([[ 0., 25.,  1.],
           [25.,  0., 18.],
           [ 1., 18.,  0.]])
    """

    name: ClassVar = "landmarks"

    def drawn(self, columns: int, seed: int) -> Drawn:
        """Return what agents compare of the landmarks, which they draw alike.

        Only landmarks of up to FEW columns are compared: the factorisation of many columns takes as
        long as everything else, and a difference shows in few columns too.
        """
        d = min(columns, FEW)
        return Drawn("the landmarks", computed=squared_distances(probe(4, d), orthonormal(d, seed)))

    def share(self, network: Network, patterns: Sequence[Array], seed: int) -> Known:
        """Return the distances between all rows, from the rows of the hosted agents.

        All agents draw from the same seed.
        """
        network.must_hear_everybody(WAY_OUT)
        d = patterns[0].shape[1]
        places = Places.agree(network, [len(X) for X in patterns])
        own_sums = [np.add.reduce(X, axis=0) for X in patterns]
        c = total(network, np.stack(own_sums))[0] / places.N
        centred = [X - c for X in patterns]
        squares = np.array([np.vdot(X, X) / max(len(X), 1) for X in centred])
        # Flooded: what the first hosted agent knows, all know.
        s = float(maximum(network, sendable(np.sqrt(squares)))[0])
        if not s <= LARGEST:
            raise DataError(
                f"rows are {s:.3g} from their mean at one agent, and the squares overflow: "
                "scale the columns at all agents"
            )
        s = s or 1.0  # 0: all rows are the same
        points = np.vstack([np.zeros(d), s * orthonormal(d, seed)])
        T = places.all_gather(network, [squared_distances(X, points) for X in centred], d + 1)
        _check_distances(T, places, s)
        z = (T[:, :1] + s**2 - T[:, 1:]) / (2 * s)
        return Known(places, [squared_distances(z)] * len(patterns), columns=d)


def orthonormal(d: int, seed: int) -> Array:
    """Return d orthonormal rows, the same for all agents with the seed."""
    square = np.random.default_rng(seed).standard_normal((d, d))
    q: Array = np.linalg.qr(square)[0]
    return q


def _check_distances(T: Array, places: Places, s: float) -> None:
    """Refuse distances that no row can have: no row is further from the mean than sqrt(N_k) s."""
    for agent, count in enumerate(places.counts):
        bound = 1.001 * (np.sqrt(count) + 1) ** 2 * s**2
        if np.count_nonzero(T[places.of(agent)] > bound):
            raise WireError(f"agent {agent} sent impossible distances: {LIKELY_CAUSE}")
