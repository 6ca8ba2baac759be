"""Least-squares problems of all hosted agents: f_k(b) = 1/2 |H_k b - Y_k|^2.

All agents hosted here are computed together. An agent with fewer rows than columns (wide) keeps its
rows, padded with zeros and stacked with those of agents of similar size. An agent with more rows
(tall) keeps H'H and H'Y. Either way one iteration of a solver costs a few batched products, and no
Python loop over agents.

The bits of a product depend on its shape. So how far an agent is padded follows from its own rows
alone (`round_up`), and its results do not depend on which agents live in the same process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
from scipy.linalg.blas import dsyrk

from peerlearn.arrays import Array, Indices, dots, product
from peerlearn.errors import DataError
from peerlearn.local.features import FeatureMap, RandomFeatures
from peerlearn.local.normal_equations import (
    Factor,
    NormalEquations,
    inverse,
    product_units,
    solve_ridge,
    sum_of_squares,
    undetermined_error,
)

Blocks = Iterable[tuple[slice, Array]]  # some rows, and their features
ReadAgain = Callable[[], Iterable[tuple[int, Array]]]  # hosted agents and their rows [H Y]
CENTRING_UNITS = 8.0  # of rounding, by weights and by subtracting a pivot and a mean
GATHERED = 4096  # rows that are factorised at a time, at least, where there are so many
PerAgent = Callable[[Array], Array]  # (agents, B, M) -> (agents, B, M), each agent on its own


@dataclass(frozen=True)
class Lengths:
    """Lengths of columns and targets before means were subtracted from them, and these means.

    Rounding errors are relative to these lengths, not to the smaller numbers that are left.

    columns: of all agents together, B numbers, the same at all agents. targets: the same for all
    targets together. own: squares of the lengths of all columns of each hosted agent. means: of
    features and targets, B + M numbers. mean_errors: bounds on the errors of the means, B + 1
    numbers, the last one for all targets together. weight: of all rows.
    """

    columns: Array
    targets: float
    own: Array
    means: Array
    mean_errors: Array
    weight: float


@dataclass(frozen=True)
class Wide:
    """Agents with fewer rows than columns. Rows of zeros fill up the stack and change nothing."""

    agents: Indices
    H: Array  # agents x rows x B
    Y: Array  # agents x rows x M

    def normal(self, d: Array) -> Array:
        """Return H'H d."""
        return product(_transpose(self.H), product(self.H, d))

    def moment(self) -> Array:
        """Return H'Y."""
        return product(_transpose(self.H), self.Y)

    def gram(self) -> Array:
        """Return H'H."""
        return _transpose(self.H) @ self.H

    def traces(self) -> Array:
        """Return trace(H'H)."""
        return dots(self.H, self.H)

    def largest_eigenvalues(self) -> Array:
        """Return max eig(H'H)."""
        eigenvalues = np.linalg.eigvalsh(self.H @ _transpose(self.H))
        return eigenvalues[:, -1].astype(np.float64)

    def ridge(self, alpha: Array) -> Array:
        """Return H' (H H' + alpha I)^-1 Y (thesis, section 2.2.1)."""
        try:
            return _transpose(self.H) @ np.linalg.solve(self._kernel(alpha), self.Y)
        except np.linalg.LinAlgError:
            raise undetermined_error(float(alpha.min())) from None

    def shifted_inverse(self, shift: Array) -> PerAgent:
        """Return v -> (H'H + s I)^-1 v = (v - G'G v) / s, where G = chol(H H' + s I)^-1 H.

        By the matrix inversion lemma (thesis, section 4.2.2, remark 1).
        """
        try:
            factors = np.linalg.cholesky(self._kernel(shift))
        except np.linalg.LinAlgError:
            raise undetermined_error(float(shift.min())) from None
        own = [
            scipy.linalg.solve_triangular(c, h, lower=True)
            for c, h in zip(factors, self.H, strict=True)
        ]
        G = np.stack(own)
        over_shift = 1 / shift[:, None, None]
        return lambda v: over_shift * (v - _transpose(G) @ (G @ v))

    def _kernel(self, alpha: Array) -> Array:
        """Return H H' + alpha I."""
        identity = np.eye(self.H.shape[1])
        return self.H @ _transpose(self.H) + alpha[:, None, None] * identity


