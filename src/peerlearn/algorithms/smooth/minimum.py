"""Smooth problems over a network, what solves them, and where the solvers are found.

    minimise over w   F(w) = sum_k h_k(w) + alpha/2 |w|^2          h_k: smooth, known to agent k alone, maybe not convex

A solver is a frozen dataclass of settings. It stops when it has shown by messages that |grad F| is
within tolerance at the answer: all agents take over one agent's w, and add up their gradients there
over a tree, which is exact. The tolerance is a size, not a share: it should follow the scale of the
losses.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Protocol

import numpy as np

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.flooding import broadcast_from_center
from peerlearn.algorithms.registry import Family
from peerlearn.algorithms.report import Report, check_tolerance
from peerlearn.algorithms.sums import sum_alike
from peerlearn.arrays import Array, all_finite, is_real, norms, per_agent, sendable
from peerlearn.errors import InputError
from peerlearn.local.losses import Losses
from peerlearn.network.base import Network

WAY_OUT = "raise max_iterations or tolerance, or scale the columns"
SUMMING = Averaging(
    tolerance=1e-9
)  # over a tree; where messages get lost by gossip, with this accuracy


@dataclass(frozen=True)
class Minimum:
    """What a solver of smooth problems returns. apart: as in `Solution`."""

    coefficients: Array  # hosted agents x d
    report: Report  # residuals: |grad F| as the network knew it
    apart: float | None = None


class SmoothSolver(Protocol):
    """Anything with `minimise` can be a model's solver; one with a name is found by it."""

    name: ClassVar[str]

    def minimise(
        self, network: Network, losses: Losses, alpha: float, start: Array | None = None
    ) -> Minimum:
        """start: hosted agents x d, zeros by default."""
        ...


SMOOTH: Family[SmoothSolver] = Family("peerlearn.algorithms.smooth", "minimise", "solver")
smooth_solvers, smooth_solver_of = SMOOTH.kinds, SMOOTH.of


def check_start(network: Network, losses: Losses, alpha: float, start: Any) -> Array:
    """The first w of the hosted agents, or the sentence that says what does not fit."""
    check_alpha(alpha)
    if losses.agents != len(network.hosted):
        raise InputError(
            f"there are losses of {losses.agents} agents, but {len(network.hosted)} are hosted here: give one per agent"
        )
    _must_fit(losses)
    if start is None:
        return np.zeros((losses.agents, losses.dimension))
    w = per_agent(start, losses.agents, "start").copy(
        order="C"
    )  # sums of rows in another order have other bits
    if w.shape != (losses.agents, losses.dimension) or not all_finite(w):
        raise InputError(
            f"start must be {losses.agents} agents x {losses.dimension} finite numbers, and has shape {w.shape}"
        )
    return w


def _must_fit(losses: Losses) -> None:
    """Refuse losses whose methods give other shapes than they should: numpy would spread them out."""
    w = np.zeros((losses.agents, losses.dimension))
    for method, wanted in (("value", w.shape[:1]), ("gradient", w.shape)):
        shape = np.shape(getattr(losses, method)(w))
        if shape != wanted:
            raise InputError(
                f"{type(losses).__name__}.{method} gives an array of shape {shape} where {wanted} is due: one row per "
                "agent, from its own row of w"
            )


@dataclass(frozen=True)
class OnePoint:
    """What all agents know after they have met at one w, with the same bits."""

    w: Array
    own: Array  # (grad h_k, h_k) of each agent
    total: Array  # the sum of these
    size: float  # |grad F|


def meet(network: Network, losses: Losses, alpha: float, w: Array) -> OnePoint:
    """All agents at the w of one of them, and the gradient of the whole problem there."""
    w = broadcast_from_center(network, sendable(w))
    own = slopes_and_values(losses, w)
    total = sum_alike(network, sendable(own), SUMMING)
    return OnePoint(w, own, total, float(norms(total[:, :-1] + alpha * w)[0]))


def slopes_and_values(losses: Losses, w: Array) -> Array:
    """(grad h_k, h_k) at w_k: agents x (d + 1)"""
    return np.column_stack([losses.gradient(w), losses.value(w)])


def rounds_to_meet(network: Network) -> int:
    return network.flood_rounds + SUMMING.rounds_on(network)


def check_alpha(alpha: Any) -> None:
    if not is_real(alpha) or not 0 <= alpha < np.inf:
        raise InputError(
            f"alpha, the weight of the penalty, must be a finite number of 0 or more, not {alpha!r}"
        )


def check_limits(tolerance: Any, max_iterations: Any, solver: str) -> None:
    check_tolerance(tolerance, solver)
    if (
        type(max_iterations) is bool
        or not isinstance(max_iterations, Integral)
        or max_iterations < 1
    ):
        raise InputError(
            f"max_iterations of {solver} must be a whole number of 1 or more, not {max_iterations!r}"
        )
