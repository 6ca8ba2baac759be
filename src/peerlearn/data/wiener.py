"""Wiener systems: a linear filter, then a nonlinearity, recorded by agents in different noise.

    d_k[n] = f0(w0'x_k,n) + v_k[n]         x_k,n = (x_k[n], ..., x_k[n-M+1]), zeros before the start
    x_k[n] = a_k x_k[n-1] + sqrt(1 - a_k^2) xi_k[n]

w0 and f0 are the same for all agents. Each agent has its own a_k ~ U[0, 0.8] and its own power of
v_k, U[-25, -10] dB. Scarpiniti et al., Nonlinear spline adaptive filtering, 2013; Scardapane's
thesis, section 10.4. The printed text leaves M, the norm of w0 and f0 open: here they are 5, one,
and the two functions below.
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
# Each use of random numbers has a stream of its own.
SYSTEM = 0
AGENTS = 1
SIGNALS = 2


@dataclass(frozen=True)
class WienerSignals:
    """Recordings of all agents, and the system that they should learn from them.

    d - clean is the noise. The control points are those that a Catmull-Rom spline should find.

    Parameters
    ----------
    x : ndarray
        Inputs, agents x samples.
    d : ndarray
        Noisy outputs, agents x samples.
    clean : ndarray
        Outputs without noise, agents x samples.
    noise_power : ndarray
        Power of the noise, one per agent.
    correlation : ndarray
        Correlation a of the input, one per agent.
    coefficients : ndarray
        w0, the linear filter, of norm one.
    f0 : callable
        The nonlinearity.
    control_points : ndarray
        f0 at the knots.
    knots : ndarray
        Equispaced knots from -2.2 to 2.2.

    Examples
    --------
    >>> from peerlearn.data import wiener
    >>> signals = wiener(agents=3, samples=100)
    >>> signals.x.shape, signals.control_points.shape
    ((3, 100), (23,))
    """

    x: Array
    d: Array
    clean: Array
    noise_power: Array
    correlation: Array
    coefficients: Array
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
    """Draw the signals of agents that record the same system.

    The signals of an agent do not depend on the number of agents, nor on the number of samples.

    Parameters
    ----------
    agents : int, default 10
        Number of agents.
    samples : int, default 25000
        Samples per agent.
    order : int, default 5
        Length of the linear filter, M in the formulas.
    nonlinearity : {"mild", "strong"}, default "mild"
        f0 in the formulas.
    seed : int, default 0
        Seed of the system and of the agents.
    signals : int, default 0
        Number of the recording: another number gives another recording of the same agents.

    Returns
    -------
    WienerSignals
        Recordings, and the system behind them.

    Examples
    --------
    >>> from peerlearn import data
    >>> first = data.wiener(agents=2, samples=50)
    >>> second = data.wiener(agents=2, samples=50, signals=1)
    >>> (first.coefficients == second.coefficients).all(), (first.x == second.x).any()
    (np.True_, np.False_)
    """
    _check_whole(1, agents=agents, samples=samples, order=order)
    _check_whole(0, seed=seed, signals=signals)
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
    noise = [  # xi_k and v_k, before they have their power
        np.random.default_rng((seed, SIGNALS, signals, k)).standard_normal((samples, 2))
        for k in range(agents)
    ]
    x = np.array(
        [
            lfilter([np.sqrt(1 - a_k**2)], [1.0, -a_k], own_noise[:, 0])
            for a_k, own_noise in zip(a, noise, strict=True)
        ]
    )
    v = np.sqrt(power)[:, None] * np.array([own_noise[:, 1] for own_noise in noise])
    clean = f0(lfilter(w0, [1.0], x))
    return WienerSignals(x, clean + v, clean, power, a, w0, f0, f0(KNOTS), KNOTS.copy())


def mild(s: Array) -> Array:
    """Return the Catmull-Rom spline through MILD at KNOTS.

    Beyond -2 and 2 it goes on along its tangent, which has slope one.
    """
    within = np.clip(s, KNOTS[1], KNOTS[-2])
    i = np.clip(np.floor(within / SPACING).astype(int) + 10, 0, len(MILD) - 4)
    u = within / SPACING - (i - 10)
    q0, q1, q2, q3 = (MILD[i + j] for j in range(4))
    spline: Array = q1 + u / 2 * (
        q2 - q0 + u * (2 * q0 - 5 * q1 + 4 * q2 - q3 + u * (3 * (q1 - q2) + q3 - q0))
    )
    return spline + (s - within)


def strong(s: Array) -> Array:
    """Return the identity with two peaks, which nearly triple it at 0.7 and -0.7."""
    return s + 1.25 * (np.exp(-(((s - 0.7) / 0.3) ** 2)) - np.exp(-(((s + 0.7) / 0.3) ** 2)))


NONLINEARITIES = {"mild": mild, "strong": strong}


def _check_whole(least: int, **values: Any) -> None:
    for name, value in values.items():
        if not is_whole(value) or value < least:
            raise DataError(
                f"a Wiener system cannot be drawn with {name}={value!r}: give a whole number, "
                f"{least} or more"
            )