@dataclass(frozen=True)
class Tall:
    """Agents with at least as many rows as columns: H'H and H'Y hold all information."""

    agents: Indices
    G: Array  # agents x B x B, symmetric
    HY: Array  # agents x B x M

    def normal(self, d: Array) -> Array:
        """Return H'H d."""
        return product(self.G, d)

    def moment(self) -> Array:
        """Return H'Y."""
        return self.HY

    def gram(self) -> Array:
        """Return H'H."""
        return self.G

    def traces(self) -> Array:
        """Return trace(H'H)."""
        diagonals: Array = np.diagonal(self.G, axis1=1, axis2=2)
        traces: Array = np.add.reduce(diagonals, axis=1)
        return traces

    def largest_eigenvalues(self) -> Array:
        """Return max eig(H'H)."""
        last = self.G.shape[1] - 1
        largest = [scipy.linalg.eigvalsh(g, subset_by_index=(last, last))[0] for g in self.G]
        return np.array(largest)

    def ridge(self, alpha: Array) -> Array:
        """Return (H'H + alpha I)^-1 H'Y (thesis, section 2.2.1)."""
        problems = zip(self.G, self.HY, alpha, strict=True)
        return np.stack([solve_ridge(g, hy, a) for g, hy, a in problems])

    def shifted_inverse(self, shift: Array) -> PerAgent:
        """Return v -> (H'H + s I)^-1 v."""
        inverses = np.stack([inverse(g, s) for g, s in zip(self.G, shift, strict=True)])
        return lambda v: inverses @ v


