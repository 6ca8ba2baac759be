"""Losses of generalised linear models, with an intercept and a ridge penalty that spares it.

    h_k(W) = sum_i a_i phi(y_i, f_i) + 1/2 sum_j r_j |W_j|^2,      i over the rows of agent k
    f_i    = W'z_i + o_i
    z_i    = [1; (x_i - m) / s]          m, s: centre and scale of the columns, the same everywhere

a_i is the weight of a row, o_i its offset, phi a family's loss (families.py), and r_j this agent's
share of the penalty on coefficient j. W has one row per entry of z and one column per output; w_k
is W in one row. Rows are centred some at a time, so that the centred table never lies in memory.
Scales are applied to W and to sums over rows, not to rows:

    C = rows [1; x - m],   Z = C S^-1,   Z W = C (S^-1 W),   Z'DZ = S^-1 C'DC S^-1

An agent reads its rows once for value, gradient and Hessian together, because reading and centring
them takes as long as the gradient. Agents with many rows are computed on all cores (arrays.py).
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
BLOCK = 2**16  # numbers of centred rows that lie in memory at a time


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
    def shrink(self) -> Array:
        """1 / s for each entry of z, and 1 for the constant."""
        return np.concatenate([np.ones(int(self.intercept)), 1.0 / self.scale])

    def blocks(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """Yield [1; x - m] of some rows at a time, all in the same memory, and which rows."""
        step = max(BLOCK // self.width, 1)
        N = X.shape[0]
        first = int(self.intercept)
        buffer = np.ones((min(step, N), self.width))
        for start in range(0, N, step):
            part = slice(start, min(start + step, N))
            C = buffer[: part.stop - start]
            own = X[part].toarray() if issparse(X) else X[part]
            np.subtract(own, self.centre, out=C[:, first:])
            yield part, C

    def to_columns(self) -> Array:
        """Return T: W of z is T W of [1; x], or of x if there is no intercept."""
        T = np.diag(np.concatenate([np.ones(int(self.intercept)), 1.0 / self.scale]))
        if self.intercept:
            T[0, 1:] = -self.centre / self.scale
        return T


class GLMLosses:
    """Losses of all hosted agents, each at its own row of w: hosted agents x d.

    Parameters
    ----------
    rows: the rows of each hosted agent.
    family: what a row loses.
    design: how rows become z.
    ridge: r, one number per entry of z.
    """

    convex: ClassVar = True

    def __init__(
        self, rows: Sequence[GLMRows], family: OutputFamily, design: Design, ridge: Array
    ) -> None:
        self._rows = rows
        self._family = family
        self._design = design
        self._ridge = ridge
        self._shrink = design.shrink
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
        U = self._shrink[:, None] * W
        for part, C, own in self._blocks(agent):
            f = C @ U + own.offsets[:, None]
            slopes = own.weights[:, None] * self._family.slopes(f, own.y)
            bends = own.weights[:, None, None] * self._family.bends(f, own.y)
            value += float(own.weights @ self._family.values(f, own.y))
            sums += C.T @ slopes
            if curved is not None:
                curved.add(C, bends)
            # Errors of the sum over rows, and of slopes where f is rounded.
            lengths = self._lengths[agent][part]
            reach = lengths * size + np.abs(own.offsets)
            steepness = np.sqrt((slopes**2).sum(axis=1))
            error += float((steepness + np.trace(bends, axis1=1, axis2=2) * reach) @ lengths)
        if curved is not None and hessian is not None:
            hessian += self._with_penalty(curved)
        gradient = penalty + self._shrink[:, None] * sums
        return np.concatenate([[value, ROUNDING * error], gradient.ravel()])

    def _with_penalty(self, curved: _WeightedSquares) -> Array:
        """Return the Hessian of the losses and the penalty, from sums of unscaled rows."""
        d = self._design.width
        H = curved.total() * np.multiply.outer(self._shrink, self._shrink)[:, None, :, None]
        own_spread = self._family.spread(np.eye(self._outputs))
        H[np.arange(d), :, np.arange(d)] += self._ridge[:, None, None] * own_spread
        return H.reshape(self.dimension, self.dimension)

    def information(self, w: Array) -> Array:
        """Return the Hessian of h_k that is expected if the model is true: (agents, d, d)."""
        at = self.shaped(w)

        def of_agent(k: int) -> Array:
            curved = _WeightedSquares(self._design.width, self._outputs)
            U = self._shrink[:, None] * at[k]
            for _, C, own in self._blocks(k):
                bends = self._family.information(C @ U + own.offsets[:, None], own.y)
                curved.add(C, own.weights[:, None, None] * bends)
            return self._with_penalty(curved)

        return np.stack(self._each(of_agent))

    def curvature(self, w: Array) -> Product:
        """Return p -> H_k p, with H_k the Hessian at w_k."""
        at = self.shaped(w)

        def product(p: Array) -> Array:
            shaped = self.shaped(p)
            return np.stack(self._each(lambda k: self._product(k, at[k], shaped[k]).ravel()))

        return product

    def _product(self, agent: int, W: Array, P: Array) -> Array:
        sums = np.zeros_like(W)
        U = self._shrink[:, None] * W
        V = self._shrink[:, None] * P
        for _, C, own in self._blocks(agent):
            bends = self._family.bends(C @ U + own.offsets[:, None], own.y)
            moved = (bends * (C @ V)[:, None, :]).sum(axis=2)
            sums += C.T @ (own.weights[:, None] * moved)
        penalty: Array = self._ridge[:, None] * self._family.spread(P)
        return penalty + self._shrink[:, None] * sums

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
        for part, C, _ in self._blocks(agent):
            C *= self._shrink
            np.sqrt(np.einsum("ij,ij->i", C, C), out=lengths[part])
        return lengths

    def margins(self, agent: int, W: Array) -> tuple[Array, Array]:
        """Return the margins of an agent's rows along W, and |z| of each; offsets do not count."""
        rows = self._rows[agent]
        margins = np.empty(len(rows))
        U = self._shrink[:, None] * W
        for part, C, own in self._blocks(agent):
            margins[part] = self._family.margins(C @ U, own.y)
        counted = rows.weights > 0
        return margins[counted], self._lengths[agent][counted]

    def outputs(self, agent: int, W: Array) -> Array:
        """Return f of an agent's rows: rows x M."""
        f = np.empty((len(self._rows[agent]), self._outputs))
        U = self._shrink[:, None] * W
        for part, C, own in self._blocks(agent):
            f[part] = C @ U + own.offsets[:, None]
        return f

    def shaped(self, w: Array) -> Array:
        """Return w as agents x length of z x outputs."""
        return w.reshape(len(w), self._design.width, self._outputs)

    def _blocks(self, agent: int) -> Iterator[tuple[slice, Array, GLMRows]]:
        rows = self._rows[agent]
        for part, C in self._design.blocks(rows.X):
            own = GLMRows(C, rows.y[part], rows.weights[part], rows.offsets[part])
            yield part, C, own


class _WeightedSquares:
    """The sum of C'DC over blocks of rows, one matrix for each pair of outputs."""

    def __init__(self, d: int, M: int) -> None:
        self._d = d
        self._M = M
        self._sums = np.zeros((M, M, d, d))
        self._weighted = np.empty((0, d))

    def add(self, C: Array, bends: Array) -> None:
        """Add rows. bends: rows x M x M, symmetric."""
        if len(self._weighted) < len(C):
            self._weighted = np.empty_like(C)
        weighted = self._weighted[: len(C)]
        for a in range(self._M):
            # The product of a matrix with itself takes half the time of other products.
            np.multiply(C, np.sqrt(bends[:, a, a, None]), out=weighted)
            self._sums[a, a] += weighted.T @ weighted
            for b in range(a):
                np.multiply(C, bends[:, a, b, None], out=weighted)
                self._sums[a, b] += weighted.T @ C

    def total(self) -> Array:
        """Return the sums: d x M x d x M."""
        for a in range(self._M):
            for b in range(a):
                self._sums[b, a] = self._sums[a, b]
        return np.ascontiguousarray(self._sums.transpose(2, 0, 3, 1))
