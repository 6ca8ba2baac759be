"""Consensus ADMM: agents keep their rows and agree on one coefficient matrix (ADMM-RVFL, thesis, section 4.2.2).

    minimise  sum_k f_k(b) + g(b)             f_k: fit to agent k's rows, g: ridge or lasso, known to all

    b_k <- argmin f_k(b) + rho/2 |b - (z_k - u_k)|^2             alone
    b^_k = w b_k + (1 - w) z_k                                   alone: over-relaxation
    v_k <- average of b^, plus m_k                               over the network: only b travels
    z_k <- argmin g(z) + rho L/2 |z - v_k|^2                     alone
    u_k <- u_k + b^_k - z_k                                      alone
    m_k <- v_k - z_k                                             alone: the mean of all u, which need not be sent

Boyd et al., Distributed optimization and statistical learning via ADMM, 2011, sections 7.1 and
3.4.3. Sending u as well, as the thesis does (`variant="thesis"`), converges to another problem when
averages are inexact.

Stopping. b_k solves its own problem exactly, so agent k knows  grad f_k(b_k) = -rho (b_k - z_k + u_k)  (old z and u).
For ridge  rho sum_k u_k = alpha z,  and the gradient of the whole problem at the new z is the sum of

    g_k = H_k'H_k (z_k - b_k) - rho (z_k - z_k_old + (1 - w)(b_k - z_k_old)),

parts that all vanish in the end, so that a rough sum of them will do. The answer is at most |sum_k
g_k| / alpha away.
Every so often agents compute it and flood the worst: it must have  |sum g| / alpha  and  |b_k - z_k|  below
tolerance |z_k|.
For lasso, which is not strongly convex, |sum g| is compared with rho L |z_k|: tolerance then bounds
the gradient, not the distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.flooding import maximum
from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.readout.solver import Solution, above_zero
from peerlearn.algorithms.report import check_tolerance
from peerlearn.arrays import Array, norms
from peerlearn.errors import InputError
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Penalty
from peerlearn.network.base import Network

__all__ = ["ADMM"]

THESIS_AVERAGING = Averaging("plain", tolerance=1e-3, max_rounds=300, stopping="thesis")


@dataclass(frozen=True)
class ADMM:
    """rho: the penalty on disagreement, or None for sqrt(alpha/L max_k max eig(H_k'H_k)). relaxation: w above.

    tolerance: relative distance to the centralised coefficients. vote_every: iterations between two
    votes to stop.
    """

    name: ClassVar = "admm"
    exact: ClassVar = True

    tolerance: float = 1e-4
    max_iterations: int = 20_000
    rho: float | None = None
    relaxation: float = 1.7
    vote_every: int = 10
    averaging: Averaging | Method = "auto"
    variant: Literal["coefficients", "thesis"] = "coefficients"

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance, "ADMM")
        Averaging.of(self.averaging)
        check_admm(self.rho, self.relaxation, self.max_iterations, self.vote_every)
        if self.variant not in ("coefficients", "thesis"):
            raise InputError(
                f"variant {self.variant!r} is not known: ADMM has 'coefficients' and 'thesis'"
            )

    def must_take(self, penalty: Penalty) -> None:
        above_zero(penalty, "ADMM")

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        self.must_take(penalty)
        loop = Iterations(
            network, "ADMM", self.tolerance, self.max_iterations, check_every=self.vote_every
        )
        L, thesis = network.size, self.variant == "thesis"
        averaging = (
            THESIS_AVERAGING
            if thesis and self.averaging == "auto"
            else Averaging.of(self.averaging, 1e-3)
        )
        rho = self._rho(network, problems, penalty)
        w = 1.0 if thesis else self.relaxation
        nearest = problems.proximal(rho)  # factorised once
        z = u = m = np.zeros((problems.agents, *problems.shape))
        for _ in loop:
            b = nearest(z - u)
            relaxed = b if w == 1.0 else w * b + (1 - w) * z
            if thesis:
                m = averaging.average(network, u)
            v = averaging.average(network, relaxed) + m
            z, old = penalty.prox(v, 1 / (rho * L)), z
            u, m = u + relaxed - z, v - z
            if loop.due:
                g = problems.normal(z - b) - rho * (z - old + (1 - w) * (b - old))
                total = averaging.total(network, g)
                loop.vote(self._distance(total, b, z, u, penalty.convexity or rho * L))
        # Where the thesis's multipliers travel through inexact averages, the bound above does not
        # hold.
        certain = averaging.exact_on(network) if thesis else averaging.suffices_on(network)
        change = "raise max_iterations, tolerance or the averaging's max_rounds, or set rho or relaxation=1.0"
        report = loop.report(change, f"rho = {rho:.3g}", certain=certain)
        bounded = (
            report.converged and penalty.convexity > 0
        )  # of lasso the residual bounds no distance
        within = self.tolerance if bounded else None
        return Solution(z, report, 0.0 if averaging.exact_on(network) else within)

    def _rho(self, network: Network, problems: LeastSquares, penalty: Penalty) -> float:
        """sqrt(alpha/L max eig): between the curvature of the penalty's share and that of the data."""
        if self.rho is not None:
            return self.rho
        if self.variant == "thesis":
            return 1.0
        largest = float(
            maximum(network, problems.largest_eigenvalues())[0]
        )  # flooded: the same bits at every agent
        return float(np.sqrt(penalty.alpha / network.size * largest)) or 1.0

    def _distance(self, g: Array, b: Array, z: Array, u: Array, convexity: float) -> Array:
        """Per agent: how far z_k may be from the answer, relative to |z_k|, or to |u_k| where the answer is zero."""
        distance = np.maximum(norms(g) / convexity, norms(b - z))
        size = np.where(norms(z) > 0, norms(z), norms(u))
        return np.divide(distance, size, out=np.zeros_like(distance), where=distance != 0)


def check_admm(rho: float | None, relaxation: float, max_iterations: int, vote_every: int) -> None:
    """The settings that all kinds of ADMM have."""
    if rho is not None and not (np.isfinite(rho) and rho > 0):
        raise InputError(
            f"rho must be a finite number above 0, or None to choose by rule, not {rho}"
        )
    if not 0 < relaxation < 2:
        raise InputError(f"relaxation must lie between 0 and 2, not {relaxation}")
    if max_iterations < 1 or vote_every < 1:
        raise InputError("max_iterations and vote_every must be 1 or more")
