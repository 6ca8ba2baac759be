"""Anchors that all agents know: points that represent the rows of all, found from means of rows.

    C_k, n_k = centres of k's rows (k-means), and the rows nearest to each   alone
    e_k      = the sum of these rows' squared distances from their centre    alone
    C, n, e  = the C_k, n_k and e_k of all agents                            over the network
    A        = m centres of C, each of whose points counts n times           at one agent
    P        = U S^-1/2, from k(A) = U S U'                                  at one agent
    A, P     = those of the agent in the middle                              over the network

All agents have the same seed, but they do not each compute A and P: k-means amplifies a difference
in the last bit, and an eigenvector may point the other way on a machine of another kind. So the
agent in the middle computes them. A centre of a single row would be that row. Such rows join the
nearest other centre, so an agent sends at most half as many centres as it has rows. Only an agent
with one row sends that row here. The sums of `AnchorLapClassifier` reveal the labelled row of an
agent that has only one.

k-means++: Arthur and Vassilvitskii, 2007, section 2.2. Two stages: Guha et al., Clustering data
streams, 2003.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from peerlearn.algorithms.all_gather import all_gather
from peerlearn.algorithms.flooding import broadcast_from_center
from peerlearn.algorithms.unexpected import unexpected_message
from peerlearn.arrays import Array, Indices, all_finite
from peerlearn.errors import DataError
from peerlearn.local.anchor_graph import AnchorGraph, pieces, projection
from peerlearn.local.squared_distances import squared_distances
from peerlearn.network.base import Network

# Defaults; fewer where the data have no more.
ANCHORS = 100
NEAREST = 10
RANK = 60
LARGEST = 1e100  # entry of a centre
MOST = 2.0**53  # rows of a centre
STEPS = 20  # of k-means: later steps move anchors too little to matter here


@dataclass(frozen=True)
class Anchoring:
    """Settings of anchors.

    width: of the kernel; None takes the distance between rows of an anchor and rows of its s-th
    nearest anchor, whatever the unit of the columns. anchors: m in the formulas; None is 100.
    local: largest number of centres of one agent; None is enough for four times m over all agents,
    and at least ten. nearest: s; None is 10. rank: r; None is 60. A default is lowered if the data
    have less; a number that the data do not have is an error.
    """

    width: float | None = None
    anchors: int | None = None
    local: int | None = None
    nearest: int | None = None
    rank: int | None = None

    def agree(self, network: Network, inputs: Sequence[Array], seed: int) -> AnchorGraph:
        """Return the same anchors and features at every agent, from the rows of the hosted ones."""
        columns = inputs[0].shape[1]
        own = [
            self._find_centres(X, network.size, (seed, k))
            for k, X in zip(network.hosted, inputs, strict=True)
        ]
        tables = all_gather(network, own, columns + 2)
        for agent, table in enumerate(tables):
            self._check_centres(table, agent, network.size)
        every = np.vstack(tables)
        C = every[:, :-2]
        n = every[:, -2]
        e = every[:, -1]
        m = self._count_anchors(len(np.unique(C, axis=0)))
        s = min(self.nearest or NEAREST, m)
        rank = min(self.rank or RANK, m)
        found = np.zeros((len(network.hosted), m, columns + rank))
        for k, agent in enumerate(network.hosted):
            if agent == network.tree.root:
                A, _ = centres(C, n, m, np.random.default_rng(seed))
                width = self.width or _reach(A, s, C, n, e)
                found[k] = np.hstack([A, projection(A, width, rank)])
        # The first hosted agent knows what all know.
        A, P = np.split(broadcast_from_center(network, found)[0], [columns], axis=1)
        P = P[:, np.count_nonzero(P, axis=0) > 0]
        if not all_finite(A) or not all_finite(P) or P.shape[1] == 0:
            raise unexpected_message(network.tree.root, f"{m} anchors")
        width = self.width or _reach(A, s, C, n, e)
        if self.rank is not None and P.shape[1] < self.rank:
            raise DataError(
                f"rank={self.rank} is too large for the data: their {m} anchors span {P.shape[1]} "
                f"directions at width={width:g}. Set rank to {P.shape[1]} or less, "
                "or to None for as many as there are"
            )
        return AnchorGraph(A, P, float(width), s)

    def _find_centres(self, X: Array, agents: int, seed: tuple[int, int]) -> Array:
        """Return one agent's table: centres, how many rows are nearest to each, and how far.

        No centre has a single row, if the agent has several.
        """
        if len(X) == 0:
            return np.empty((0, X.shape[1] + 2))
        count = min(self._most_centres(agents), max(len(X) // 2, 1))
        each = np.ones(len(X))
        C, n = centres(X, each, count, np.random.default_rng(seed))
        # Centres of one row are dropped, except in a network of one agent, which sends nothing.
        while agents > 1 and len(C) > 1 and np.count_nonzero(n < 2):
            several = C[n > 1]
            C, n = _means(X, each, several if len(several) else C[:1])
        nearest = _nearest(X, C)
        away = X - C[nearest]
        e = np.bincount(nearest, np.einsum("ij,ij->i", away, away), len(C))
        return np.column_stack([C, n, e])

    def _most_centres(self, agents: int) -> int:
        """Return how many centres one agent may send."""
        m = self.anchors or ANCHORS
        return self.local or min(m, max(10, -(-4 * m // agents)))

    def _check_centres(self, table: Array, agent: int, agents: int) -> None:
        """Refuse, at all agents alike, a table that no agent can have computed."""
        C = table[:, :-2]
        n = table[:, -2]
        e = table[:, -1]
        if (
            len(table) > self._most_centres(agents)
            or np.count_nonzero(np.abs(C) > LARGEST)
            or np.count_nonzero((n < 1) | (n > MOST) | (n != np.rint(n)))
            or np.count_nonzero((e < 0) | (e > MOST * LARGEST**2))
        ):
            raise unexpected_message(agent, "centres of rows")

    def _count_anchors(self, different: int) -> int:
        """Return m, if there are that many different centres."""
        if self.anchors is not None and self.anchors > different:
            raise DataError(
                f"n_anchors={self.anchors} is too large for the data: agents sent {different} "
                "different centres, at most half as many as they have rows. "
                f"Set n_anchors to {different} or less, or to None for as many as there are, "
                "raise n_local, or give more rows"
            )
        m = min(self.anchors or ANCHORS, different)
        if self.nearest is not None and self.nearest > m:
            raise DataError(
                f"n_nearest={self.nearest} is more than the {m} anchors that there are: "
                f"set it to {m} or less, or to None for 10 or all of them"
            )
        return m


def centres(X: Array, weights: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return `count` centres of weighted rows, and the weight of the rows nearest to each.

    The same input gives the same bits: only matrix products use threads.
    """
    C = _spread(X, weights, count, rng)
    for _ in range(STEPS):
        before = C
        C, n = _means(X, weights, C)
        if np.array_equal(C, before):
            break
    return C, n