class LeastSquares:
    """Least-squares problems of all hosted agents.

    All arrays that the methods take and return have a leading axis of agents.
    """

    def __init__(
        self,
        groups: Sequence[Wide | Tall],
        rows: Indices,
        shape: tuple[int, int],
        squares: Array,
        read_again: ReadAgain | None = None,
        lengths: Lengths | None = None,
    ) -> None:
        self.groups = groups
        self.rows = rows  # N_k
        self.shape = shape  # B, M
        self.squares = squares  # |Y_k|^2, or more if the targets are about a mean
        self._read_again = read_again
        self.lengths = lengths  # None if the rows are as they were
        self.inputs: list[Array] = []
        self.features: RandomFeatures | None = None

    @classmethod
    def of_rows(cls, H: Sequence[Array], Y: Sequence[Array]) -> LeastSquares:
        """Return the problems of each agent's features and targets."""
        lengths = [len(h) for h in H]
        return cls._of(lambda k: [(slice(None), H[k])], lengths, Y, H[0].shape[1])

    @classmethod
    def of_inputs(
        cls,
        features: FeatureMap,
        X: Sequence[Array],
        Y: Sequence[Array],
    ) -> LeastSquares:
        """Return the problems of each agent's inputs and targets.

        The features of an agent with many rows are used block by block and never kept.
        """
        lengths = [x.shape[0] for x in X]
        problems = cls._of(lambda k: features.blocks(X[k]), lengths, Y, features.width)
        if isinstance(features, RandomFeatures):
            problems.inputs = list(X)
            problems.features = features
        return problems

    @classmethod
    def _of(
        cls,
        blocks: Callable[[int], Blocks],
        lengths: Sequence[int],
        Y: Sequence[Array],
        B: int,
    ) -> LeastSquares:
        rows = np.array(lengths, dtype=np.intp)
        M = Y[0].shape[1]
        tall = np.flatnonzero(rows >= B)
        wide = np.flatnonzero(rows < B)
        groups: list[Wide | Tall] = []
        if len(tall):
            sums = [_gram_and_moment(blocks(k), Y[k], B) for k in tall.tolist()]
            G = np.stack([own for own, _ in sums])
            HY = np.stack([own for _, own in sums])
            groups.append(Tall(tall, G, HY))
        # An agent without rows gets one row of zeros, which changes nothing.
        heights = np.maximum(round_up(rows[wide]), 1)
        for height in np.unique(heights).tolist():
            agents = wide[heights == height]
            padded_H = np.zeros((len(agents), height, B))
            padded_Y = np.zeros((len(agents), height, M))
            for i, k in enumerate(agents.tolist()):
                padded_Y[i, : rows[k]] = Y[k]
                for block, h in blocks(k):
                    padded_H[i, : rows[k]][block] = h
            groups.append(Wide(agents, padded_H, padded_Y))
        squares = np.array([sum_of_squares(own) for own in Y])

        def read_again() -> Iterable[tuple[int, Array]]:
            for k, own in enumerate(Y):
                for block, h in blocks(k):
                    yield k, np.hstack([h, own[block]])

        return cls(groups, rows, (B, M), squares, read_again)

    @property
    def agents(self) -> int:
        """Number of hosted agents."""
        return len(self.rows)

    @cached_property
    def moment(self) -> Array:
        """H_k'Y_k."""
        return self._each(lambda group: group.moment())

    def normal(self, d: Array) -> Array:
        """Return H_k'H_k d_k."""
        return self._each(lambda group: group.normal(d[group.agents]))

    def ridge(self, alpha: Array) -> Array:
        """Return argmin_b 1/2 |H_k b - Y_k|^2 + alpha_k/2 |b|^2 of each agent alone."""
        self._check_determined(alpha)
        return self._each(lambda group: group.ridge(alpha[group.agents]))

    def shifted_inverse(self, shift: Array) -> PerAgent:
        """Return v -> (H_k'H_k + shift_k I)^-1 v_k at every agent, factorised once."""
        pairs = [(group, group.shifted_inverse(shift[group.agents])) for group in self.groups]
        if len(pairs) == 1:
            return pairs[0][1]

        def apply(v: Array) -> Array:
            result = np.empty((self.agents, *self.shape))
            for group, own_inverse in pairs:
                result[group.agents] = own_inverse(v[group.agents])
            return result

        return apply

    def proximal(self, rho: float) -> PerAgent:
        """Return v -> argmin_b f_k(b) + rho/2 |b - v_k|^2 at every agent, factorised once."""
        shifted_inverse = self.shifted_inverse(np.full(self.agents, rho))
        return lambda v: shifted_inverse(self.moment + rho * v)

    def largest_eigenvalues(self) -> Array:
        """Return max eig(H_k'H_k)."""
        eigenvalues = np.empty(self.agents)
        for group in self.groups:
            eigenvalues[group.agents] = group.largest_eigenvalues()
        return eigenvalues

    def normal_equations(self) -> list[NormalEquations]:
        """Return the normal equations of each agent, in the smaller of two forms."""
        equations: list[NormalEquations | None] = [None] * self.agents
        by_centring = 0.0 if self.lengths is None else CENTRING_UNITS
        for group in self.groups:
            for i, k in enumerate(group.agents):
                if isinstance(group, Tall):
                    G = group.G[i]
                    HY = group.HY[i]
                    equations[k] = NormalEquations(
                        self.shape,
                        G=G,
                        P=HY,
                        squares=float(self.squares[k]),
                        units=product_units(self.rows[k]) + by_centring,
                    )
                else:
                    padded = np.hstack([group.H[i], group.Y[i]])
                    rows = padded[: self.rows[k]]
                    equations[k] = NormalEquations.of_rows(rows, self.shape, by_centring)
        return [one for one in equations if one is not None]

    @property
    def has_factors(self) -> bool:
        """Whether `factors` can read the rows again; the same at all agents."""
        return self._read_again is not None

    def factors(self) -> list[Factor]:
        """Return the triangular factor of each agent's [H_k Y_k]."""
        assert self._read_again is not None
        by_centring = 0.0 if self.lengths is None else CENTRING_UNITS
        factors = [Factor.of_blocks([], self.shape, by_centring)] * self.agents
        waiting: list[list[Array]] = [[] for _ in factors]
        enough = max(GATHERED, 4 * sum(self.shape))
        for k, HY in self._read_again():
            waiting[k].append(HY)
            if sum(map(len, waiting[k])) >= enough:
                factors[k] = factors[k].plus_rows(waiting[k])
                waiting[k] = []
        return [own.plus_rows(rows) for own, rows in zip(factors, waiting, strict=True)]

    def gradients_of_rows(self, b: Array) -> tuple[Array, Array, Array]:
        """Return H_k'(H_k b_k - Y_k), computed from the rows, which are read again, and two sizes.

        Rounding errors of the residual H_k b_k - Y_k are relative to the first,  sum_j |h_j| |b_j|
        + |y|.  Those of its product with H_k' are relative to the second, |H_k| |H_k b_k - Y_k|,
        which is small if the rows are fitted well.
        """
        assert self._read_again is not None
        B = self.shape[0]
        gradients = np.zeros((self.agents, *self.shape))
        columns = np.zeros((self.agents, sum(self.shape)))
        left_squares = np.zeros(self.agents)
        for k, HY in self._read_again():
            H = HY[:, :B]
            left = product(H, b[k]) - HY[:, B:]
            gradients[k] += product(H.T, left)
            columns[k] += np.add.reduce(HY * HY, axis=0)
            left_squares[k] += sum_of_squares(left)
        terms = np.sqrt(columns)
        residual_sizes = np.empty(self.agents)
        for k, own in enumerate(terms):
            residual_sizes[k] = np.linalg.norm(own[:B] @ np.abs(b[k]) + own[B:])
        lengths = np.array([np.linalg.norm(own[:B]) for own in terms])
        return gradients, residual_sizes, lengths * np.sqrt(left_squares)

    def sizes(self) -> Array:
        """Return what the rounding of each agent's H_k'H_k is relative to: its trace, or more."""
        return self.traces() if self.lengths is None else self.lengths.own

    def traces(self) -> Array:
        """Return the sum of squares of all features, trace(H_k'H_k)."""
        traces = np.empty(self.agents)
        for group in self.groups:
            traces[group.agents] = group.traces()
        return traces

    def triangles(self) -> Array:
        """Return the upper triangles of H_k'H_k, row by row: B (B + 1) / 2 numbers per agent."""
        upper = np.triu_indices(self.shape[0])
        return np.stack([gram[upper] for gram in self.grams()])

    def grams(self) -> list[Array]:
        """Return H_k'H_k of each agent."""
        grams: dict[int, Array] = {}
        for group in self.groups:
            grams |= dict(zip(group.agents.tolist(), group.gram(), strict=True))
        return [grams[k] for k in range(self.agents)]

    def _each(self, compute: Callable[[Wide | Tall], Array]) -> Array:
        if len(self.groups) == 1:  # the common case, agents of similar size: no copy
            return compute(self.groups[0])
        result = np.empty((self.agents, *self.shape))
        for group in self.groups:
            result[group.agents] = compute(group)
        return result

    def _check_determined(self, alpha: Array) -> None:
        loose = np.flatnonzero((alpha == 0) & (self.rows < self.shape[0]))
        if len(loose):
            k = loose[0]
            raise DataError(
                f"the {self.rows[k]} rows of agent {k} do not determine {self.shape[0]} "
                "coefficients when alpha is 0: set alpha above 0, or use fewer units"
            )


