"""Anchors that all agents know: points that stand for the rows of everybody, found from means of rows.

    C_k, n_k = centres of k's rows, and how many rows are nearest to each      alone: k-means; two rows at least each
    e_k      = the sum of these rows' squared distances from it                alone
    C, n, e  = the C_k, n_k and e_k of all agents                              over the network: everybody's tables
    A        = m centres of C, each of whose points counts n times             alone, at the agent in the middle
    P        = U S^-1/2, from k(A) = U S U'                                    alone, at the agent in the middle
    A, P     = those of the agent in the middle                                over the network

All start from the same seed, yet they do not each compute A and P: k-means makes much of a last
bit, and an eigenvector
may point the other way on a machine of another kind. A centre of one row would be that row: such
rows go to the centre next to theirs, so that an agent sends half as many centres as it has rows at
most. Only an agent with one row sends it here; the sums of `AnchorLapClassifier` give away the
labelled row of an agent that has one.

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
from peerlearn.arrays import Array, Indices, all_finite
from peerlearn.errors import DataError, WireError
from peerlearn.local.anchor_graph import AnchorGraph, pieces, projection
from peerlearn.local.squared_distances import squared_distances
from peerlearn.network.base import Network

ANCHORS, NEAREST, RANK = 100, 10, 60  # unless told otherwise, and fewer where the data have no more
LARGEST, MOST = 1e100, 2.0**53  # of a centre, and of the rows of one
STEPS = 20  # of k-means: after those, anchors move no further than matters here


@dataclass(frozen=True)
class Anchoring:
    """How many anchors, m in the formulas, and what is made of them.

    None: m of 100, s of 10 nearest and a rank r of 60, each less where the data have no more; a
    number is a demand.
    local: centres of one agent at most; None: enough for four times m over all agents, and ten at
    least. width: of the
    kernel; None: how far rows of an anchor are from those of its s-th nearest, whatever the unit of
    the columns.
    """

    width: float | None = None
    anchors: int | None = None
    local: int | None = None
    nearest: int | None = None
    rank: int | None = None

    def agree(self, network: Network, inputs: Sequence[Array], seed: int) -> AnchorGraph:
        """The same anchors and features at every agent, from the rows of the hosted ones."""
        columns = inputs[0].shape[1]
        own = [
            self._table(X, network.size, (seed, k))
            for k, X in zip(network.hosted, inputs, strict=True)
        ]
        tables = all_gather(network, own, columns + 2)
        for agent, table in enumerate(tables):
            self._must_be_centres(table, agent, network.size)
        every = np.vstack(tables)
        C, n, e = every[:, :-2], every[:, -2], every[:, -1]
        m = self._enough(len(np.unique(C, axis=0)))
        s = min(self.nearest or NEAREST, m)
        found = np.zeros((len(network.hosted), m, columns + min(self.rank or RANK, m)))
        for k, agent in enumerate(network.hosted):
            if agent == network.tree.root:
                A, _ = centres(C, n, m, np.random.default_rng(seed))
                found[k] = np.hstack(
                    [
                        A,
                        projection(
                            A, self.width or _reach(A, s, C, n, e), found.shape[2] - columns
                        ),
                    ]
                )
        A, P = np.split(
            broadcast_from_center(network, found)[0], [columns], axis=1
        )  # the first hosted agent knows what all know
        P = P[:, np.count_nonzero(P, axis=0) > 0]
        if not all_finite(A) or not all_finite(P) or P.shape[1] == 0:
            raise WireError(
                f"agent {network.tree.root} sent no anchors where {m} were due: it runs something else"
            )
        width = self.width or _reach(A, s, C, n, e)
        if self.rank is not None and P.shape[1] < self.rank:
            raise DataError(
                f"rank={self.rank} is larger than the data: their {m} anchors span {P.shape[1]} directions at "
                f"width={width:g}. Set rank to {P.shape[1]} or less, or to None for as many as there are"
            )
        return AnchorGraph(A, P, float(width), s)

    def _table(self, X: Array, agents: int, seed: tuple[int, int]) -> Array:
        """One agent's centres, how many of its rows are nearest to each, and how far from it: no row stands alone."""
        if len(X) == 0:
            return np.empty((0, X.shape[1] + 2))
        count = min(self._most(agents), max(len(X) // 2, 1))
        each = np.ones(len(X))
        C, n = centres(X, each, count, np.random.default_rng(seed))
        while agents > 1 and len(C) > 1 and np.count_nonzero(n < 2):  # one alone has nobody to tell
            C, n = _means(X, each, C[n > 1] if np.count_nonzero(n > 1) else C[:1])
        nearest = _nearest(X, C)
        away = X - C[nearest]
        return np.column_stack(
            [C, n, np.bincount(nearest, np.einsum("ij,ij->i", away, away), len(C))]
        )

    def _most(self, agents: int) -> int:
        """Centres of one agent."""
        m = self.anchors or ANCHORS
        return self.local or min(m, max(10, -(-4 * m // agents)))

    def _must_be_centres(self, table: Array, agent: int, agents: int) -> None:
        """Refuse, at all agents alike, what no agent can have found."""
        C, n, e = table[:, :-2], table[:, -2], table[:, -1]
        if (
            len(table) > self._most(agents)
            or np.count_nonzero(np.abs(C) > LARGEST)
            or np.count_nonzero((n < 1) | (n > MOST) | (n != np.rint(n)))
            or np.count_nonzero((e < 0) | (e > MOST * LARGEST**2))
        ):
            raise WireError(
                f"agent {agent} sent no centres of rows where some were due: it runs something else"
            )

    def _enough(self, different: int) -> int:
        """m, if there are so many different centres."""
        if self.anchors is not None and self.anchors > different:
            raise DataError(
                f"n_anchors={self.anchors} is larger than the data: agents sent {different} different centres, half as "
                f"many as they have rows at most. Set n_anchors to {different} or less, or to None for as many as "
                "there are, raise n_local, or give more rows"
            )
        m = min(self.anchors or ANCHORS, different)
        if self.nearest is not None and self.nearest > m:
            raise DataError(
                f"n_nearest={self.nearest} is more than the {m} anchors that there are: set it to {m} or less, or to "
                "None for 10 or all of them"
            )
        return m


def centres(X: Array, weights: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """So many centres of rows that count as their weights say, and the weight of the rows nearest to each.

    The same bits wherever the same numbers come in: no threads but those of a matrix product.
    """
    C = _spread(X, weights, count, rng)
    for _ in range(STEPS):
        before, (C, n) = C, _means(X, weights, C)
        if np.array_equal(C, before):
            break
    return C, n


def _means(X: Array, weights: Array, C: Array) -> tuple[Array, Array]:
    """Of the rows nearest to each centre, their mean and weight; a centre without rows stays."""
    owner = _nearest(X, C)
    members = sp.csr_array((weights, owner, np.arange(len(X) + 1)), shape=(len(X), len(C))).T
    n = members @ np.ones(len(X))
    return np.where(n[:, None] > 0, members @ X / np.where(n > 0, n, 1.0)[:, None], C), n


def _reach(A: Array, s: int, C: Array, n: Array, e: Array) -> float:
    """How far a row of an anchor is from one of its s-th nearest anchor, in the middle; 1 where all rows are the same.

    w^2 = |a_i - a_j|^2 + 2 v, with v the mean squared distance of rows from their anchor: by way of
    their centres.
    """
    between = np.partition(squared_distances(A), min(s, len(A) - 1), axis=1)[:, min(s, len(A) - 1)]
    away = C - A[_nearest(C, A)]
    v = (np.add.reduce(e) + n @ np.einsum("ij,ij->i", away, away)) / np.add.reduce(n)
    return float(np.sqrt(np.median(between) + 2 * v)) or 1.0


def _spread(X: Array, weights: Array, count: int, rng: np.random.Generator) -> Array:
    """Rows far from each other, as k-means++ draws them; one of them again where no other row differs from all."""
    away, chosen = weights, []
    for _ in range(count):
        upto = np.cumsum(away)
        chosen.append(
            min(int(np.searchsorted(upto, rng.random() * upto[-1], side="right")), len(X) - 1)
        )
        d = squared_distances(X[chosen[-1:]], X)[0] * weights
        away = d if len(chosen) == 1 else np.minimum(away, d)
    return X[chosen]


def _nearest(X: Array, C: Array) -> Indices:
    """Of each row, the place of its centre."""
    owner = np.empty(len(X), dtype=np.intp)
    for piece in pieces(len(X)):
        owner[piece] = np.argmin(squared_distances(X[piece], C), axis=1)
    return owner
