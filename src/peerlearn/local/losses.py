"""What a solver may ask of losses h_k, one per hosted agent. Anything with these methods will do.

All take w, agents x d, and give what each agent finds at its own row of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from peerlearn.arrays import Array

Product = Callable[[Array], Array]  # (agents, d) -> (agents, d), each agent on its own


class Losses(Protocol):
    @property
    def agents(self) -> int: ...

    @property
    def dimension(self) -> int: ...

    def value(self, w: Array) -> Array:
        """h_k(w_k): (agents,)"""
        ...

    def gradient(self, w: Array) -> Array:
        """grad h_k(w_k): (agents, d)"""
        ...


@runtime_checkable
class PartlyConvexLosses(Losses, Protocol):
    """h_k with a convex part that is known apart from the rest."""

    def convex_gradient(self, w: Array) -> Array:
        """The gradient of the convex part at w_k: (agents, d)"""
        ...


@runtime_checkable
class CurvedLosses(Losses, Protocol):
    """h_k that know how they bend."""

    def curvature(self, w: Array) -> Product:
        """p -> P_k p, with P_k positive semidefinite and near the second derivative of h_k at w_k"""
        ...
