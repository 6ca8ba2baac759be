"""Least-squares problems about means, and with weights: an intercept that is not penalised.

    minimise  sum_n w_n |h_n'b + c - y_n|^2 + g(b)               over b and c
    m = sum w h / sum w,   q = sum w y / sum w                   over the network
    b = argmin sum_n w_n |(h_n - m)'b - (y_n - q)|^2 + g(b)      any solver, unchanged
    c = q - m'b                                                  alone

(Hastie, Tibshirani and Friedman, The elements of statistical learning, 2009, section 3.4.1.) The
means are known only after all rows were seen, and features are computed once. So an agent with many
rows sums them about a pivot p, the mean of its first rows, and moves the sums to the mean later:

    S = sum w (h - p)(h - p)' - W (a - p)(a - p)'      about the agent's own mean a, W = sum w
    G = S + W (a - m)(a - m)'                          about m

The pivot is close to a, so little is subtracted; a site far from the others only adds. An agent
with few rows keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg.blas import dsyrk

from peerlearn.arrays import Array
from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import LeastSquares, Tall, Wide, mirror

Pair = tuple[Array, Array]


class FewRows:
    """All rows of an agent with fewer rows than columns. w: their weights; None if all are 1."""

    def __init__(self, H: Array, Y: Array, w: Array | None = None) -> None:
        self.H = H
        self.Y = Y
        self.w = w

    def sums(self) -> Array:
        """Return sum w, sum w h and sum w y."""
        rows = np.hstack([np.ones((len(self.H), 1)), self.H, self.Y])
        if self.w is not None:
            rows *= self.w[:, None]
        total: Array = rows.sum(axis=0)
        return total

    def about(self, means: Array) -> Pair:
        """Return the rows and targets about these means, times the roots of their weights."""
        B = self.H.shape[1]
        H = self.H - means[:B]
        Y = self.Y - means[B:]
        if self.w is not None:
            root = np.sqrt(self.w)[:, None]
            H *= root
            Y *= root
        return H, Y


class ManyRows:
    """Sums of an agent with many rows, about a pivot. Rows are added block by block."""

    def __init__(self, B: int, M: int) -> None:
        self.pivot: Array | None = None  # of features and targets
        self.weight = 0.0
        self.first = np.zeros(B + M)  # sum w ([h y] - pivot)
        self.upper = np.zeros((B, B), order="F")
        self.HY = np.zeros((B, M))

    def add(self, H: Array, Y: Array, w: Array | None = None) -> None:
        """Add rows to the sums."""
        if len(H) == 0:
            return
        if self.pivot is None:
            self.pivot = np.concatenate([H.mean(axis=0), Y.mean(axis=0)])
        B = H.shape[1]
        H = H - self.pivot[:B]
        Y = Y - self.pivot[B:]
        if w is not None:
            root = np.sqrt(w)[:, None]
            H *= root
            Y *= root
            self.first += np.concatenate([root[:, 0] @ H, root[:, 0] @ Y])
            self.weight += float(w.sum())
        else:
            self.first += np.concatenate([H.sum(axis=0), Y.sum(axis=0)])
            self.weight += len(H)
        self.upper = dsyrk(1.0, H.T, beta=1.0, c=self.upper, overwrite_c=1)
        self.HY += H.T @ Y

    def sums(self) -> Array:
        """Return sum w, sum w h and sum w y."""
        assert self.pivot is not None
        return np.concatenate([[self.weight], self.first + self.weight * self.pivot])

    def about(self, means: Array) -> Pair:
        """Return H'H and H'Y of the weighted rows about these means."""
        assert self.pivot is not None
        B = len(self.HY)
        G = mirror(self.upper)
        P = self.HY
        if self.weight > 0:
            # From the pivot to the agent's own mean, and from there to the means asked for.
            step = self.first / self.weight
            off = step + self.pivot - means
            G = G + self.weight * (np.outer(off[:B], off[:B]) - np.outer(step[:B], step[:B]))
            P = P + self.weight * (np.outer(off[:B], off[B:]) - np.outer(step[:B], step[B:]))
        return G, P


class UncentredProblems:
    """Rows or sums of all hosted agents, before the means of the network are known."""

    def __init__(
        self, agents: Sequence[FewRows | ManyRows], rows: Sequence[int], shape: tuple[int, int]
    ) -> None:
        self.agents = agents
        self.rows = np.array(rows, dtype=np.intp)
        self.shape = shape  # B, M
        self.inputs: list[Array] = []
        self.features: RandomFeatures | None = None

    @classmethod
    def of_inputs(
        cls,
        features: RandomFeatures,
        X: Sequence[Array],
        Y: Sequence[Array],
        weights: Sequence[Array] | None = None,
    ) -> UncentredProblems:
        """Return the rows or sums of each agent's inputs and targets.

        weights: of each agent's rows; None if all are 1.
        """
        B = features.width
        M = Y[0].shape[1]
        agents: list[FewRows | ManyRows] = []
        for k, (x, y) in enumerate(zip(X, Y, strict=True)):
            w = None if weights is None else weights[k]
            if x.shape[0] < B:
                agents.append(FewRows(features(x), y, w))
                continue
            sums = ManyRows(B, M)
            for block, H in features.blocks(x):
                sums.add(H, y[block], None if w is None else w[block])
            agents.append(sums)
        problems = cls(agents, [x.shape[0] for x in X], (B, M))
        problems.inputs = list(X)
        problems.features = features
        return problems

    def sums(self) -> Array:
        """Return sum w, sum w h and sum w y of each hosted agent: agents x (1 + B + M)."""
        return np.stack([agent.sums() for agent in self.agents])

    def about(self, means: Array) -> LeastSquares:
        """Return the problems about these means of features and targets, agents x (B + M)."""
        tall: dict[int, Pair] = {}
        wide: dict[int, Pair] = {}
        for k, agent in enumerate(self.agents):
            kind = tall if isinstance(agent, ManyRows) else wide
            kind[k] = agent.about(means[k])
        problems = LeastSquares(group_problems(tall, wide), self.rows, self.shape)
        problems.inputs = self.inputs
        if self.features is not None:
            # The means of all agents are the same wherever a solver uses the feature map.
            problems.features = replace(self.features, center=means[0, : self.shape[0]])
        return problems


def group_problems(tall: Mapping[int, Pair], wide: Mapping[int, Pair]) -> list[Wide | Tall]:
    """Return the groups of a `LeastSquares`, from H'H and H'Y of some agents and rows of others."""
    groups: list[Wide | Tall] = []
    if tall:
        G, HY = _stacks(tall.values())
        groups.append(Tall(np.array(list(tall)), G, HY))
    if wide:
        places = np.array(list(wide))
        H = [own for own, _ in wide.values()]
        Y = [own for _, own in wide.values()]
        for group in LeastSquares.of_rows(H, Y).groups:
            groups.append(replace(group, agents=places[group.agents]))
    return groups


def _stacks(pairs: Iterable[Pair]) -> Pair:
    first, second = zip(*pairs, strict=True)
    return np.stack(first), np.stack(second)


def intercepts(means: Array, coefficients: Array) -> Array:
    """Return c = q - m'b of each hosted agent: agents x M."""
    B = coefficients.shape[1]
    own = []
    for agent, b in zip(means, coefficients, strict=True):
        # The bits of a sum depend on the order in memory, and that on who else is hosted here.
        weighted = np.multiply(agent[:B, None], b, order="C")
        own.append(agent[B:] - weighted.sum(axis=0))
    return np.stack(own)
