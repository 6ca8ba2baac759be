"""Smooth problems over a network: the contract of solvers, their result, and what they share.

    minimise over w   F(w) = sum_k h_k(w) + alpha/2 |w|^2

h_k is smooth, known to agent k alone, and need not be convex. A solver is a frozen dataclass of
settings. It stops when messages have shown that |grad F| is within tolerance at the answer: all
agents take one agent's w, and add up their gradients there over a tree, which is exact. For convex
losses the certified distance to the minimum must be within tolerance too (distance.py); Newton's
method may certify it for its last step before anyone evaluates there. A gradient of 1e-10 times the
first one is small in any unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Protocol

import numpy as np

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.certificate import relative_bound
from peerlearn.algorithms.iteration import Report, check_tolerance
from peerlearn.algorithms.registry import Family
from peerlearn.algorithms.sums import broadcast_from_center, sum_alike
from peerlearn.arrays import HUGE, Array, all_finite, is_real, norms, per_agent, sendable
from peerlearn.errors import InputError
from peerlearn.local.losses import ROUNDING, Losses, are_convex, gradient_errors
from peerlearn.network.base import Network
from peerlearn.secret.fixed_point import LARGEST_SUM

WAY_OUT = "raise max_iterations or tolerance, or scale the columns"
SMALL_STEP = 0.1  # per coefficient, off a start where the gradient vanishes
SUMMING = Averaging(tolerance=1e-9)  # over a tree; by gossip where messages get lost


@dataclass(frozen=True)
class Minimum:
    """The result of a solver of smooth problems.

    coefficients: hosted agents x d. report: its residuals are |grad F|. apart: as in `Solution`.
    """

    coefficients: Array
    report: Report
    apart: float | None = None


class SmoothSolver(Protocol):
    """The contract of a solver of smooth problems: any object with `minimise`.

    name: what `solver="..."` calls it.
    """

    name: ClassVar[str]

    def minimise(
        self, network: Network, losses: Losses, alpha: float, start: Array | None = None
    ) -> Minimum:
        """Return a minimum. start: hosted agents x d, zeros by default."""
        ...


SMOOTH: Family[SmoothSolver] = Family("peerlearn.algorithms.smooth", "minimise", "solver")
smooth_solvers = SMOOTH.kinds
smooth_solver_of = SMOOTH.of


def check_start(network: Network, losses: Losses, alpha: float, start: Any) -> Array:
    """Return the first w of the hosted agents, after a check that losses and start fit."""
    check_alpha(alpha)
    if losses.agents != len(network.hosted):
        raise InputError(
            f"there are losses of {losses.agents} agents, but {len(network.hosted)} are hosted "
            "here: give one per agent"
        )
    if start is None:
        start = np.zeros((losses.agents, losses.dimension))
    # In C order: sums of rows in another order have other bits.
    w = per_agent(start, losses.agents, "start").copy(order="C")
    if w.shape != (losses.agents, losses.dimension) or not all_finite(w):
        raise InputError(
            f"start must be {losses.agents} agents x {losses.dimension} finite numbers, "
            f"and has shape {w.shape}"
        )
    _check_shapes(losses, w)
    _check_finite(network, losses, w)
    return w


def _check_shapes(losses: Losses, w: Array) -> None:
    """Refuse losses whose methods return wrong shapes, which numpy would broadcast silently."""
    for method, wanted in (("value", w.shape[:1]), ("gradient", w.shape)):
        shape = np.shape(getattr(losses, method)(w))
        if shape != wanted:
            raise InputError(
                f"{type(losses).__name__}.{method} returns an array of shape {shape} instead of "
                f"{wanted}: return one row per agent, from its own row of w"
            )


@dataclass(frozen=True)
class OnePoint:
    """A point where all agents met, and the gradients there, with the same bits at all agents.

    w: the point. own: (grad h_k, h_k) of each agent. total: the sum of these. size: |grad F|.
    bound: of the relative distance to the minimum, if the losses are convex (distance.py).
    """

    w: Array
    own: Array
    total: Array
    size: float
    bound: float


def meet(network: Network, losses: Losses, alpha: float, w: Array) -> OnePoint:
    """Move all agents to the w of one of them, and sum the gradient of the whole problem there."""
    w = broadcast_from_center(network, sendable(w))
    own = slopes_and_values(network, losses, w)
    d = losses.dimension
    sums = sum_alike(network, sendable(with_errors(losses, w, own)), SUMMING)
    total = sums[:, : d + 1]
    size = float(norms(total[:, :d] + alpha * w)[0])
    bound = math.inf
    if are_convex(losses):
        bound = bound_at(w[0], size, float(sums[0, d + 1]), alpha)
    return OnePoint(w, own, total, size, bound)


def with_errors(losses: Losses, w: Array, own: Array) -> Array:
    """Return (grad h_k, h_k) and, if losses are convex, a bound of the gradient's rounding error.

    own: (grad h_k, h_k) at w_k.
    """
    if not are_convex(losses):
        return own
    return np.column_stack([own, gradient_errors(losses, w, own[:, :-1])])


def bound_at(w: Array, size: float, error: float, alpha: float) -> float:
    """Return the bound that the penalty gives at w. error: the sum of all agents' errors."""
    length = float(np.linalg.norm(w))
    return relative_bound(size + error + ROUNDING * alpha * length, length, alpha)


