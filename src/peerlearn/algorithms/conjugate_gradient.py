"""Preconditioned conjugate gradients on the whole network's normal equations. Exact, and only vectors travel.

    A b = c,   A = sum_k H_k'H_k + alpha I,   c = sum_k H_k'Y_k        M columns, each on its own

    q = A d                                          over the network: one B x M sum per iteration
    s = (r'd) / (d'q);  b <- b + s d;  r <- r - s q  alone: every agent holds the same b, r, d
    z = P r;  d <- z - (z'q) / (d'q) d               alone (P: the preconditioner, see preconditioners.py)

Hestenes and Stiefel, Methods of conjugate gradients for solving linear systems, 1952; s and the step for d are written
as in Notay, Flexible conjugate gradients, 2000, which forgives small errors in sums and preconditioner.

Every agent must hold the same copies of b, r and d: where data differ between agents, copies that differ a little are
driven apart. A tree gives sums with the same bits to all; after a gossiped sum all follow the copy of one agent. The
bound e on the distance, at most |r| / alpha, rides in the next sum, so that all stop in the same iteration.

A gossiped sum has an error. It may be larger as r gets smaller (Simoncini and Szyld, Theory of inexact Krylov
subspace methods, 2003). When the agents believe to be done they compute the true residual from b, and if that is not
small enough go on from there with more exact sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from peerlearn.algorithms.consensus import Averaging, Method, follow, maximum
from peerlearn.algorithms.preconditioners import PRECONDITIONERS, Preconditioner
from peerlearn.algorithms.solution import Report, Solution, above_zero, only_ridge, warn_not_converged, within_reach
from peerlearn.arrays import Array, norms
from peerlearn.errors import InputError
from peerlearn.local.least_squares import LeastSquares, PerAgent
from peerlearn.local.penalties import Penalty
from peerlearn.network.base import Network

MARGIN = 20  # sums are so much more exact than the answer asked for: with less, restarts cost more than they save
MOST_EXACT = 1e-14
ROUGH = 1e-2  # relative accuracy of sums that only guide the iteration
NOISE = 1.1  # what inexact sums may make of a residual
STUCK_AFTER = 50  # iterations without a new best distance, where sums are inexact


@dataclass(frozen=True)
class ConjugateGradient:
    """tolerance: relative distance to the centralised coefficients.

    preconditioner: "synthetic" costs one average of the inputs' mean and covariance; "local" one more average per
    iteration, and suits any features; "none".
    """

    name: ClassVar = "cg"
    exact: ClassVar = True

    tolerance: float = 1e-6
    max_iterations: int = 1000
    preconditioner: Literal["synthetic", "local", "none"] = "synthetic"
    averaging: Averaging | Method = "auto"

    def __post_init__(self) -> None:
        within_reach(self.tolerance, "ConjugateGradient")
        Averaging.of(self.averaging)
        if self.max_iterations < 1:
            raise InputError(f"max_iterations must be 1 or more, not {self.max_iterations}")
        if self.preconditioner not in PRECONDITIONERS:
            raise InputError(
                f"preconditioner {self.preconditioner!r} is not known: choose one of {', '.join(PRECONDITIONERS)}"
            )

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        alpha = only_ridge(penalty, "ConjugateGradient")
        above_zero(penalty, "ConjugateGradient")
        mark = network.ledger.mark()
        averaging = Averaging.of(self.averaging, max(self.tolerance / MARGIN, MOST_EXACT))
        run = _Run(network, problems, alpha, PRECONDITIONERS[self.preconditioner], averaging, self.tolerance)
        b, residuals = run(self.max_iterations)
        converged = residuals[-1] <= self.tolerance and averaging.suffices_on(network)
        if not converged:
            warn_not_converged(
                "ConjugateGradient",
                len(residuals),
                residuals[-1],
                self.tolerance,
                "raise max_iterations, alpha or the averaging's max_rounds, or choose preconditioner='local'",
            )
        note = f"preconditioner {self.preconditioner}, sums by {averaging.method_on(network)}"
        sent = network.ledger.since(mark)
        return Solution(b, Report("ConjugateGradient", converged, len(residuals), tuple(residuals), sent, note))


@dataclass(frozen=True)
class _Run:
    """The iteration on the copies of all hosted agents: arrays are agents x B x M."""

    network: Network
    problems: LeastSquares
    alpha: float
    preconditioner: Preconditioner
    averaging: Averaging
    tolerance: float

    def __call__(self, max_iterations: int) -> tuple[Array, list[float]]:
        averaging, exact = self.averaging, self.averaging.exact_on(self.network)
        precondition = self.preconditioner.prepare(self.problems, self.alpha, self._rough_total)
        b, r = np.zeros((self.problems.agents, *self.problems.shape)), self._total(self.problems.moment, averaging)
        residuals: list[float] = []
        while True:
            b = self._descend(b, r, precondition, averaging, max_iterations, residuals)
            if exact or len(residuals) >= max_iterations:
                return b, residuals
            r = self._total(self.problems.moment - self.problems.normal(b), averaging) - self.alpha * b
            e = self._distance(b, r, precondition(r))
            residuals[-1] = NOISE * float(maximum(self.network, e)[0])  # the true one, summed inexactly too
            hopeless = not np.isfinite(residuals[-1]) or averaging.tolerance <= MOST_EXACT
            if residuals[-1] <= self.tolerance or hopeless:
                return b, residuals
            averaging = replace(averaging, tolerance=max(averaging.tolerance / MARGIN, MOST_EXACT))

    def _descend(
        self,
        b: Array,
        r: Array,
        precondition: PerAgent,
        averaging: Averaging,
        max_iterations: int,
        residuals: list[float],
    ) -> Array:
        """From b and its residual r to within tolerance, as far as the recurrence for r can tell."""
        z = precondition(r)
        d, enough, start = z, averaging, len(residuals)
        exact = averaging.exact_on(self.network)
        goal = self.tolerance if exact else self.tolerance / NOISE**2
        while True:
            local, riding = self.problems.normal(d), self._distance(b, r, z)
            sums = self._total(np.column_stack([local.reshape(len(local), -1), riding]), enough)
            e = float(sums[0, -1]) / self.network.size  # the same bits at every agent
            residuals.append(e)
            self.network.residual = e
            stuck = min(residuals[start:]) < min(residuals[start:][-STUCK_AFTER:]) and not exact
            if e <= goal or not np.isfinite(e) or stuck or len(residuals) >= max_iterations:
                return b
            gained = max(min(residuals[start], 1.0) / e, 1.0)
            enough = replace(averaging, tolerance=min(averaging.tolerance * gained, ROUGH))
            b, r, z, d = self._step(b, r, d, sums[:, :-1].reshape(d.shape) + self.alpha * d, precondition)

    def _step(
        self, b: Array, r: Array, d: Array, q: Array, precondition: PerAgent
    ) -> tuple[Array, Array, Array, Array]:
        """One iteration of every column at every agent, all alone."""
        curvature = _dot(d, q)
        s = _ratio(_dot(r, d), curvature)
        b, r = b + s * d, r - s * q
        z = precondition(r)
        return b, r, z, z - _ratio(_dot(z, q), curvature) * d  # A-orthogonal to the last d, also if P is not exact

    def _total(self, x: Array, averaging: Averaging) -> Array:
        """The sum over the network with the same bits at every agent."""
        sums = averaging.total(self.network, x)
        return sums if averaging.exact_on(self.network) else follow(self.network, sums)

    def _rough_total(self, x: Array) -> Array:
        return self._total(x, replace(self.averaging, tolerance=max(self.averaging.tolerance, ROUGH)))

    def _distance(self, b: Array, r: Array, z: Array) -> Array:
        """A bound on the distance to the answer, relative to |b_k|; 1 where b is still zero."""
        size = norms(b)
        e = self.preconditioner.distance(r, z, self.alpha)
        nothing = size == 0
        return np.where(nothing, np.where(e == 0, 0.0, 1.0), e / np.where(nothing, 1.0, size))


def _dot(x: Array, y: Array) -> Array:
    """Column by column at each agent: agents x 1 x M."""
    products: Array = np.einsum("kbm,kbm->km", x, y)[:, None, :]
    return products


def _ratio(x: Array, y: Array) -> Array:
    """x / y, and 0 for columns that are solved already."""
    return np.divide(x, y, out=np.zeros_like(x), where=y > 0)
