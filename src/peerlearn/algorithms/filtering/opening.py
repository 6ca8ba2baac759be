"""The scale of signals, estimated from their first samples, and the filter that fits it.

After 128 samples, the opening:

    m_k = median of x_k,   r_k = 80 % quantile of |x_k - m_k| / 1.28    alone; the same for d
    r = max r_k,   m = (max m_k + min m_k) / 2                          over the network: one flood
    p_k = mean of min(u^2, 16),   u = (x_k - m_x) / r_x                 alone
    A = r_x sqrt(sum p_k^2 / sum p_k) / (knots / 2.2)                   over the network: one sum
    D = A times the power of ten nearest to r_d / r_x                   alone
    w = (1/A, 0, .., 0),   bias = -m_x / A,   q = D knots + m_d         alone

so that y = m_d + D/A (x - m_x). The knots of a spline are fixed numbers, so w and q take the scale:
the signals themselves stay as they are. Steps of w are multiplied by 1 / (A D)^2, and those of the
bias by 1 / D^2, and so are their variances in P[0]: the filter then learns as it would from signals
divided by A and D. Signals that are all multiplied by one number give the same filter.

Neither medians, quantiles nor limited squares follow an outlier. Agents whose signal is constant do
not count, and quiet ones count little: p_k is weighted by itself. Offsets count as 0 unless they
are larger than twice the spread.

After 512, 1024 and 2048 samples, with p_k of all samples so far:

    A' as A above,   f = A' / A                                         over the network: one sum
    w <- w / f,   bias <- bias / f,   phi(s) <- phi(f s),   P alike     alone

An agent that learns alone has fewer samples to estimate from, and pays for a wrong A with what it
learned. So it keeps 512 samples, and starts anew from all of them instead of the first of these
refinements. Agents that talk cannot: what they learned contains what others sent.

A refinement changes outputs only as far as the spline cannot follow. It is needed because
(a w, phi(s / a)) is the same filter for any a, D decides which one is found, and the fit depends on
how the knots fall on the nonlinearity: 5 % of A may cost 5 dB, and 128 samples of 10 agents give A
to about 3 %.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.filtering.kernels import FADE, LEARNED, RLS
from peerlearn.algorithms.filtering.shape import Shape
from peerlearn.algorithms.sums import maximum, sum_alike
from peerlearn.arrays import Array
from peerlearn.local.recursive import State
from peerlearn.local.splines import Spline
from peerlearn.network.base import Network

REFINEMENTS = (512, 1024, 2048)  # samples after which A is estimated again
WITHIN = 0.8  # part of a normal distribution that is within DEVIATIONS standard deviations
DEVIATIONS = 1.2815515655446004
KNOTS = 2.2  # of a spline for signals of size one
LOUDEST = 16.0  # largest u^2 that counts
FORGET = 0.1  # fade after A has changed, relative to the change: q was learned at other knots
LARGEST_SCALE = 1e70  # (A D)^2 stays within float64
UNKNOWN = np.finfo(np.float64).min  # instead of -inf, which is never sent
A_NOW, GAIN, R_X, M_X, SQUARES = range(5)  # columns of state["scale"]: A, D/A, r_x, m_x, sum of u^2


def adapt_to_opening(
    network: Network, shape: Shape, sends: bool, state: State, opening: Array
) -> None:
    """Scale the start of the filters in place.

    sends: whether agents agree on the scale. opening: the first samples of x and d, hosted agents
    x 2 x samples.
    """
    largest = np.stack([_measure(own) for own in opening])
    if sends:
        largest = maximum(network, largest)
    spreads = [_read(row) for row in largest]
    scale = state["scale"]
    size = shape.theta[-1] / KNOTS
    for k, (r_x, m_x, r_d, _) in enumerate(spreads):
        power = np.rint(np.log10(r_d) - np.log10(r_x))
        A = _limit(r_x / size)
        D = _limit(A * 10.0**power)
        scale[k] = np.array([A, D / A, r_x, m_x, 0.0])
    _add_squares(scale, opening[:, 0])
    scale[:, A_NOW] = _estimate(network, shape, sends, scale, opening.shape[2])
    order = shape.design.order
    taps = order + shape.design.bias
    for k, (_, m_x, _, m_d) in enumerate(spreads):
        A = scale[k, A_NOW]
        D = A * scale[k, GAIN]
        theta = shape.theta.copy()
        theta[:order] /= A
        theta[order:taps] = -m_x / A
        theta[taps:] = D * theta[taps:] + m_d
        state["theta"][k] = theta
        state["start"][k] = theta
        _set_units(shape, state, k)
        if shape.design.update == RLS:
            state["P"][k] = np.diag(state["prior"][k])
            state["watch"][k] = [D**2, 0.0, LEARNED, 0.0]
    for name in {"sent", "heard"} & set(state):
        state[name] = state["theta"][:, :, None].copy()


def until_refinement(shape: Shape, state: State) -> int:
    """Return the number of samples until A is estimated again; 0 if it never is."""
    clock = int(state["clock"][0])
    if shape.scaled is None:
        return 0
    return next((n - clock for n in REFINEMENTS if n > clock), 0)


def refine(network: Network, shape: Shape, sends: bool, state: State, x: Array) -> None:
    """Count samples x, which were just learned, and estimate A again if it is time."""
    clock = int(state["clock"][0])
    scale = state["scale"]
    _add_squares(scale, x)
    if shape.scaled is None or clock not in REFINEMENTS:
        return
    estimates = _estimate(network, shape, sends, scale, clock)
    for k, A in enumerate(estimates):
        _stretch(shape, shape.scaled, state, k, A / scale[k, A_NOW])
        scale[k, A_NOW] = A
        _set_units(shape, state, k)


def _add_squares(scale: Array, x: Array) -> None:
    """Add u^2 of these samples, one after the other: the bits do not depend on the blocks."""
    u = (x - scale[:, M_X, None]) / scale[:, R_X, None]
    squares = np.column_stack([scale[:, SQUARES], np.minimum(u * u, LOUDEST)])
    scale[:, SQUARES] = np.add.accumulate(squares, axis=1)[:, -1]


def _estimate(network: Network, shape: Shape, sends: bool, scale: Array, samples: int) -> Array:
    """Return A of each hosted agent, from so many samples."""
    power = scale[:, SQUARES] / samples
    sums = np.column_stack([power, power**2])
    if sends:
        sums = sum_alike(network, sums, Averaging())
    silent = sums[:, 0] <= 0
    relative = np.where(silent, 1.0, sums[:, 1] / np.where(silent, 1.0, sums[:, 0]))
    size = shape.theta[-1] / KNOTS
    estimates: Array = _limit(scale[:, R_X] * np.sqrt(relative) / size)
    return estimates


def _stretch(shape: Shape, spline: Spline, state: State, k: int, f: float) -> None:
    """Replace s by s / f in the filter of agent k, and phi(s) by phi(f s)."""
    taps = shape.design.order + shape.design.bias

    def convert(columns: Array) -> Array:
        converted = columns / f
        converted[taps:] = spline.stretch(f, columns[taps:])
        return converted

    for name in {"theta", "start", "sent", "heard", "before"} & set(state):
        state[name][k] = convert(state[name][k])
    if shape.design.update == RLS:
        half = convert(state["P"][k])
        P = convert(half.T)
        state["P"][k] = (P + P.T) / 2
        state["fade"][k] = max(state["fade"][k], min(FADE, FORGET * abs(np.log(f))))


def _set_units(shape: Shape, state: State, k: int) -> None:
    """Set the factors of agent k's steps and variances from its scale."""
    order = shape.design.order
    taps = order + shape.design.bias
    A, gain = state["scale"][k, [A_NOW, GAIN]].tolist()
    D = A * gain
    units = np.array([1 / (A * D) ** 2, 1 / D**2])
    state["units"][k] = units
    state["prior"][k] = shape.prior
    state["prior"][k, :order] *= units[0]
    state["prior"][k, order:taps] *= units[1]


