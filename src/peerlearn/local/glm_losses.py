"""Losses of generalised linear models, with an intercept and a ridge penalty that spares it.

    h_k(W) = sum_i a_i phi(y_i, f_i) + 1/2 sum_j r_j |W_j|^2,      i over the rows of agent k
    f_i    = W'z_i + o_i
    z_i    = [1; (x_i - m) / s]          m, s: centre and scale of the columns, the same everywhere

a_i is the weight of a row, o_i its offset, phi a family's loss (families.py), and r_j this agent's
share of the penalty on coefficient j. W has one row per entry of z and one column per output; w_k
is W in one row. The table of all z never lies in memory. Scales, and means that are not large, are
applied to W and to sums over rows, not to rows:

    v = x, or x - m if means are large         C = rows [1; v],   Z = C P
    Z W = C (P W),   Z'DZ = P' C'DC P          P = [1, -t'/s; 0, diag(1/s)],   t = m, or 0

An agent reads its rows once for value, gradient and Hessian together, because reading and centring
them takes as long as the gradient. Agents with many rows are computed on all cores (arrays.py).

A Hessian takes d times as many products as a gradient. A sample of the rows gives it roughly: row i
is in the sample with probability q_i, and then has weight a_i / q_i,

    q_i = min(1, q |z_i|^2 / d)

so that rows of rare categories, which are long, are always there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy.sparse import issparse

from peerlearn.arrays import Array, map_agents
from peerlearn.local.families import OutputFamily
from peerlearn.local.losses import ROUNDING, Product

Computed = TypeVar("Computed")
BLOCK = 2**18  # numbers of rows to compute with at a time: they fit into caches


@dataclass(frozen=True)
class GLMRows:
    """The rows of one agent.

    X : rows x columns, dense or sparse by rows.
    y : rows x 1, or rows x classes.
    weights, offsets : one number per row.
    """

    X: Any
    y: Array
    weights: Array
    offsets: Array

    def __len__(self) -> int:
        return int(self.X.shape[0])


@dataclass(frozen=True)
class Design:
    """How a row x becomes z.

    intercept : whether z begins with 1.
    centre, scale : one number per column.
    """

    intercept: bool
    centre: Array
    scale: Array

    @property
    def width(self) -> int:
        """Length of z."""
        return len(self.scale) + int(self.intercept)

    @property
    def has_large_means(self) -> bool:
        """Whether sums of products of columns lose digits, unless means are subtracted first."""
        return float(np.sum((self.centre / self.scale) ** 2)) > len(self.scale)

    def to_columns(self, subtracted: Array | float = 0.0) -> Array:
        """Return P: W of z is P W of [1; x - subtracted], or of x if there is no intercept."""
        P = np.diag(np.concatenate([np.ones(int(self.intercept)), 1.0 / self.scale]))
        if self.intercept:
            P[0, 1:] = (subtracted - self.centre) / self.scale
        return P


class GLMLosses:
    """Losses of all hosted agents, each at its own row of w: hosted agents x d.

    Parameters
    ----------
    rows: the rows of each hosted agent.
    family: what a row loses.
    design: how rows become z.
    ridge: r, one number per entry of z.
    share: q, the part of the rows that is in a sample. With 1, there are no samples.
    """

    convex: ClassVar = True

    def __init__(
        self,
        rows: Sequence[GLMRows],
        family: OutputFamily,
        design: Design,
        ridge: Array,
        share: float = 1.0,
    ) -> None:
        self._rows = rows
        self._family = family
        self._design = design
        self._ridge = ridge
        self._share = share
        self._first = int(design.intercept)
        self._subtracted = design.centre if design.has_large_means else None
        self._P = design.to_columns(0.0 if self._subtracted is None else self._subtracted)
        # The length of [1; v] in units of the scales is at most |z| and this.
        self._beyond = 2.0 * float(np.linalg.norm(self._P[: self._first, self._first :]))
        self._outputs = family.outputs(rows[0].y.shape[1])
        self.agents = len(rows)
        self.dimension = design.width * self._outputs
        self._last: tuple[Array, Array] | None = None
        self._lengths = self._each(self._lengths_of_rows)

    def _each(self, compute: Callable[[int], Computed]) -> list[Computed]:
        """Return what each hosted agent computes."""
        numbers = sum(map(len, self._rows)) * self.dimension
        return map_agents(compute, self.agents, numbers)

    def value(self, w: Array) -> Array:
        """Return h_k(w_k): (agents,)."""
        return self._first_order(w)[:, 0].copy()

    def gradient(self, w: Array) -> Array:
        """Return grad h_k(w_k): (agents, d)."""
        return self._first_order(w)[:, 2:].copy()

    def gradient_error(self, w: Array) -> Array:
        """Return a bound of the rounding error of `gradient` at w_k: (agents,)."""
        return self._first_order(w)[:, 1].copy()

    def _first_order(self, w: Array) -> Array:
        """Return value, error and gradient of all agents. Those of the last w are kept."""
        if self._last is None or not np.array_equal(self._last[0], w):
            at = self.shaped(w)
            own = self._each(lambda k: self._evaluate(k, at[k], None))
            self._last = (w.copy(), np.stack(own))
        return self._last[1]

    def hessian(self, w: Array) -> Array:
        """Return the Hessian of h_k at w_k: (agents, d, d). Values and gradients are kept."""
        at = self.shaped(w)
        matrices = np.zeros((self.agents, self.dimension, self.dimension))
        own = self._each(lambda k: self._evaluate(k, at[k], matrices[k]))
        self._last = (w.copy(), np.stack(own))
        return matrices

    def _evaluate(self, agent: int, W: Array, hessian: Array | None) -> Array:
        """Return value, error and gradient of one agent; its Hessian is added to `hessian`."""
        penalty = self._ridge[:, None] * self._family.spread(W)
        value = 0.5 * float(np.vdot(W, penalty))
        error = float(np.linalg.norm(penalty))
        size = float(np.linalg.norm(W))
        sums = np.zeros_like(W)
        curved = None if hessian is None else _WeightedSquares(self._design.width, self._outputs)
        U = self._P @ W
        for part, V, own in self._blocks(agent):
            f = self._times(V, U) + own.offsets[:, None]
            slopes = own.weights[:, None] * self._family.slopes(f, own.y)
            bends = own.weights[:, None, None] * self._family.bends(f, own.y)
            value += float(own.weights @ self._family.values(f, own.y))
            sums += self._back(V, slopes)
            if curved is not None:
                curved.add(V, bends)
            # Errors of the sum over rows, and of slopes where f is rounded.
            lengths = self._lengths[agent][part] + self._beyond
            reach = lengths * size + np.abs(own.offsets)
            steepness = np.sqrt((slopes**2).sum(axis=1))
            error += float((steepness + np.trace(bends, axis1=1, axis2=2) * reach) @ lengths)
        if curved is not None and hessian is not None:
            hessian += self._with_penalty(curved)
        gradient = penalty + self._P.T @ sums
        return np.concatenate([[value, ROUNDING * error], gradient.ravel()])

    def _with_penalty(self, curved: _WeightedSquares) -> Array:
        """Return the Hessian of the losses and the penalty, from sums of rows [1; v]."""
        d = self._design.width
        squares = self._P.T @ curved.total() @ self._P
        squares = (squares + squares.swapaxes(2, 3)) / 2  # products are rounded
        H = np.ascontiguousarray(squares.transpose(2, 0, 3, 1))
        own_spread = self._family.spread(np.eye(self._outputs))
        H[np.arange(d), :, np.arange(d)] += self._ridge[:, None, None] * own_spread
        return H.reshape(self.dimension, self.dimension)

    def information(self, w: Array) -> Array:
        """Return the Hessian of h_k that is expected if the model is true: (agents, d, d)."""
        at = self.shaped(w)

        def of_agent(k: int) -> Array:
            curved = _WeightedSquares(self._design.width, self._outputs)
            U = self._P @ at[k]
            for _, V, own in self._blocks(k):
                f = self._times(V, U) + own.offsets[:, None]
                bends = self._family.information(f, own.y)
                curved.add(V, own.weights[:, None, None] * bends)
            return self._with_penalty(curved)

        return np.stack(self._each(of_agent))

    def sample(self) -> GLMLosses | None:
        """Return the losses of a sample of the rows, or None if all rows are wanted."""
        if self._share >= 1:
            return None
        rows = self._each(self._sample_rows)
        return GLMLosses(rows, self._family, self._design, self._ridge)

    def _sample_rows(self, agent: int) -> GLMRows:
        """Return the rows of an agent that are in the sample, the same in every process."""
        rows = self._rows[agent]
        q = np.minimum(self._share * self._lengths[agent] ** 2 / self._design.width, 1.0)
        (own,) = np.nonzero(np.random.default_rng(0).random(len(q)) < q)
        return GLMRows(rows.X[own], rows.y[own], rows.weights[own] / q[own], rows.offsets[own])

    def curvature(self, w: Array) -> Product:
        """Return p -> H_k p, with H_k the Hessian at w_k."""
        at = self.shaped(w)

        def product(p: Array) -> Array:
            shaped = self.shaped(p)
            return np.stack(self._each(lambda k: self._product(k, at[k], shaped[k]).ravel()))

        return product

    def _product(self, agent: int, W: Array, direction: Array) -> Array:
        sums = np.zeros_like(W)
        U = self._P @ W
        along = self._P @ direction
        for _, V, own in self._blocks(agent):
            bends = self._family.bends(self._times(V, U) + own.offsets[:, None], own.y)
            moved = (bends * self._times(V, along)[:, None, :]).sum(axis=2)
            sums += self._back(V, own.weights[:, None] * moved)
        penalty: Array = self._ridge[:, None] * self._family.spread(direction)
        return penalty + self._P.T @ sums

    def self_concordance(self) -> Array:
        """Return R_k: the longest z of agent k, times the family's constant."""
        longest = [
            lengths[rows.weights > 0].max(initial=0.0)
            for lengths, rows in zip(self._lengths, self._rows, strict=True)
        ]
        return self._family.concordance * np.array(longest)

    def _lengths_of_rows(self, agent: int) -> Array:
        """Return |z| of each row."""
        lengths = np.empty(len(self._rows[agent]))
        shift = self._P[: self._first, self._first :].sum(axis=0)
        for part, V, _ in self._blocks(agent):
            z = V / self._design.scale
            z += shift
            lengths[part] = np.sqrt(np.einsum("ij,ij->i", z, z) + self._first)
        return lengths

    def margins(self, agent: int, W: Array) -> tuple[Array, Array]:
        """Return the margins of an agent's rows along W, and |z| of each; offsets do not count."""
        rows = self._rows[agent]
        margins = np.empty(len(rows))
        U = self._P @ W
        for part, V, own in self._blocks(agent):
            margins[part] = self._family.margins(self._times(V, U), own.y)
        counted = rows.weights > 0
        return margins[counted], self._lengths[agent][counted]

    def outputs(self, agent: int, W: Array) -> Array:
        """Return f of an agent's rows: rows x M."""
        f = np.empty((len(self._rows[agent]), self._outputs))
        U = self._P @ W
        for part, V, own in self._blocks(agent):
            f[part] = self._times(V, U) + own.offsets[:, None]
        return f

    def shaped(self, w: Array) -> Array:
        """Return w as agents x length of z x outputs."""
        return w.reshape(len(w), self._design.width, self._outputs)

    def _blocks(self, agent: int) -> Iterator[tuple[slice, Array, GLMRows]]:
        """Yield some rows at a time: which ones, their v, and the rest of what is known of them.

        Rows v that are not those of the agent itself all lie in the same memory.
        """
        rows = self._rows[agent]
        N, columns = rows.X.shape
        step = max(BLOCK // max(columns, 1), 1)
        buffer = np.empty((0 if self._subtracted is None else min(step, N), columns))
        for start in range(0, N, step):
            part = slice(start, min(start + step, N))
            V = rows.X[part].toarray() if issparse(rows.X) else rows.X[part]
            if self._subtracted is not None:
                V = np.subtract(V, self._subtracted, out=buffer[: len(V)])
            yield part, V, GLMRows(V, rows.y[part], rows.weights[part], rows.offsets[part])

    def _times(self, V: Array, U: Array) -> Array:
        """Return C U of rows C = [1; v]."""
        products: Array = V @ U[self._first :] + U[: self._first].sum(axis=0)
        return products

    def _back(self, V: Array, S: Array) -> Array:
        """Return C'S of rows C = [1; v]."""
        constant = S.sum(axis=0, keepdims=True)[: self._first]
        return np.vstack([constant, V.T @ S])


class _WeightedSquares:
    """The sum of C'DC over blocks of rows C = [1; v], one matrix for each pair of outputs."""

    def __init__(self, d: int, M: int) -> None:
        self._M = M
        self._sums = np.zeros((M, M, d, d))
        self._weighted = np.empty((0, d))

    def add(self, V: Array, bends: Array) -> None:
        """Add rows. bends: rows x M x M, symmetric."""
        if len(self._weighted) < len(V):
            self._weighted = np.empty((len(V), self._weighted.shape[1]))
        first = self._weighted.shape[1] - V.shape[1]
        weighted = self._weighted[: len(V)]
        for a in range(self._M):
            # The product of a matrix with itself takes half the time of other products.
            self._weigh(weighted, V, np.sqrt(bends[:, a, a, None]))
            self._sums[a, a] += weighted.T @ weighted
            for b in range(a):
                self._weigh(weighted, V, bends[:, a, b, None])
                self._sums[a, b, :, first:] += weighted.T @ V
                self._sums[a, b, :, :first] += weighted.sum(axis=0)[:, None]

    def _weigh(self, weighted: Array, V: Array, factors: Array) -> None:
        first = weighted.shape[1] - V.shape[1]
        weighted[:, :first] = factors
        np.multiply(V, factors, out=weighted[:, first:])

    def total(self) -> Array:
        """Return the sums: M x M x d x d."""
        for a in range(self._M):
            for b in range(a):
                self._sums[b, a] = self._sums[a, b]
        return self._sums
