"""The scale of signals, from their first samples, and the filter that fits it.

    m_k = median of x_k,   r_k = 80 % quantile of |x_k - m_k| / 1.28    alone; the same for d
    r = max r_k,   m = (max m_k + min m_k) / 2                          over the network: one flood
    A = the power of ten with .4 A < r / (knots / 2.2) <= 4 A           alone; D likewise, of d
    w = (1/A, 0, .., 0),   bias = -m_x / A,   q = D knots + m_d         alone: y = m_d + D/A (x - m_x)

The knots of a spline are fixed numbers, so w and q take the scale: the signals themselves stay as
they are. Steps of w are multiplied by 1 / (A D)^2, and those of the bias by 1 / D^2, and so are
their variances in P[0]: the filter then learns as it would from signals divided by A and D.

Only the order of magnitude is taken, and offsets only if they are larger than twice the scale, so
that a filter of signals that were scaled by hand begins as if nothing had been estimated. Medians and
quantiles do not notice an outlier. Agents whose signal is constant do not count. Because the largest r_k is taken, the
knots cover the loudest agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peerlearn.algorithms.filtering.kernels import LEARNED, RLS
from peerlearn.algorithms.flooding import maximum
from peerlearn.arrays import Array
from peerlearn.local.recursive import State
from peerlearn.network.base import Network

if TYPE_CHECKING:
    from peerlearn.algorithms.filtering.diffusion import Shape

OPENING = 128  # samples from which the scale is estimated
WITHIN = 0.8  # part of a normal distribution that is within DEVIATIONS standard deviations
DEVIATIONS = 1.2815515655446004
KNOTS = 2.2  # of a spline for signals of size one
CENTER = np.log10(4) - 0.5  # log10 of the geometric mean of 0.4 and 4, which count as 1
LARGEST_POWER = 70  # of ten: (A D)^2 stays within float64
UNKNOWN = np.finfo(np.float64).min  # instead of -inf, which is never sent


def adapt_to_opening(network: Network, shape: Shape, sends: bool, state: State) -> None:
    """Scale the start of the filters in place. sends: whether agents agree on the scale."""
    largest = np.stack([_measure(own) for own in state["opening"]])
    if sends:
        largest = maximum(network, largest)
    order = shape.design.order
    taps = order + shape.design.bias
    size = shape.theta[-1] / KNOTS
    for k, row in enumerate(largest):
        A, x_middle = _scale_of(row[:3], size)
        D, d_middle = _scale_of(row[3:], size)
        units = np.array([1 / (A * D) ** 2, 1 / D**2])
        theta = shape.theta.copy()
        theta[:order] /= A
        theta[order:taps] = -x_middle / A
        theta[taps:] = D * theta[taps:] + d_middle
        prior = shape.prior.copy()
        prior[:order] *= units[0]
        prior[order:taps] *= units[1]
        state["theta"][k] = theta
        state["start"][k] = theta
        state["prior"][k] = prior
        state["units"][k] = units
        if shape.design.update == RLS:
            state["P"][k] = np.diag(prior)
            state["watch"][k] = [D**2, 0.0, LEARNED, 0.0]
    for name in {"sent", "heard"} & set(state):
        state[name] = state["theta"][:, :, None].copy()


def _measure(signals: Array) -> Array:
    """Return log10 of r, m and -m of x, and the same of d."""
    rows = []
    for signal in signals:
        middle = np.sort(signal)[len(signal) // 2]
        spread = np.sort(np.abs(signal - middle))[int(WITHIN * len(signal))] / DEVIATIONS
        known = [np.log10(spread), middle, -middle] if spread > 0 else [UNKNOWN] * 3
        rows += known
    return np.array(rows)


def _scale_of(largest: Array, size: float) -> tuple[float, float]:
    """Return the power of ten of a signal, and its offset, or 0 if that is small."""
    logarithm, above, below = largest.tolist()
    if logarithm == UNKNOWN:
        return 1.0, 0.0
    power = np.clip(np.rint(logarithm - np.log10(size) - CENTER), -LARGEST_POWER, LARGEST_POWER)
    scale = float(10.0**power)
    middle = (above - below) / 2
    return scale, middle if abs(middle) > 2 * scale * size else 0.0
