"""The distance to the minimum that a gradient certifies, and the end of a run.

For convex losses F has one minimum w*. With g = |grad F(w)|, rounding included,

    |w - w*| <= g / alpha                                          by the penalty alone
    |w - w*| <= -log(1 - q) / R,   q = R g / mu < 1                by the Hessian at w

where mu is the least eigenvalue of the Hessian of F at w. R bounds how fast Hessians change: by a
factor of exp(-R |v|) at least over a step v. (The gradient falls by mu (1 - exp(-R t)) / R at least
along a way of length t; Bach, Self-concordant analysis for logistic regression, 2010. With R = 0 it
is g / mu.) The bound of a report is relative to |w*|, which is |w| - |w - w*| at least.

A step p from w, along which F is nearly quadratic, ends at a point that is known before any agent
evaluates it. With A the Hessian of F at a point u near w, L its largest eigenvalue, mu its least,
x = R |p| and y = R |w - u|,

    |grad F(w + p)| <= |g + A p| + c sqrt(L p'Ap),     c = exp(y) (exp(x) - 1) / x - 1

and all eigenvalues there are at least mu exp(-x - y). (The Hessian at w + t p differs from A by
exp(y + t x) - 1 times A at most; this is integrated over t from 0 to 1.)

Losses that do not declare `convex = True` have no bound: then only the gradient is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from peerlearn.algorithms.iteration import Certificate, Iterations, Report
from peerlearn.local.losses import Losses, are_convex

# A gradient that has fallen by this factor counts as small, whatever the unit of the losses: it is
# near what rounding leaves of it.
RELATIVE = 1e-10
# A first gradient of this factor times the tolerance vanishes: the start may be a saddle.
VANISHED = 1e-6
NOT_CONVEX = "the losses are not known to be convex: `converged` is about the gradient"
NO_CURVATURE = "no lower bound of the curvature is known: `converged` is about the gradient"
NOT_MET = "the agents stopped at different points"
TOO_CLOSE_TO_ZERO = "the answer cannot be told from zero, or the gradient is too large"


@dataclass(frozen=True)
class Goal:
    """When a run ends, and what its report says.

    Parameters
    ----------
    loop : Iterations
        The iterations of the run. Its residuals are sizes of gradients.
    convex : bool
        Whether the losses are convex.
    curved : bool
        Whether a lower bound of the curvature is known. If both are true, the bound decides.
    hint : str, default ""
        What else may help if the bound is too large.
    """

    loop: Iterations
    convex: bool
    curved: bool
    hint: str = ""

    @classmethod
    def of(cls, loop: Iterations, losses: Losses, alpha: float) -> Goal:
        """Return the goal of a solver that knows no curvature except the penalty's."""
        hint = ", or use solver='newton', which knows the curvature"
        return cls(loop, are_convex(losses), alpha > 0, hint)

    @property
    def certifies(self) -> bool:
        """Whether the bound decides, and not the gradient alone."""
        return self.convex and self.curved

    @property
    def size(self) -> float:
        """The size of a gradient that is small enough."""
        first = self.loop.residuals[0] if self.loop.residuals else 0.0
        return max(self.loop.tolerance, RELATIVE * first)

    @property
    def starts_stationary(self) -> bool:
        """Whether the gradient vanished at the start, which may then be a saddle or a maximum."""
        return bool(self.loop.residuals) and self.vanishes(self.loop.residuals[0])

    def vanishes(self, size: float) -> bool:
        """Return whether a gradient of this size vanishes, of losses that may have saddles."""
        return not self.convex and size <= VANISHED * self.loop.tolerance

    def is_reached(self, size: float, bound: float) -> bool:
        """Return whether the run can end at a point with this gradient and this bound."""
        near = bound <= self.loop.tolerance or not self.certifies
        return size <= self.size and near

    def report(self, change: str, bound: float, *, met: bool = True) -> Report:
        """Return the report, and warn if the answer is not as exact as asked for.

        change: what the user can do about it. bound: that of the point of the last residual. met:
        whether all agents are at that point. If not, nothing is known of where they are.
        """
        loop = self.loop
        if not self.certifies:
            last = loop.residuals[-1]
            report = loop.report(change, residual=0.0 if last <= self.size else last)
            reason = NO_CURVATURE if self.convex else NOT_CONVEX
            if not met:
                reason = f"{reason}, and {NOT_MET}"
            return replace(report, bound_reason=reason, gradient=last if met else None)
        reason = "" if math.isfinite(bound) else TOO_CLOSE_TO_ZERO
        certificate = Certificate(bound, reason) if met else Certificate(math.inf, NOT_MET)
        return loop.report(change + self.hint, certificate=certificate)


def hessian_change(y: float, x: float) -> float:
    """Return c of a step: by how much Hessians along it differ from A, relative to A.

    y: R times the distance of w from where A was computed. x: R |p|.
    """
    if not x + y < 1:
        return math.inf
    # x/2 exp(x) is at least (exp(x) - 1 - x) / x, and has no cancellation.
    return math.expm1(y) + math.exp(y) * x / 2 * math.exp(x)
