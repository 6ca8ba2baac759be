"""NEXT: every agent minimises a convex surrogate of the whole problem.

    u_k = argmin of  s_k(u; w_k) + pi_k'(u - w_k) + alpha/2 |u|^2     alone
    pi_k = N v_k - grad h_k(w_k)                                      alone: the others' gradients
    p_k = u_k - w_k                                                   alone; the rest: tracked.py

with a surrogate s_k of h_k near w_k, and  G_k = N v_k + alpha w_k:

    exact    the convex part of h_k as it is, the rest linearised (the thesis's)
    linear   all of h_k linearised:  p_k = -G_k / alpha, gradient tracking with another step
    newton   N times the curvature of h_k stands for that of all:  p_k = -(N P_k + alpha I)^-1 G_k

Thesis, section 8.3.3; Di Lorenzo and Scutari, NEXT: in-network nonconvex optimization, 2016. The
thesis prints pi_k as the sum over the others t of grad h_k; it is the sum of grad h_t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from peerlearn.algorithms.smooth.minimum import Minimum, check_alpha, check_limits
from peerlearn.algorithms.smooth.mixing import check_mixing
from peerlearn.algorithms.smooth.steps import StepRule, check_step
from peerlearn.algorithms.smooth.tracked import Direction, TrackingRun
from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.local.losses import CurvedLosses, Losses, PartlyConvexLosses
from peerlearn.local.surrogates import newton_steps, surrogate_minima
from peerlearn.network.base import Network

__all__ = ["NEXT"]

SURROGATES = ("newton", "exact", "linear")


@dataclass(frozen=True)
class NEXT:
    """Minimisation of smooth losses by successive convex approximation (NEXT).

    Uses more of the losses than gradients, and so needs fewer iterations than `GradientTracking`.
    Every message must arrive.

    Parameters
    ----------
    surrogate : {"newton", "exact", "linear"}, default "newton"
        The convex approximation of the losses. "newton" needs losses with a `curvature` method,
        "exact" with a `convex_gradient` method (see local/losses.py); "linear" suits all.
    step : StepRule or None, default None
        Steps by a rule. None chooses them by the curvature that the iteration shows.
    mixing : {"auto", "chebyshev", "plain"}, default "auto"
        How agents mix within an iteration. "auto" is "chebyshev" with automatic steps and "plain",
        as in the thesis, with a rule.
    tolerance : float, default 1e-5
        Size of |grad F| at which to stop.
    max_iterations : int, default 10000
        Limit of iterations; a solution that needs more warns.

    Examples
    --------
    >>> from peerlearn import NEXT, S3VMClassifier, SimulatedNetwork, graphs
    >>> X, y = [[0.0], [1.0], [0.1], [0.9], [0.2], [0.8]], [0, 1, 0, 1, -1, -1]  # -1: no label
    >>> network = SimulatedNetwork(graphs.ring(3))
    >>> model = S3VMClassifier(solver=NEXT("exact"), network=network, random_state=0).fit(X, y)
    >>> model.report_.solver
    'NEXT'
    """

    name: ClassVar = "next"

    surrogate: Literal["newton", "exact", "linear"] = "newton"
    step: StepRule | None = None
    mixing: Literal["auto", "chebyshev", "plain"] = "auto"
    tolerance: float = 1e-5
    max_iterations: int = 10_000

    def __post_init__(self) -> None:
        if self.surrogate not in SURROGATES:
            raise InputError(
                f"surrogate {self.surrogate!r} is not known: choose one of {', '.join(SURROGATES)}"
            )
        if self.mixing != "auto":
            check_mixing(self.mixing)
        check_step(self.step)
        check_limits(self.tolerance, self.max_iterations, "NEXT")

    def minimise(
        self, network: Network, losses: Losses, alpha: float, start: Array | None = None
    ) -> Minimum:
        """Return a minimum of the losses of all agents and the penalty."""
        check_alpha(alpha)
        if alpha == 0:
            raise InputError(
                f"the surrogates of NEXT have a minimum only if alpha is above 0, not {alpha}: "
                "set it, or use solver='tracking'"
            )
        automatic: Literal["chebyshev", "plain"] = "chebyshev" if self.step is None else "plain"
        return TrackingRun(
            network,
            losses,
            alpha,
            "NEXT",
            direction=self._direction(network, losses, alpha),
            metric=alpha,
            largest_step=1.0,
            step=self.step,
            mixing=automatic if self.mixing == "auto" else self.mixing,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        ).minimise(start)

    def _direction(self, network: Network, losses: Losses, alpha: float) -> Direction:
        """Return the function that computes p from w and G, for the surrogate chosen."""
        if self.surrogate == "linear":
            return lambda w, G: -G / alpha
        if self.surrogate == "exact":
            if not isinstance(losses, PartlyConvexLosses):
                raise self._missing_method(losses, "convex_gradient")
            return lambda w, G: surrogate_minima(losses, w, G, alpha) - w
        if not isinstance(losses, CurvedLosses):
            raise self._missing_method(losses, "curvature")
        return lambda w, G: newton_steps(losses, w, G, network.size, alpha)

    def _missing_method(self, losses: Losses, method: str) -> InputError:
        return InputError(
            f"NEXT(surrogate={self.surrogate!r}) needs losses with a {method} method, and "
            f"{type(losses).__name__} has none: add it, or use surrogate='linear'"
        )
