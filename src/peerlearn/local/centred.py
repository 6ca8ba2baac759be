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

Rounding. A difference of two numbers is rounded relative to itself. So errors of S and G are
relative to the lengths of columns about m and about the pivots, however far from zero columns are.
With D_j^2 the sum of both squares, over all agents,

    D_j^2 = sum w h_j^2 - W m_j^2 + sum w (h_j - p_j)^2

(only the first and the last are sums over the network, and they travel as one). m itself has an
error d. The problem about m + d differs from that about m by W d d', because deviations from the
mean of all rows have a sum of zero. That is added to D^2, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.blas import dsyrk

from peerlearn.arrays import Array, map_agents, product
from peerlearn.local.features import FeatureMap, RandomFeatures
from peerlearn.local.frozen_features import FrozenFeatures
from peerlearn.local.least_squares import LeastSquares, Lengths, Tall, Wide, mirror
from peerlearn.local.normal_equations import UNIT, sum_of_squares

Pair = tuple[Array, Array]
TINY = float(np.finfo(np.float64).tiny)


class FewRows:
    """All rows of an agent with fewer rows than columns. w: their weights; None if all are 1."""

    def __init__(self, H: Array, Y: Array, w: Array | None = None) -> None:
        self.H = H
        self.Y = Y
        self.w = w

    def sums(self) -> Array:
        """Return sum w, sum w h, sum w y, and sums of squares: see `ManyRows`."""
        w = np.ones(len(self.H)) if self.w is None else self.w
        squares = [w @ self.H**2, [float(np.sum(w @ self.Y**2))]]
        return np.concatenate([[w.sum()], w @ self.H, w @ self.Y, *squares])

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
        self.squares = 0.0  # sum w |y - pivot|^2

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
        self.HY += product(H.T, Y)
        self.squares += sum_of_squares(Y)

    def sums(self) -> Array:
        """Return sum w, sum w h, sum w y, and sums of squares.

        These are of w h^2 and w (h - pivot)^2 for every feature, and of the same for all targets.
        """
        assert self.pivot is not None
        B = len(self.HY)
        moved = self.pivot * (2 * self.first + self.weight * self.pivot)
        columns = 2 * np.diagonal(self.upper) + moved[:B]
        targets = 2 * self.squares + float(np.sum(moved[B:]))
        first = self.first + self.weight * self.pivot
        return np.concatenate([[self.weight], first, columns, [targets]])

    def about(self, means: Array) -> Pair:
        """Return H'H and H'Y of the weighted rows about these means."""
        assert self.pivot is not None
        B = len(self.HY)
        G = mirror(self.upper)
        P = self.HY
        if self.weight > 0:
            # From the pivot to the agent's own mean, and from there to the means asked for.
            step = self.first / self.weight
            off = step + (self.pivot - means)  # a difference of large numbers loses nothing
            G = G + self.weight * (np.outer(off[:B], off[:B]) - np.outer(step[:B], step[:B]))
            P = P + self.weight * (np.outer(off[:B], off[B:]) - np.outer(step[:B], step[B:]))
        return G, P

    def squares_about_pivot(self) -> Array:
        """Return the sums of w (h - pivot)^2, of all features and of all targets."""
        return np.array([float(np.trace(self.upper)), self.squares])


@dataclass(frozen=True)
class Means:
    """Means of features and targets at each hosted agent, the same at all agents.

    centre: agents x (B + M). squares: sums over all agents of squares, as `ManyRows.sums` has
    them, agents x (B + 1). weight, rows: of all agents together. by_summing: error of the sums,
    relative to the sums of sizes.
    """

    centre: Array
    squares: Array
    weight: float
    rows: float
    by_summing: float = 0.0

    @classmethod
    def of_sums(cls, sums: Array, width: int, by_summing: float) -> Means:
        """Return the means, from the sums of all agents at each hosted agent.

        width: B + M. by_summing: error of these sums, relative to the sums of sizes.
        """
        weight = sums[:, :1]
        centre = sums[:, 1 : 1 + width] / np.where(weight > 0, weight, 1.0)  # 0 without rows
        squares = np.maximum(sums[:, 1 + width : -1], 0.0)
        return cls(centre, squares, float(weight[0, 0]), float(sums[0, -1]), by_summing)

    def lengths(self, own: Array) -> Lengths:
        """Return what rounding is relative to.

        own: squares of the lengths of all columns of each hosted agent. A sum over rows has an
        error of a quarter of their number in units of rounding, at most.
        """
        B = self.squares.shape[1] - 1
        means = self.centre[0]
        subtracted = np.append(means[:B] ** 2, np.sum(means[B:] ** 2))
        relative = UNIT * (4 + self.rows / 4) + self.by_summing
        squares = self.squares[0] * (1 + relative**2 / UNIT) - self.weight * subtracted
        # What is left of a difference of sums is not less than their rounding.
        squares = np.maximum(squares, 0.0) + relative * self.squares[0]
        lengths = np.sqrt(squares)
        sizes = np.sqrt(subtracted) + lengths / np.sqrt(max(self.weight, TINY))
        errors = relative * sizes
        return Lengths(lengths[:-1], float(lengths[-1]), own, means, errors, self.weight)


