"""Losses that depend on each row through one number, its output.

    h_k(w) = sum_i phi_i(f_i),     f_i = w'(x_i - m) + b,     i over the rows of agent k
    grad h_k = sum_i phi_i'(f_i) (x_i - m)
    curvature  sum_i c_i (x_i - m)(x_i - m)',     c_i = max(phi_i''(f_i), 0)

The rows of all hosted agents are one block-diagonal sparse matrix, so all agents cost two sparse
products. Such a product sums each row alone and in order: an agent gets the same bits with others
beside it as without. If inputs are sparse, m is never subtracted from them:

    f = X w + (b - w'm),     gradient  X'c - m sum(c)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from peerlearn.arrays import Array, dots, norms
from peerlearn.errors import DataError
from peerlearn.local.losses import ROUNDING, Product


class RowLosses(ABC):
    """Base class of losses with values and derivatives at w, hosted agents x d.

    Each agent computes at its own row of w.
    """

    def __init__(
        self,
        inputs: Sequence[Any],
        targets: Sequence[Any],
        m: Any = 0.0,
        b: float = 0.0,
    ) -> None:
        rows = [_rows(X, k) for k, X in enumerate(inputs)]
        y = [np.asarray(own, dtype=np.float64) for own in targets]
        _check_match(rows, y)
        self.agents = len(rows)
        self.dimension = rows[0].shape[1]
        self._X = sp.block_diag(rows, format="csr")
        lengths = [len(own) for own in y]
        self._owner = np.repeat(np.arange(self.agents), lengths)
        self.y = np.concatenate(y)
        self._m = _copies(m, self.agents, self.dimension)
        self._b = float(b)

    @abstractmethod
    def _phi(self, f: Array) -> Array:
        """Return phi_i(f_i)."""

    @abstractmethod
    def _slope(self, f: Array) -> Array:
        """Return phi_i'(f_i)."""

    @abstractmethod
    def _bend(self, f: Array) -> Array:
        """Return max(phi_i''(f_i), 0)."""

    def _convex_slope(self, f: Array) -> Array:
        """Return phi_i'(f_i) of the rows whose phi_i is convex, and 0 of the others."""
        return self._slope(f)

    def value(self, w: Array) -> Array:
        """Return h_k(w_k): shape (agents,)."""
        return self._sums(self._phi(self.outputs(w)))

    def gradient(self, w: Array) -> Array:
        """Return grad h_k(w_k): shape (agents, d)."""
        return self._back(self._slope(self.outputs(w)))

    def convex_gradient(self, w: Array) -> Array:
        """Return the gradient of the convex part of h_k."""
        return self._back(self._convex_slope(self.outputs(w)))

    def curvature(self, w: Array) -> Product:
        """Return the product with a positive semidefinite approximation of h_k's Hessian at w_k."""
        c = self._bend(self.outputs(w))
        return lambda p: self._back(c * self._forth(p))

    def gradient_error(self, w: Array) -> Array:
        """Return a bound of the rounding error of `gradient` at w_k, if all phi_i are convex.

        Two errors are added: that of the sum over rows, and that of phi' where f is rounded.
        """
        lengths = self.row_lengths()
        f = self.outputs(w)
        reach = lengths * norms(w)[self._owner] + abs(self._b)
        sizes = np.abs(self._slope(f)) + self._bend(f) * reach
        return ROUNDING * self._sums(sizes * lengths)

    def row_lengths(self) -> Array:
        """Return |x_i| + |m| of all rows, agent by agent."""
        squares: Array = np.asarray(self._X.multiply(self._X).sum(axis=1)).ravel()
        return np.sqrt(squares) + norms(self._m)[self._owner]

    def outputs(self, w: Array) -> Array:
        """Return f of all rows, agent by agent."""
        return self._forth(w) + self._b

    def _forth(self, w: Array) -> Array:
        """Return w'(x - m) of all rows."""
        shifts: Array = dots(w, self._m)
        outputs: Array = self._X @ w.ravel() - shifts[self._owner]
        return outputs

    def _back(self, c: Array) -> Array:
        """Return the sum of c (x - m) over the rows of each agent."""
        back: Array = (self._X.T @ c).reshape(self.agents, self.dimension)
        return back - self._m * self._sums(c)[:, None]

    def _sums(self, c: Array) -> Array:
        """Return the sums of c over the rows of each agent, in order."""
        sums = np.bincount(self._owner, weights=c, minlength=self.agents)
        return sums.astype(np.float64)


def _rows(X: Any, agent: int) -> Any:
    """Check the inputs of one agent, and return them as a sparse matrix."""
    rows = sp.csr_array(X, dtype=np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    if rows.ndim != 2:
        raise DataError(f"inputs[{agent}] has shape {rows.shape}: give one row per example, n x d")
    if not np.isfinite(rows.data if sp.issparse(rows) else rows).all():
        raise DataError(f"inputs[{agent}] has entries that are NaN or infinite: drop or fill them")
    return sp.csr_array(rows)


def _copies(
    m: Any,
    agents: int,
    d: int,
) -> Array:
    """Return m with one row per agent, from one row for all or one of each agent."""
    if np.shape(m) not in ((), (d,), (agents, d)):
        raise DataError(
            f"m has shape {np.shape(m)}: give {d} numbers, one per column, or {agents} agents x {d}"
        )
    # A copy, because a broadcast view has strides of zero.
    view = np.broadcast_to(m, (agents, d))
    return np.array(view, dtype=np.float64, order="C")


def _check_match(rows: Sequence[Any], y: Sequence[Array]) -> None:
    if not rows or len(rows) != len(y):
        raise DataError(
            f"there are inputs of {len(rows)} agents and targets of {len(y)}: give one array of "
            "each per agent"
        )
    for k, (X, own) in enumerate(zip(rows, y, strict=True)):
        if X.shape[1] != rows[0].shape[1]:
            raise DataError(
                f"inputs[{k}] has {X.shape[1]} columns, inputs[0] has {rows[0].shape[1]}: give "
                "all the same"
            )
        if own.shape != (X.shape[0],):
            raise DataError(
                f"targets[{k}] has shape {own.shape}, but inputs[{k}] has {X.shape[0]} rows: give "
                "one per row"
            )