def _gram_and_moment(
    blocks: Blocks,
    Y: Array,
    B: int,
) -> tuple[Array, Array]:
    """Return H'H and H'Y, summed over blocks of rows; only one triangle of H'H is computed."""
    upper = np.zeros((B, B), order="F")
    HY = np.zeros((B, Y.shape[1]))
    for block, h in blocks:
        upper = dsyrk(
            1.0,
            h.T,
            beta=1.0,
            c=upper,
            overwrite_c=1,
        )
        HY += product(h.T, Y[block])
    return mirror(upper), HY


def mirror(upper: Array) -> Array:
    """Return the symmetric matrix with this upper triangle; below the diagonal `upper` is zero."""
    G = upper + upper.T
    G.flat[:: len(G) + 1] *= 0.5
    return G


def round_up(rows: Indices) -> Indices:
    """Round numbers of rows up, by at most a quarter, to the heights of padded stacks.

    There are few different heights, so there are few groups. The height of an agent does not depend
    on the other agents. The bits of a product depend on its shape, so a height chosen by the group
    would make them depend on the group.
    """
    step = 2 ** np.maximum(np.frexp(rows)[1] - 3, 0)
    heights: Indices = -(-rows // step) * step
    return heights


def _transpose(stack: Array) -> Array:
    return stack.transpose(0, 2, 1)
