"""Losses of generalised linear models, with an intercept and a ridge penalty that spares it.

    h_k(W) = sum_i a_i phi(y_i, f_i) + 1/2 sum_j r_j |W_j|^2,      i over the rows of agent k
    f_i    = W'z_i + o_i
    z_i    = [1; (x_i - m) / s]          m, s: centre and scale of the columns, the same everywhere

a_i is the weight of a row, o_i its offset, phi a family's loss (families.py), and r_j this agent's
share of the penalty on coefficient j. W has one row per entry of z and one column per output; w_k
is W in one row. z is made for some rows at a time: the standardised table never lies in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from peerlearn.arrays import Array
from peerlearn.local.families import OutputFamily
from peerlearn.local.losses import ROUNDING, Product

BLOCK = 2**17  # numbers of z that lie in memory at a time


@dataclass(frozen=True)
class GLMRows:
    """The rows of one agent.

    X : rows x columns.
    y : rows x 1, or rows x classes.
    weights, offsets : one number per row.
    """

    X: Array
    y: Array
    weights: Array
    offsets: Array

    def __len__(self) -> int:
        return len(self.X)


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

    def rows(self, X: Array) -> Array:
        """Return z of each row."""
        Z = np.empty((len(X), self.width))
        first = int(self.intercept)
        Z[:, :first] = 1.0
        np.subtract(X, self.centre, out=Z[:, first:])
        Z[:, first:] /= self.scale
        return Z

    def blocks(self, rows: GLMRows) -> Iterator[tuple[slice, Array]]:
        """Yield z of some rows at a time, and which rows these are."""
        step = max(BLOCK // self.width, 1)
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            yield part, self.rows(rows.X[part])

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
        self._outputs = family.outputs(rows[0].y.shape[1])
        self.agents = len(rows)
        self.dimension = design.width * self._outputs
        self._last: tuple[Array, Array] | None = None
        self._longest = np.array([self._longest_row(k) for k in range(self.agents)])

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
            rows = [self._value_and_gradient(k, W) for k, W in enumerate(self.shaped(w))]
            self._last = (w.copy(), np.stack(rows))
        return self._last[1]

    def _value_and_gradient(self, agent: int, W: Array) -> Array:
        penalty = self._ridge[:, None] * self._family.spread(W)
        value = 0.5 * float(np.vdot(W, penalty))
        gradient = penalty.copy()
        error = float(np.linalg.norm(penalty))
        size = float(np.linalg.norm(W))
        for _, Z, own in self._blocks(agent):
            f = Z @ W + own.offsets[:, None]
            slopes = own.weights[:, None] * self._family.slopes(f, own.y)
            value += float(own.weights @ self._family.values(f, own.y))
            gradient += Z.T @ slopes
            # Errors of the sum over rows, and of slopes where f is rounded.
            lengths = np.sqrt((Z**2).sum(axis=1))
            bends = own.weights * np.trace(self._family.bends(f, own.y), axis1=1, axis2=2)
            reach = lengths * size + np.abs(own.offsets)
            steepness = np.sqrt((slopes**2).sum(axis=1))
            error += float((steepness + bends * reach) @ lengths)
        return np.concatenate([[value, ROUNDING * error], gradient.ravel()])

    def hessian(self, w: Array) -> Array:
        """Return the Hessian of h_k at w_k: (agents, d, d)."""
        return np.stack([self._hessian(k, W) for k, W in enumerate(self.shaped(w))])

    def _hessian(self, agent: int, W: Array, *, expected: bool = False) -> Array:
        d = self._design.width
        M = self._outputs
        H = np.zeros((d, M, d, M))
        own_spread = self._family.spread(np.eye(M))
        H[np.arange(d), :, np.arange(d)] = self._ridge[:, None, None] * own_spread
        bend = self._family.information if expected else self._family.bends
        for _, Z, own in self._blocks(agent):
            bends = bend(Z @ W + own.offsets[:, None], own.y)
            bends *= own.weights[:, None, None]
            for a in range(M):
                # The product of a matrix with itself takes half the time of other products.
                root = Z * np.sqrt(bends[:, a, a, None])
                H[:, a, :, a] += root.T @ root
                for b in range(a):
                    block = (Z * bends[:, a, b, None]).T @ Z
                    H[:, a, :, b] += block
                    H[:, b, :, a] += block
        return H.reshape(self.dimension, self.dimension)

    def information(self, w: Array) -> Array:
        """Return the Hessian of h_k that is expected if the model is true: (agents, d, d)."""
        return np.stack([self._hessian(k, W, expected=True) for k, W in enumerate(self.shaped(w))])

    def curvature(self, w: Array) -> Product:
        """Return p -> H_k p, with H_k the Hessian at w_k."""
        at = self.shaped(w)

        def product(p: Array) -> Array:
            products = [
                self._product(k, W, P).ravel()
                for k, (W, P) in enumerate(zip(at, self.shaped(p), strict=True))
            ]
            return np.stack(products)

        return product

    def _product(self, agent: int, W: Array, P: Array) -> Array:
        product: Array = self._ridge[:, None] * self._family.spread(P)
        for _, Z, own in self._blocks(agent):
            bends = self._family.bends(Z @ W + own.offsets[:, None], own.y)
            moved = (bends * (Z @ P)[:, None, :]).sum(axis=2)
            product += Z.T @ (own.weights[:, None] * moved)
        return product

    def self_concordance(self) -> Array:
        """Return R_k: the longest z of agent k, times the family's constant."""
        return self._family.concordance * self._longest

    def _longest_row(self, agent: int) -> float:
        longest = 0.0
        for _, Z, own in self._blocks(agent):
            lengths = np.sqrt((Z**2).sum(axis=1))[own.weights > 0]
            longest = max(longest, float(lengths.max(initial=0.0)))
        return longest

    def margins(self, agent: int, W: Array) -> tuple[Array, Array]:
        """Return the margins of an agent's rows along W, and |z| of each; offsets do not count."""
        margins = []
        lengths = []
        for _, Z, own in self._blocks(agent):
            counted = own.weights > 0
            margins.append(self._family.margins(Z @ W, own.y)[counted])
            lengths.append(np.sqrt((Z**2).sum(axis=1))[counted])
        nothing = np.zeros(0)
        return np.concatenate([nothing, *margins]), np.concatenate([nothing, *lengths])

    def outputs(self, agent: int, W: Array) -> Array:
        """Return f of an agent's rows: rows x M."""
        rows = self._rows[agent]
        f = np.empty((len(rows), self._outputs))
        for part, Z, own in self._blocks(agent):
            f[part] = Z @ W + own.offsets[:, None]
        return f

    def shaped(self, w: Array) -> Array:
        """Return w as agents x length of z x outputs."""
        return w.reshape(len(w), self._design.width, self._outputs)

    def _blocks(self, agent: int) -> Iterator[tuple[slice, Array, GLMRows]]:
        rows = self._rows[agent]
        for part, Z in self._design.blocks(rows):
            own = GLMRows(rows.X[part], rows.y[part], rows.weights[part], rows.offsets[part])
            yield part, Z, own
