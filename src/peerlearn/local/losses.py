"""Protocols of smooth losses h_k, one per hosted agent. Solvers take any class with these methods.

All methods take w, agents x d, and return what each agent computes at its own row of w.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from peerlearn.arrays import Array, norms
from peerlearn.errors import InputError

EPS = float(np.finfo(np.float64).eps)
# A number of a gradient is a sum of many rounded terms. Most errors cancel: 16 eps times the sum of
# the terms' sizes is a model with a margin, not a proof.
ROUNDING = 16.0 * EPS

Product = Callable[[Array], Array]  # (agents, d) -> (agents, d), each agent on its own


class Losses(Protocol):
    """Losses with values and gradients."""

    @property
    def agents(self) -> int:
        """Number of hosted agents."""
        ...

    @property
    def dimension(self) -> int:
        """Length d of w_k."""
        ...

    def value(self, w: Array) -> Array:
        """Return h_k(w_k): (agents,)."""
        ...

    def gradient(self, w: Array) -> Array:
        """Return grad h_k(w_k): (agents, d)."""
        ...


@runtime_checkable
class PartlyConvexLosses(Losses, Protocol):
    """Losses with a convex part whose gradient is known separately."""

    def convex_gradient(self, w: Array) -> Array:
        """Return the gradient of the convex part at w_k: (agents, d)."""
        ...


@runtime_checkable
class CurvedLosses(Losses, Protocol):
    """Losses whose curvature is known."""

    def curvature(self, w: Array) -> Product:
        """Return p -> P_k p, with P_k positive semidefinite and near the Hessian of h_k at w_k."""
        ...


@runtime_checkable
class HessianLosses(Losses, Protocol):
    """Losses whose Hessian is known as a matrix."""

    def hessian(self, w: Array) -> Array:
        """Return the Hessian of h_k at w_k, or a matrix near it: (agents, d, d), symmetric."""
        ...


@runtime_checkable
class SampledLosses(Losses, Protocol):
    """Losses of so many rows that some of them are enough to learn the Hessian roughly."""

    def sample(self) -> Losses | None:
        """Return losses whose Hessians are near those of all rows; None if rows are few."""
        ...


@runtime_checkable
class SelfConcordantLosses(Losses, Protocol):
    """Convex losses whose Hessian changes by a bounded factor.

    Over a step v the Hessian changes by a factor between exp(-R_k |v|) and exp(R_k |v|). Bach,
    Self-concordant analysis for logistic regression, 2010.
    """

    def self_concordance(self) -> Array:
        """Return R_k: (agents,)."""
        ...


@runtime_checkable
class RoundedLosses(Losses, Protocol):
    """Losses that bound the rounding error of their gradient."""

    def gradient_error(self, w: Array) -> Array:
        """Return a bound of the error of `gradient` at w_k: (agents,)."""
        ...


def are_convex(losses: Any) -> bool:
    """Return whether losses declare that they are convex, by an attribute `convex` that is True."""
    return getattr(losses, "convex", False) is True


def gradient_errors(losses: Losses, w: Array, gradient: Array) -> Array:
    """Return bounds of the rounding errors of all agents' gradients: (agents,).

    Where losses have no `gradient_error`, the errors are taken to be relative to the gradients.
    """
    if isinstance(losses, RoundedLosses):
        return losses.gradient_error(w)
    return ROUNDING * norms(gradient)


def hessians(losses: Losses, w: Array) -> Array:
    """Return each agent's Hessian at w_k, or a matrix near it: (agents, d, d).

    From `hessian`, or column by column from the products of `curvature`.
    """
    if isinstance(losses, HessianLosses):
        return losses.hessian(w)
    if not isinstance(losses, CurvedLosses):
        raise InputError(
            f"Newton needs losses with a hessian or a curvature method, and "
            f"{type(losses).__name__} has neither: add one, or use solver='lbfgs'"
        )
    product = losses.curvature(w)
    matrices = np.empty((losses.agents, losses.dimension, losses.dimension))
    for j in range(losses.dimension):
        unit = np.zeros_like(w)
        unit[:, j] = 1.0
        matrices[:, :, j] = product(unit)
    return matrices