def _measure(signals: Array) -> Array:
    """Return r, m and -m of x, and the same of d."""
    rows = []
    for signal in signals:
        middle = np.sort(signal)[len(signal) // 2]
        spread = np.sort(np.abs(signal - middle))[int(WITHIN * len(signal))] / DEVIATIONS
        rows += [spread, middle, -middle] if spread > 0 else [UNKNOWN] * 3
    return np.array(rows)


def _read(largest: Array) -> tuple[float, float, float, float]:
    """Return r and m of x and of d. An r that nobody knows is 1, or that of the other signal."""
    r_x, above_x, below_x, r_d, above_d, below_d = largest.tolist()
    if r_x == UNKNOWN:
        r_x = 1.0 if r_d == UNKNOWN else r_d
    if r_d == UNKNOWN:
        r_d = r_x
    return r_x, _offset(above_x, below_x, r_x), r_d, _offset(above_d, below_d, r_d)


def _offset(above: float, below: float, spread: float) -> float:
    """Return the middle of the offsets of all agents, or 0 if it is small."""
    middle = above / 2 - below / 2
    return middle if abs(middle) > 2 * spread else 0.0


def _limit(scale: Any) -> Any:
    return np.clip(scale, 1 / LARGEST_SCALE, LARGEST_SCALE)
