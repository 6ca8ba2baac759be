"""Number of rounds of averaging for a given accuracy, from the spectrum of the mixing matrix.

With e the deviations of all agents from their average, [a, b] the interval of the eigenvalues of
the mixing matrix without the 1 of the constant vector, and rho = max(|a|, |b|),

    plain:      |e[n]| <= rho^n |e[0]|
    chebyshev:  |e[n]| <= |e[0]| / T_n(xi),   xi = (2 - a - b)/(b - a),   T_n(xi) = cosh(n acosh xi)

The polynomial of degree n with p(1) = 1 that is smallest on [a, b] is T_n of the interval mapped to
[-1, 1], over T_n(xi) (Golub and Varga, Chebyshev semi-iterative methods, 1961).
"""

from __future__ import annotations

import math

from peerlearn.errors import InputError, WeightsError

ROUNDING = 1e-13  # eigenvalues closer than this are equal


def plain_rounds(contraction: float, accuracy: float) -> int:
    """Return the smallest n with rho^n <= accuracy."""
    _check(contraction, accuracy)
    if accuracy >= 1:
        return 0
    return _steps(-math.log(accuracy), -math.log(contraction)) if contraction > 0 else 1


def chebyshev_rounds(largest: float, smallest: float, accuracy: float) -> int:
    """Return the smallest n with 1/T_n(xi) <= accuracy."""
    _check(largest, accuracy)
    if accuracy >= 1:
        return 0
    if largest - smallest < ROUNDING:
        return 1
    beyond = 2 * (1 - largest) / (largest - smallest)  # xi - 1, without cancellation near xi = 1
    return _steps(
        math.log1p(math.sqrt((1 - accuracy) * (1 + accuracy))) - math.log(accuracy),
        math.log1p(beyond + math.sqrt(beyond * (2 + beyond))),
    )


def chebyshev_interval(largest: float, smallest: float) -> tuple[float, float, float]:
    """Return (scale, shift, 1/xi) of the map of [a, b] to [-1/xi, 1/xi].

    S = scale C + shift I has S 1 = 1, and its other eigenvalues are in [-1/xi, 1/xi].
    """
    gaps = 2 - largest - smallest
    return 2 / gaps, -(largest + smallest) / gaps, (largest - smallest) / gaps


def _check(contraction: float, accuracy: float) -> None:
    if not accuracy > 0:
        raise InputError(f"accuracy is {accuracy!r}: give a positive number, such as 1e-6")
    if contraction >= 1:
        raise WeightsError(
            f"weights with contraction {contraction:.6g} never reach the average: "
            "connect all agents"
        )


def _steps(way: float, step: float) -> int:
    """Return the smallest n >= 1 with n step >= way, up to rounding."""
    return max(1, math.ceil(way / step * (1 - 1e-12)))
