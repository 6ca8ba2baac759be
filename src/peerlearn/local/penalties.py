"""Penalties on the coefficients, known to all agents.

Ridge:  g(b) = alpha/2 |b|^2        Lasso:  g(b) = alpha |b|_1
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from peerlearn.arrays import Array, is_real
from peerlearn.errors import InputError


class Penalty(Protocol):
    """Protocol of a penalty g, as solvers use it."""

    @property
    def alpha(self) -> float:
        """Weight of the penalty."""
        ...

    @property
    def convexity(self) -> float:
        """Largest m for which g - m/2 |b|^2 is convex. It turns gradients into distances."""
        ...

    def prox(self, v: Array, step: float) -> Array:
        """Return argmin_z g(z) + 1/(2 step) |z - v|^2."""
        ...


@dataclass(frozen=True)
class Ridge:
    """Ridge penalty g(b) = alpha/2 |b|^2."""

    alpha: float

    def __post_init__(self) -> None:
        _check(self.alpha)

    @property
    def convexity(self) -> float:
        """Largest m for which g - m/2 |b|^2 is convex."""
        return self.alpha

    def prox(self, v: Array, step: float) -> Array:
        """Return argmin_z g(z) + 1/(2 step) |z - v|^2."""
        return v / (1 + step * self.alpha)


@dataclass(frozen=True)
class Lasso:
    """Lasso penalty g(b) = alpha |b|_1."""

    alpha: float

    def __post_init__(self) -> None:
        _check(self.alpha)

    @property
    def convexity(self) -> float:
        """Largest m for which g - m/2 |b|^2 is convex."""
        return 0.0

    def prox(self, v: Array, step: float) -> Array:
        """Return argmin_z g(z) + 1/(2 step) |z - v|^2, element by element."""
        shrunk: Array = np.sign(v) * np.maximum(np.abs(v) - step * self.alpha, 0.0)
        return shrunk


def _check(alpha: float) -> None:
    plain = alpha.item() if isinstance(alpha, np.generic) else alpha
    if not (is_real(plain) and 0 <= plain <= sys.float_info.max):
        raise InputError(
            f"alpha, the weight of the penalty, must be a finite number of 0 or more, not {alpha!r}"
        )
