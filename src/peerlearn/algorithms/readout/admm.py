"""Consensus ADMM: agents keep their rows and agree on one coefficient matrix.

    minimise  sum_k f_k(b) + g(b)             f_k: fit to agent k's rows; g: ridge or lasso

    b_k <- argmin f_k(b) + rho/2 |b - (z_k - u_k)|^2        alone
    b^_k = w b_k + (1 - w) z_k                              alone: over-relaxation
    v_k <- average of b^, plus m_k                          over the network: only b^ travels
    z_k <- argmin g(z) + rho L/2 |z - v_k|^2                alone
    u_k <- u_k + b^_k - z_k                                 alone
    m_k <- v_k - z_k                                        alone: the mean of all u

ADMM-RVFL, thesis, section 4.2.2; Boyd et al., Distributed optimization and statistical learning
via ADMM, 2011, sections 7.1 and 3.4.3. The mean of all u need not be sent. Sending u as well, as
the thesis does (`variant="thesis"`), converges to another problem when averages are inexact.

Stopping. b_k solves its own problem exactly, so agent k knows (with the old z and u)

    grad f_k(b_k) = -rho (b_k - z_k + u_k).

For ridge  rho sum_k u_k = alpha z,  and the gradient of the whole problem at the new z is the
sum of

    g_k = H_k'H_k (z_k - b_k) - rho (z_k - z_k_old + (1 - w)(b_k - z_k_old)).

All of these parts vanish in the end, so a rough sum of them is enough. The answer is at most
|sum_k g_k| / alpha away. Every `vote_every` iterations agents compute that bound and flood the
largest: they stop when  |sum g| / alpha  and  |b_k - z_k|  are below  tolerance |z_k|.  Then all
agents take the z of one of them, and certify it by one more sum (certificate.py). Lasso is not
strongly convex: |sum g| is compared with rho L |z_k|, and the tolerance bounds the gradient, not
the distance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.certificate import (
    GRADIENT_TOLERANCE,
    NOT_STRONGLY_CONVEX,
    certify_gradient,
    intercept_effect,
    most_exact,
)
from peerlearn.algorithms.iteration import Iterations, check_tolerance
from peerlearn.algorithms.readout.solver import Solution, above_zero
from peerlearn.algorithms.sums import broadcast_from_center, maximum, sum_everywhere
from peerlearn.arrays import Array, norms
from peerlearn.errors import InputError
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Penalty
from peerlearn.network.base import Network

__all__ = ["ADMM"]

THESIS_AVERAGING = Averaging("plain", tolerance=1e-3, max_rounds=300, stopping="thesis")


@dataclass(frozen=True)
class ADMM:
    """Readout by consensus ADMM, for ridge, lasso and other penalties.

    Agents send coefficients, never rows or Gram matrices. Ridge coefficients are exact to the
    tolerance. `Gram` and `ConjugateGradient` usually send less.

    Parameters
    ----------
    tolerance : float, default 1e-4
        Relative distance to the centralised coefficients.
    max_iterations : int, default 20000
        Limit of iterations; a solution that needs more warns.
    rho : float or None, default None
        Penalty on disagreement between agents. None chooses sqrt(alpha/L max_k max eig(H_k'H_k)).
    relaxation : float, default 1.7
        Over-relaxation, w in the formulas, between 0 and 2. 1.0 is plain ADMM.
    vote_every : int, default 10
        Iterations between two votes to stop.
    averaging : Averaging or str, default "auto"
        How agents average: an `Averaging`, or the name of its method.
    variant : {"coefficients", "thesis"}, default "coefficients"
        "coefficients" sends only coefficients. "thesis" sends multipliers as well, as the thesis
        prints it, without relaxation and with rho = 1 by default.

    Examples
    --------
    >>> from peerlearn import ADMM, RVFLClassifier, SimulatedNetwork, data, graphs
    >>> iris = data.load("iris")
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> model = RVFLClassifier(50, solver=ADMM(tolerance=1e-3), network=network, random_state=0)
    >>> model.fit(iris.X, iris.y).report_.converged
    True
    """

    name: ClassVar = "admm"
    exact: ClassVar = True
    leaks: ClassVar = "makes totals from which an agent can compute the others' H'H"

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
        """Refuse a penalty with an alpha of 0."""
        above_zero(penalty, "ADMM")

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        """Return the coefficients on which the agents agree."""
        self.must_take(penalty)
        loop = Iterations(
            network, "ADMM", self.tolerance, self.max_iterations, check_every=self.vote_every
        )
        L = network.size
        thesis = self.variant == "thesis"
        averaging = Averaging.of(self.averaging, 1e-3)
        if thesis and self.averaging == "auto":
            averaging = THESIS_AVERAGING
        rho = self._choose_rho(network, problems, penalty)
        w = 1.0 if thesis else self.relaxation
        nearest = problems.proximal(rho)  # factorised once
        z = u = m = np.zeros((problems.agents, *problems.shape))
        for _ in loop:
            b = nearest(z - u)
            relaxed = b if w == 1.0 else w * b + (1 - w) * z
            if thesis:
                m = averaging.average(network, u)
            v = averaging.average(network, relaxed) + m
            old = z
            z = penalty.prox(v, 1 / (rho * L))
            u = u + relaxed - z
            m = v - z
            if loop.due:
                g = problems.normal(z - b) - rho * (z - old + (1 - w) * (b - old))
                total = averaging.total(network, g)
                distances = self._bound_distance(total, b, z, u, penalty.convexity or rho * L)
                effects = np.array([intercept_effect(problems.lengths, own) for own in z])
                # What inexact means add does not shrink: it must not keep agents from stopping.
                added = np.minimum(effects[:, 1], self.tolerance / 2)
                loop.vote(distances * effects[:, 0] + added)
        change = (
            "raise max_iterations, tolerance or the averaging's max_rounds, "
            "or set rho or relaxation=1.0"
        )
        note = f"rho = {rho:.3g}"
        exact = averaging.exact_on(network)
        if penalty.convexity == 0:
            # The residual bounds no distance. It says nothing if the thesis's multipliers were
            # averaged inexactly.
            certain = exact if thesis else averaging.suffices_on(network)
            report = loop.report(change, note, certain=certain)
            report = replace(report, bound=math.inf, bound_reason=NOT_STRONGLY_CONVEX)
            return Solution(z, report, 0.0 if exact else None)
        if not exact:
            z = broadcast_from_center(network, z)
        tighter = most_exact(network, averaging, GRADIENT_TOLERANCE)
        certificate = certify_gradient(
            network, problems, penalty.convexity, z, tighter, sum_everywhere
        )
        return Solution(z, loop.report(change, note, certificate=certificate), 0.0)

    def _choose_rho(self, network: Network, problems: LeastSquares, penalty: Penalty) -> float:
        """Return the given rho, or one between the curvatures of the penalty and of the data."""
        if self.rho is not None:
            return self.rho
        if self.variant == "thesis":
            return 1.0
        # Flooded, so that all agents have the same bits.
        largest = float(maximum(network, problems.largest_eigenvalues())[0])
        return float(np.sqrt(penalty.alpha / network.size * largest)) or 1.0

    def _bound_distance(self, g: Array, b: Array, z: Array, u: Array, convexity: float) -> Array:
        """Return how far each z_k may be from the answer, relative to |z_k|.

        Relative to |u_k| where z_k is zero.
        """
        distance = np.maximum(norms(g) / convexity, norms(b - z))
        size = np.where(norms(z) > 0, norms(z), norms(u))
        return np.divide(distance, size, out=np.zeros_like(distance), where=distance != 0)


def check_admm(rho: float | None, relaxation: float, max_iterations: int, vote_every: int) -> None:
    """Check the settings that all kinds of ADMM have."""
    if rho is not None and not (np.isfinite(rho) and rho > 0):
        raise InputError(
            f"rho must be a finite number above 0, or None to choose by rule, not {rho}"
        )
    if not 0 < relaxation < 2:
        raise InputError(f"relaxation must lie between 0 and 2, not {relaxation}")
    if max_iterations < 1 or vote_every < 1:
        raise InputError("max_iterations and vote_every must be 1 or more")
