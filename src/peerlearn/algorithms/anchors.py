"""Anchors that all agents know: points that represent the rows of all, found from means of rows.

    N        = number of rows of all agents, from which m follows            over the network
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
from typing import Any

import numpy as np
import scipy.sparse as sp

from peerlearn.algorithms.all_gather import all_gather
from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.sums import broadcast_from_center, sum_alike
from peerlearn.algorithms.unexpected import unexpected_message
from peerlearn.arrays import Array, Indices, all_finite
from peerlearn.errors import DataError
from peerlearn.local.anchor_graph import AnchorGraph, pieces, projection
from peerlearn.local.squared_distances import squared_distances
from peerlearn.network.base import Network

# Defaults; fewer where the data have no more.
ROWS_PER_ANCHOR = 4
FEWEST = 10  # anchors, whatever the number of rows
ANCHORS = 300  # at most: the sums that are sent grow with the square of it
NEAREST = 5
REACH = 10  # which anchor's distance is the width
LARGEST = 1e100  # entry of a centre
MOST = 2.0**53  # rows of a centre
STEPS = 20  # of k-means: later steps move anchors too little to matter here


@dataclass(frozen=True)
class Anchoring:
    """Settings of anchors.

    width: of the kernel; None takes the distance between rows of an anchor and rows of its tenth
    nearest anchor, whatever the unit of the columns. anchors: m in the formulas; None is a quarter
    of the number of rows, from 10 to 300. local: largest number of centres of one agent; None is
    enough for four times m over all agents, and at least ten. nearest: s; None is 5. rank: r; None
    is m. A default is lowered if the data have less; a number that the data do not have is an
    error.
    """

    width: float | None = None
    anchors: int | None = None
    local: int | None = None
    nearest: int | None = None
    rank: int | None = None

    def agree(self, network: Network, inputs: Sequence[Any], seed: int) -> AnchorGraph:
        """Return the same anchors and features at every agent, from the rows of the hosted ones.

        Rows may be sparse.
        """
        if self.anchors is None:
            wanted = _anchors_for(network, inputs)
            return self._agree(network, inputs, seed, wanted)
        return self._agree(network, inputs, seed, self.anchors)

    def _agree(
        self, network: Network, inputs: Sequence[Any], seed: int, wanted: int
    ) -> AnchorGraph:
        columns = inputs[0].shape[1]
        own = [
            self._find_centres(X, network.size, (seed, k), wanted)
            for k, X in zip(network.hosted, inputs, strict=True)
        ]
        tables = all_gather(network, own, columns + 2)
        for agent, table in enumerate(tables):
            self._check_centres(table, agent, network.size, wanted)
        every = np.vstack(tables)
        C = every[:, :-2]
        n = every[:, -2]
        e = every[:, -1]
        m = self._count_anchors(len(np.unique(C, axis=0)), wanted)
        s = min(self.nearest or NEAREST, m)
        rank = min(self.rank or m, m)
        found = np.zeros((len(network.hosted), m, columns + rank))
        for k, agent in enumerate(network.hosted):
            if agent == network.tree.root:
                A, _ = centres(C, n, m, np.random.default_rng(seed))
                width = self.width or _reach(A, C, n, e)
                found[k] = np.hstack([A, projection(A, width, rank)])
        # The first hosted agent knows what all know.
        A, P = np.split(broadcast_from_center(network, found)[0], [columns], axis=1)
        P = P[:, np.count_nonzero(P, axis=0) > 0]
        if not all_finite(A) or not all_finite(P) or P.shape[1] == 0:
            raise unexpected_message(network.tree.root, f"{m} anchors")
        width = self.width or _reach(A, C, n, e)
        if self.rank is not None and P.shape[1] < self.rank:
            raise DataError(
                f"rank={self.rank} is too large for the data: their {m} anchors span {P.shape[1]} "
                f"directions at width={width:g}. Set rank to {P.shape[1]} or less, "
                "or to None for as many as there are"
            )
        return AnchorGraph(A, P, float(width), s)

    def _find_centres(self, X: Any, agents: int, seed: tuple[int, int], wanted: int) -> Array:
        """Return one agent's table: centres, how many rows are nearest to each, and how far.

        No centre has a single row, if the agent has several.
        """
        rows = X.shape[0]
        if rows == 0:
            return np.empty((0, X.shape[1] + 2))
        count = min(self._most_centres(agents, wanted), max(rows // 2, 1))
        each = np.ones(rows)
        C, n = centres(X, each, count, np.random.default_rng(seed))
        # Centres of one row are dropped, except in a network of one agent, which sends nothing.
        while agents > 1 and len(C) > 1 and np.count_nonzero(n < 2):
            several = C[n > 1]
            C, n = _means(X, each, several if len(several) else C[:1])
        nearest = _nearest(X, C)
        e = np.bincount(nearest, _squares_from(X, C, nearest), len(C))
        return np.column_stack([C, n, e])

    def _most_centres(self, agents: int, wanted: int) -> int:
        """Return how many centres one agent may send."""
        return self.local or min(wanted, max(10, -(-4 * wanted // agents)))

    def _check_centres(self, table: Array, agent: int, agents: int, wanted: int) -> None:
        """Refuse, at all agents alike, a table that no agent can have computed."""
        C = table[:, :-2]
        n = table[:, -2]
        e = table[:, -1]
        if (
            len(table) > self._most_centres(agents, wanted)
            or np.count_nonzero(np.abs(C) > LARGEST)
            or np.count_nonzero((n < 1) | (n > MOST) | (n != np.rint(n)))
            or np.count_nonzero((e < 0) | (e > MOST * LARGEST**2))
        ):
            raise unexpected_message(agent, "centres of rows")

    def _count_anchors(self, different: int, wanted: int) -> int:
        """Return m, if there are that many different centres."""
        if self.anchors is not None and self.anchors > different:
            raise DataError(
                f"n_anchors={self.anchors} is too large for the data: agents sent {different} "
                "different centres, at most half as many as they have rows. "
                f"Set n_anchors to {different} or less, or to None for as many as there are, "
                "raise n_local, or give more rows"
            )
        m = min(wanted, different)
        if self.nearest is not None and self.nearest > m:
            raise DataError(
                f"n_nearest={self.nearest} is more than the {m} anchors that there are: "
                f"set it to {m} or less, or to None for 5 or all of them"
            )
        return m


def _anchors_for(network: Network, inputs: Sequence[Any]) -> int:
    """Return the default number of anchors for the rows of the whole network."""
    own = np.array([[float(X.shape[0])] for X in inputs])
    sums = sum_alike(network, own, Averaging(tolerance=1e-9))
    rows = float(sums[0, 0])  # the same at all agents
    if not 0.5 < rows < MOST:
        raise unexpected_message(network.tree.root, "a number of rows")
    return min(max(round(rows) // ROWS_PER_ANCHOR, FEWEST), ANCHORS)


def centres(X: Any, weights: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
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


def _means(X: Any, weights: Array, C: Array) -> tuple[Array, Array]:
    """Return mean and weight of the rows nearest to each centre; a centre without rows stays."""
    owner = _nearest(X, C)
    rows = X.shape[0]
    one_per_row = np.arange(rows + 1)
    members = sp.csr_array((weights, owner, one_per_row), shape=(rows, len(C))).T
    n = members @ np.ones(rows)
    means = _dense(members @ X) / np.where(n > 0, n, 1.0)[:, None]
    return np.where(n[:, None] > 0, means, C), n


def _reach(A: Array, C: Array, n: Array, e: Array) -> float:
    """Return the median distance of a row of an anchor from one of its tenth nearest anchor.

    w^2 = |a_i - a_j|^2 + 2 v, with v the mean squared distance of rows from their anchor, computed
    from the centres. It is 1 if all rows are the same.
    """
    place = min(REACH, len(A) - 1)
    between = np.partition(squared_distances(A), place, axis=1)[:, place]
    away = C - A[_nearest(C, A)]
    squares = np.einsum("ij,ij->i", away, away)
    v = (np.add.reduce(e) + n @ squares) / np.add.reduce(n)
    return float(np.sqrt(np.median(between) + 2 * v)) or 1.0


def _spread(X: Any, weights: Array, count: int, rng: np.random.Generator) -> Array:
    """Return rows far from each other, as k-means++ draws them.

    If no other row differs from all of these, one of them is drawn again.
    """
    away = weights
    chosen: list[int] = []
    for _ in range(count):
        upto = np.cumsum(away)
        place = int(np.searchsorted(upto, rng.random() * upto[-1], side="right"))
        chosen.append(min(place, X.shape[0] - 1))
        d = _squares_to(X, chosen[-1]) * weights
        away = d if len(chosen) == 1 else np.minimum(away, d)
    return _dense(X[chosen])


def _squares_to(X: Any, place: int) -> Array:
    """Return the squared distances of all rows from one of them."""
    if sp.issparse(X):
        return np.asarray(squared_distances(X, _dense(X[[place]]))[:, 0])
    return np.asarray(squared_distances(X[[place]], X)[0])


def _squares_from(X: Any, C: Array, owner: Indices) -> Array:
    """Return the squared distance of each row from its own centre."""
    if sp.issparse(X):
        squares = np.empty(X.shape[0])
        for piece in pieces(X.shape[0]):
            D = squared_distances(X[piece], C)
            squares[piece] = np.take_along_axis(D, owner[piece, None], axis=1)[:, 0]
        return squares
    away = X - C[owner]
    return np.asarray(np.einsum("ij,ij->i", away, away))


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sp.issparse(X) else X)


def _nearest(X: Any, C: Array) -> Indices:
    """Return the index of the nearest centre of each row."""
    owner = np.empty(X.shape[0], dtype=np.intp)
    for piece in pieces(X.shape[0]):
        owner[piece] = np.argmin(squared_distances(X[piece], C), axis=1)
    return owner