def _means(X: Array, weights: Array, C: Array) -> tuple[Array, Array]:
    """Return mean and weight of the rows nearest to each centre; a centre without rows stays."""
    owner = _nearest(X, C)
    one_per_row = np.arange(len(X) + 1)
    members = sp.csr_array((weights, owner, one_per_row), shape=(len(X), len(C))).T
    n = members @ np.ones(len(X))
    means = members @ X / np.where(n > 0, n, 1.0)[:, None]
    return np.where(n[:, None] > 0, means, C), n


def _reach(A: Array, s: int, C: Array, n: Array, e: Array) -> float:
    """Return the median distance of a row of an anchor from one of its s-th nearest anchor.

    w^2 = |a_i - a_j|^2 + 2 v, with v the mean squared distance of rows from their anchor, computed
    from the centres. It is 1 if all rows are the same.
    """
    place = min(s, len(A) - 1)
    between = np.partition(squared_distances(A), place, axis=1)[:, place]
    away = C - A[_nearest(C, A)]
    squares = np.einsum("ij,ij->i", away, away)
    v = (np.add.reduce(e) + n @ squares) / np.add.reduce(n)
    return float(np.sqrt(np.median(between) + 2 * v)) or 1.0


def _spread(X: Array, weights: Array, count: int, rng: np.random.Generator) -> Array:
    """Return rows far from each other, as k-means++ draws them.

    If no other row differs from all of these, one of them is drawn again.
    """
    away = weights
    chosen: list[int] = []
    for _ in range(count):
        upto = np.cumsum(away)
        place = int(np.searchsorted(upto, rng.random() * upto[-1], side="right"))
        chosen.append(min(place, len(X) - 1))
        d = squared_distances(X[chosen[-1:]], X)[0] * weights
        away = d if len(chosen) == 1 else np.minimum(away, d)
    return X[chosen]


def _nearest(X: Array, C: Array) -> Indices:
    """Return the index of the nearest centre of each row."""
    owner = np.empty(len(X), dtype=np.intp)
    for piece in pieces(len(X)):
        owner[piece] = np.argmin(squared_distances(X[piece], C), axis=1)
    return owner