def slopes_and_values(network: Network, losses: Losses, w: Array) -> Array:
    """Return (grad h_k, h_k) at w_k: agents x (d + 1).

    NaN in one of them is an error of the losses. NaN in both may come from a step that was too
    long, from which solvers come back.
    """
    slopes = losses.gradient(w)
    values = losses.value(w)
    for k, (slope, value) in enumerate(zip(slopes, values, strict=True)):
        if np.isnan(value) != np.isnan(np.linalg.norm(slope)):
            raise _not_a_number(network, losses, slopes, k, "on the way")
    return np.column_stack([slopes, values])


def _check_finite(network: Network, losses: Losses, w: Array) -> None:
    """Refuse losses or gradients that are not finite at the start, and name the agent."""
    slopes = losses.gradient(w)
    values = losses.value(w)
    for k, (slope, value) in enumerate(zip(slopes, values, strict=True)):
        if not (np.isfinite(value) and all_finite(slope)):
            raise _not_a_number(network, losses, slopes, k, "at the start")


def _not_a_number(
    network: Network, losses: Losses, slopes: Array, k: int, where: str
) -> InputError:
    """Return the error about the k-th hosted agent, whose loss or gradient is not finite."""
    method = "value" if all_finite(slopes[k]) else "gradient"
    return InputError(
        f"agent {network.names[network.hosted[k]]}: {type(losses).__name__}.{method} is NaN or "
        f"infinite {where}: check its rows and the loss (peerlearn.check_gradient compares value "
        "and gradient), or give another start"
    )


def largest_sent(network: Network) -> float:
    """Return the largest number that is summed; it stands for infinity.

    Secret sums have fixed-point numbers below 2^127 together.
    """
    return HUGE if network.secrecy is None else LARGEST_SUM / (2 * network.size)


def step_off(w: Array) -> Array:
    """Return w after a small step in a direction drawn at random, always the same for all agents.

    w: agents x d, or one agent's d numbers.
    """
    direction: Array = np.random.default_rng(0).standard_normal((w.shape[-1],))
    return w + SMALL_STEP * direction


def rounds_to_meet(network: Network) -> int:
    """Return how many rounds `meet` takes."""
    return network.flood_rounds + SUMMING.rounds_on(network)


def check_alpha(alpha: Any) -> None:
    """Refuse an alpha that is not a finite number of 0 or more."""
    if not is_real(alpha) or not 0 <= alpha < np.inf:
        raise InputError(
            f"alpha, the weight of the penalty, must be a finite number of 0 or more, not {alpha!r}"
        )


def check_limits(tolerance: Any, max_iterations: Any, solver: str) -> None:
    """Check the tolerance and the iteration limit of a solver."""
    check_tolerance(tolerance, solver)
    if (
        type(max_iterations) is bool
        or not isinstance(max_iterations, Integral)
        or max_iterations < 1
    ):
        raise InputError(
            f"max_iterations of {solver} must be a whole number of 1 or more, "
            f"not {max_iterations!r}"
        )
