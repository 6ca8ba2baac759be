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
    """What a solver needs to know of g."""

    @property
    def alpha(self) -> float: ...

    @property
    def convexity(self) -> float:
        """The largest m for which g - m/2 |b|^2 is still convex: turns gradients into distances."""
        ...

    def prox(self, v: Array, step: float) -> Array:
        """argmin_z g(z) + 1/(2 step) |z - v|^2"""
        ...


@dataclass(frozen=True)
class Ridge:
    alpha: float

    def __post_init__(self) -> None:
        _check(self.alpha)

    @property
    def convexity(self) -> float:
        return self.alpha

    def prox(self, v: Array, step: float) -> Array:
        return v / (1 + step * self.alpha)


@dataclass(frozen=True)
class Lasso:
    alpha: float

    def __post_init__(self) -> None:
        _check(self.alpha)

    @property
    def convexity(self) -> float:
        return 0.0

    def prox(self, v: Array, step: float) -> Array:
        shrunk: Array = np.sign(v) * np.maximum(
            np.abs(v) - step * self.alpha, 0.0
        )  # element by element
        return shrunk


def _check(alpha: float) -> None:
    plain = alpha.item() if isinstance(alpha, np.generic) else alpha
    if not (is_real(plain) and 0 <= plain <= sys.float_info.max):
        raise InputError(
            f"alpha, the weight of the penalty, must be a finite number of 0 or more, not {alpha!r}"
        )
