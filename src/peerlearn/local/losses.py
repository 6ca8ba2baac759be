"""Protocols of smooth losses h_k, one per hosted agent. Solvers take any class with these methods.

All methods take w, agents x d, and return what each agent computes at its own row of w.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from peerlearn.arrays import Array

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
