"""Splines on equispaced knots, with which adaptive filters learn a nonlinearity.

    z = s/dx + (Q - 1)/2,   i = floor(z) - 1,   u = z - floor(z)      span i (from 0), place in it
    b(u) = [u^3 u^2 u 1] B,   c(u) = [3u^2 2u 1 0] B / dx
    phi(s) = b(u)'q_i,        phi'(s) = c(u)'q_i                      q_i = [q_i, .., q_{i+3}]
    dphi/dq_i = b(u)

(thesis, section 10.2; u lies between the knots i + 1 and i + 2, so the outermost two of Q knots
only shape the ends.) Beyond the second and the last but one knot the spline goes on along its
tangent there. With s_e that end:

    b = b(u_e) + (s - s_e) c(u_e),   c = c(u_e)

With these b and c the formulas above still hold, so value, slope and dphi/dq agree everywhere.
Control points on the diagonal, q = knots, give phi(s) = s with either basis.

Theory of operation: one value depends on SPAN control points only. So `rows` computes, for all s at
once, the first of these points and the two rows b and c. Everything else is a product with four
numbers. The polynomials are evaluated by Horner's rule.

Guarnieri, Piazza and Uncini, Multilayer feedforward networks with adaptive spline activation
function, 1999; Scarpiniti, Comminiello, Parisi and Uncini, Nonlinear spline adaptive filtering,
2013.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from peerlearn.arrays import Array, Indices, is_real
from peerlearn.errors import InputError

SPAN = 4  # control points that one value depends on
CATMULL_ROM = np.array(
    [
        [-1, 3, -3, 1],
        [2, -5, 4, -1],
        [-1, 0, 1, 0],
        [0, 2, 0, 0],
    ]
)
BSPLINE = np.array(
    [
        [-1, 3, -3, 1],
        [3, -6, 3, 0],
        [-3, 0, 3, 0],
        [1, 4, 1, 0],
    ]
)
BASES = {
    "catmull-rom": CATMULL_ROM / 2,
    "bspline": BSPLINE / 6,
}

PLACES = np.vander(np.linspace(0, 1, 101), 4)  # [u^3 u^2 u 1]


def _least_square(B: Array) -> float:
    """Return the smallest b(u)'b(u)."""
    squares = (PLACES @ B) ** 2
    return float(np.min(np.add.reduce(squares, axis=1)))


LEAST = {name: _least_square(B) for name, B in BASES.items()}


@dataclass(frozen=True)
class Spline:
    """Spline with knots every `spacing` from -end to end.

    basis: "catmull-rom" goes through its control points, "bspline" has a second derivative without
    jumps.

    >>> spline = Spline(2.2, 0.2)
    >>> spline.size, spline.value([-9.0, 0.13, 1.0], spline.knots).round(12).tolist()
    (23, [-9.0, 0.13, 1.0])
    """

    end: float
    spacing: float
    basis: str = "catmull-rom"

    def __post_init__(self) -> None:
        for name, value in (("knots", self.end), ("spacing", self.spacing)):
            if not is_real(value) or not 0 < value < np.inf:
                raise InputError(
                    f"{name} is {value!r}: give a number above 0, such as knots=2.2 and spacing=0.2"
                )
        steps = self.end / self.spacing
        if not 1.5 < steps < 1e6 or abs(steps - round(steps)) > 1e-6:
            raise InputError(
                f"knots={self.end:g} must be a whole number of times spacing={self.spacing:g}, two "
                "to a million: give, for example, knots=2.2 and spacing=0.2"
            )
        if not isinstance(self.basis, str) or self.basis not in BASES:
            raise InputError(f"basis is {self.basis!r}: give one of {', '.join(map(repr, BASES))}")

    @cached_property
    def size(self) -> int:
        """Q, the number of knots."""
        return 2 * round(self.end / self.spacing) + 1

    @cached_property
    def knots(self) -> Array:
        """Knots. They are also the control points on the diagonal, for which phi(s) = s."""
        steps = np.arange(self.size) - (self.size - 1) / 2
        return np.asarray(self.spacing * steps, dtype=np.float64)

    @property
    def usable(self) -> Array:
        """Knots between which phi is the spline and not a tangent."""
        return self.knots[1:-1]

    @cached_property
    def B(self) -> Array:
        """Matrix of the basis."""
        return BASES[self.basis]

    @property
    def least(self) -> float:
        """Smallest b'b: a change of q by b changes phi by at least this."""
        return LEAST[self.basis]

    def value(self, s: Array | list[float], q: Array) -> Array:
        """Return phi(s) for one set of control points."""
        i, b, _ = self.rows(s)
        points = q[i[:, None] + np.arange(SPAN)]
        values: Array = np.add.reduce(b * points, axis=1)
        return values

    def rows(self, s: Array | list[float]) -> tuple[Indices, Array, Array]:
        """Return, for each s, its span i and the rows b and c of four numbers each."""
        z = np.asarray(s, dtype=np.float64) / self.spacing + (self.size - 1) / 2
        inside = np.clip(z, 1.0, self.size - 2)
        i = np.minimum(inside.astype(np.intp), self.size - 3) - 1
        u = (inside - i - 1)[:, None]
        B0, B1, B2, B3 = self.B
        slope = (3 * B0 * u + 2 * B1) * u + B2
        value = ((B0 * u + B1) * u + B2) * u + B3
        b = value + (z - inside)[:, None] * slope
        return i, b, slope / self.spacing

    def stretch(self, factor: float, q: Array) -> Array:
        """Return the control points of s -> phi(factor s) at the knots. q: those of phi, Q x any.

        >>> spline = Spline(2.2, 0.2)
        >>> bool(np.allclose(spline.stretch(1.1, spline.knots), 1.1 * spline.knots))
        True
        """
        stretched: Array = splu(self._matrix(1.0)).solve(self._matrix(factor) @ q)
        return stretched

    def _matrix(self, factor: float) -> Any:
        """Return R with phi(factor knots) = R q."""
        i, b, _ = self.rows(factor * self.knots)
        columns = i[:, None] + np.arange(SPAN)
        rows = np.repeat(np.arange(self.size), SPAN)
        shape = (self.size, self.size)
        return sp.csc_array((b.ravel(), (rows, columns.ravel())), shape=shape)