class UncentredProblems:
    """Rows or sums of all hosted agents, before the means of the network are known.

    read: returns hosted agents with their rows [H Y] and weights (None if all are 1), block by
    block from the beginning, whenever it is called.
    """

    def __init__(
        self,
        agents: Sequence[FewRows | ManyRows],
        rows: Sequence[int],
        shape: tuple[int, int],
        read: Callable[[], Iterable[tuple[int, Array, Array | None]]],
    ) -> None:
        self.agents = agents
        self._read = read
        self.rows = np.array(rows, dtype=np.intp)
        self.shape = shape  # B, M
        self.weighted = False  # whether rows have weights
        self.inputs: list[Array] = []
        self.features: RandomFeatures | None = None

    @classmethod
    def of_inputs(
        cls,
        features: FeatureMap,
        X: Sequence[Array],
        Y: Sequence[Array],
        weights: Sequence[Array] | None = None,
    ) -> UncentredProblems:
        """Return the rows or sums of each agent's inputs and targets.

        weights: of each agent's rows; None if all are 1.
        """
        B = features.width
        M = Y[0].shape[1]

        def of_agent(k: int) -> FewRows | ManyRows:
            w = None if weights is None else weights[k]
            if X[k].shape[0] < B:
                return FewRows(features(X[k]), Y[k], w)
            sums = ManyRows(B, M)
            for block, H in features.blocks(X[k]):
                sums.add(H, Y[k][block], None if w is None else w[block])
            return sums

        # Features that a user gives need not be safe to call from several threads.
        ours = isinstance(features, RandomFeatures)
        numbers = sum(x.shape[0] for x in X) * B if ours else 0
        agents = map_agents(of_agent, len(X), numbers)

        def read() -> Iterable[tuple[int, Array, Array | None]]:
            for k, (x, y) in enumerate(zip(X, Y, strict=True)):
                w = None if weights is None else weights[k]
                for block, H in features.blocks(x):
                    yield k, np.hstack([H, y[block]]), None if w is None else w[block]

        problems = cls(agents, [x.shape[0] for x in X], (B, M), read)
        problems.weighted = weights is not None
        if isinstance(features, RandomFeatures):
            problems.inputs = list(X)
            problems.features = features
        return problems

    def sums(self) -> Array:
        """Return the sums of each hosted agent that means need: agents x (2 B + M + 3)."""
        sums = np.stack([agent.sums() for agent in self.agents])
        return np.column_stack([sums, self.rows])

    def means(self, sums: Array, by_summing: float = 0.0) -> Means:
        """Return the means, from the sums of all agents at each hosted agent.

        by_summing: error of these sums, relative to the sums of sizes.
        """
        return Means.of_sums(sums, sum(self.shape), by_summing)

    def zero_means(self) -> Means:
        """Return means of zero. Rows that are only weighted are rounded relative to themselves."""
        agents = len(self.agents)
        B, M = self.shape
        return Means(np.zeros((agents, B + M)), np.zeros((agents, B + 1)), 0.0, 0.0)

    def about(self, means: Means) -> LeastSquares:
        """Return the problems about these means."""
        centre = means.centre
        B, M = self.shape
        tall = [k for k, agent in enumerate(self.agents) if isinstance(agent, ManyRows)]
        # One array for all agents from the beginning, so that no Gram matrix is there twice.
        G = np.empty((len(tall), B, B))
        HY = np.empty((len(tall), B, M))
        for i, k in enumerate(tall):
            G[i], HY[i] = self.agents[k].about(centre[k])
        few = {k: agent for k, agent in enumerate(self.agents) if isinstance(agent, FewRows)}
        wide = {k: agent.about(centre[k]) for k, agent in few.items()}
        groups = group_problems({}, wide)
        if tall:
            groups.insert(0, Tall(np.array(tall), G, HY))

        read = self._read  # not self, whose sums can be forgotten

        def read_again() -> Iterable[tuple[int, Array]]:
            for k, rows, w in read():
                shifted = rows - centre[k]
                yield k, shifted if w is None else shifted * np.sqrt(w)[:, None]

        own = np.array([_own_squares(agent, centre[k]) for k, agent in enumerate(self.agents)])
        problems = LeastSquares(
            groups,
            self.rows,
            self.shape,
            own[:, 1],
            read_again,
            means.lengths(own[:, 0]),
        )
        problems.inputs = self.inputs
        if self.features is not None:
            # The means of all agents are the same wherever a solver uses the feature map.
            problems.features = replace(self.features, center=centre[0, : self.shape[0]])
        return problems


def column_sums(features: FeatureMap, X: Sequence[Array], Y: Sequence[Array]) -> Array:
    """Return what means need of each hosted agent, as `UncentredProblems.sums`, without pivots.

    Sums of squares about pivots of single agents do not follow from H'H, so they are not for
    secret sums.
    """
    own = []
    for x, y in zip(X, Y, strict=True):
        total = np.zeros(2 * features.width + y.shape[1] + 2)
        for block, H in features.blocks(x):
            total += FewRows(H, y[block]).sums()
        own.append(np.append(total, x.shape[0]))
    return np.stack(own)


def problems_about(
    features: RandomFeatures | FrozenFeatures,
    X: Sequence[Array],
    Y: Sequence[Array],
    means: Means,
) -> LeastSquares:
    """Return the problems about these means. Features are computed once more, without pivots."""
    centre = means.centre[0]
    B = features.width
    targets = [y - centre[B:] for y in Y]
    problems = LeastSquares.of_inputs(replace(features, center=centre[:B]), X, targets)
    problems.lengths = means.lengths(problems.traces())
    return problems


def _own_squares(agent: FewRows | ManyRows, means: Array) -> Array:
    """Return the squares of the lengths of all features and of all targets, about the means.

    Those about the pivot are added, if there is one.
    """
    if isinstance(agent, FewRows):
        return np.array([sum_of_squares(part) for part in agent.about(means)])
    B = len(agent.HY)
    assert agent.pivot is not None
    about_pivot = agent.squares_about_pivot()
    off = agent.pivot - means
    moved = off * (2 * agent.first + agent.weight * off)
    change = np.array([np.sum(moved[:B]), np.sum(moved[B:])])
    squares: Array = np.maximum(about_pivot + change, 0.0) + about_pivot
    return squares


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
