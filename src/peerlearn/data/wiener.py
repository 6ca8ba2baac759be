"""Wiener systems: a linear filter, then a nonlinearity, heard by agents in different noise.

    d_k[n] = f0(w0'x_k,n) + v_k[n]         x_k,n = (x_k[n], ..., x_k[n-M+1]), zeros before the start
    x_k[n] = a_k x_k[n-1] + sqrt(1 - a_k^2) xi_k[n]

w0 and f0 are the same for all agents; a_k ~ U[0, 0.8] and the power of v_k, U[-25, -10] dB, are
each agent's own. Scarpiniti et al., Nonlinear spline adaptive filtering, 2013; Scardapane's thesis,
section 10.4. What is printed leaves M, the norm of w0 and f0 open: they are 5, one, and the two
below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from peerlearn.arrays import Array, is_whole
from peerlearn.errors import DataError

SPACING = 0.2
KNOTS: Array = SPACING * np.arange(-11.0, 12.0)  # -2.2 ... 2.2
MILD: Array = np.array([
    -2.2, -2.0, -1.8, -1.6, -1.4, -1.2, -1.0, -0.8, -0.91, -0.4, 0.2, -0.05,
    0.0, -0.15, 0.58, 1.0, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2,
])  # fmt: skip
SYSTEM, AGENTS, SIGNALS = range(3)  # what a stream of random numbers is for


@dataclass(frozen=True)
class WienerSignals:
    """What agents record, and what they should learn from it.

    d - clean is the noise; f0 at the knots are the control points that a Catmull-Rom spline should
    find.
    """

    x: Array  # agents x samples, as the next two
    d: Array
    clean: Array
    noise_power: Array  # one per agent, as the next
    correlation: Array
    coefficients: Array  # w0, of norm one
    f0: Callable[[Array], Array]
    control_points: Array
    knots: Array


def wiener(
    agents: int = 10,
    samples: int = 25_000,
    *,
    order: int = 5,
    nonlinearity: str = "mild",
    seed: int = 0,
    signals: int = 0,
) -> WienerSignals:
    """Signals of agents that hear the same system; another `signals`: another recording of the same agents.

    An agent's signals do not depend on how many others there are, nor on how long all record.
    """
    _whole(1, agents=agents, samples=samples, order=order)
    _whole(0, seed=seed, signals=signals)
    if not isinstance(nonlinearity, str) or nonlinearity not in NONLINEARITIES:
        known = " or ".join(repr(name) for name in NONLINEARITIES)
        raise DataError(f"a Wiener system has no nonlinearity {nonlinearity!r}: choose {known}")
    from scipy.signal import lfilter  # takes .1 s; other data sets do without

    f0 = NONLINEARITIES[nonlinearity]
    w0 = np.random.default_rng((seed, SYSTEM)).standard_normal(order)
    w0 /= np.linalg.norm(w0)
    own = [
        np.random.default_rng((seed, AGENTS, k)).uniform((0.0, -25.0), (0.8, -10.0))
        for k in range(agents)
    ]
    a, decibels = np.array(own).T
    power = 10 ** (decibels / 10)
    drawn = [
        np.random.default_rng((seed, SIGNALS, signals, k)).standard_normal((samples, 2))
        for k in range(agents)
    ]
    x = np.array(
        [
            lfilter([np.sqrt(1 - a_k**2)], [1.0, -a_k], xi_k[:, 0])
            for a_k, xi_k in zip(a, drawn, strict=True)
        ]
    )
    clean = f0(lfilter(w0, [1.0], x))
    d = clean + np.sqrt(power)[:, None] * np.array([v_k[:, 1] for v_k in drawn])
    return WienerSignals(x, d, clean, power, a, w0, f0, f0(KNOTS), KNOTS.copy())


def mild(s: Array) -> Array:
    """The Catmull-Rom spline through MILD at KNOTS, and beyond -2 and 2 along its tangent, which has slope one."""
    within = np.clip(s, KNOTS[1], KNOTS[-2])
    i = np.clip(np.floor(within / SPACING).astype(int) + 10, 0, len(MILD) - 4)
    u = within / SPACING - (i - 10)
    q0, q1, q2, q3 = (MILD[i + j] for j in range(4))
    spline: Array = q1 + u / 2 * (
        q2 - q0 + u * (2 * q0 - 5 * q1 + 4 * q2 - q3 + u * (3 * (q1 - q2) + q3 - q0))
    )
    return spline + (s - within)


def strong(s: Array) -> Array:
    """The identity with two peaks, nearly three times as high as it at 0.7 and -0.7."""
    return s + 1.25 * (np.exp(-(((s - 0.7) / 0.3) ** 2)) - np.exp(-(((s + 0.7) / 0.3) ** 2)))


NONLINEARITIES = {"mild": mild, "strong": strong}


def _whole(least: int, **values: Any) -> None:
    for name, value in values.items():
        if not is_whole(value) or value < least:
            raise DataError(
                f"a Wiener system cannot be drawn with {name}={value!r}: give a whole number, {least} or more"
            )
