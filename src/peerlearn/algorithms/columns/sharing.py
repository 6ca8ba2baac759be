"""Sharing ADMM: agents keep their columns and agree on the sum of their outputs.

    b_k <- argmin alpha/2 |b|^2 + rho/2 |H_k b - (z_k - u)|^2    alone
    m   <- average of H_k b_k                                    over the network: N x M
    p   =  w m + (1 - w) z                                       alone: over-relaxation
    z'  =  (Y + rho (p + u)) / (L + rho)                         alone: z is the average of all z_k
    z_k <- w H_k b_k + (1 - w) z_k + z' - p                      alone
    u   <- u + p - z';  z <- z'                                  alone

VP-ADMM-RVFL, thesis, section 6.1; Boyd et al., Distributed optimization and statistical learning
via ADMM, 2011, sections 8.3 and 3.4.3. The thesis prints z' without rho before the bracket. That
solves another problem,

    b = 1/c (H'H + alpha / (rho c) I)^-1 H'Y,   c = (L + rho - 1) / L:

eleven times the penalty with its rho = 0.1 and L = 8. While b is zero there is nothing to send, so
z and u begin where the first iteration would leave them.

Stopping. m is what b gives, so every agent knows  r = Y - L m  and its part
g_k = H_k'r - alpha b_k  of the gradient. The answer is at most  sqrt(sum_k |g_k|^2) / alpha  away.
Every `vote_every` iterations agents sum |g_k|^2 and |b_k|^2. An average with an error of t times
the spread adds an error of up to  t L S |b|  to the gradient, S the largest |H_k|^2: it is added to
the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.certificate import (
    CUT_OFF,
    GRADIENT_TOLERANCE,
    U,
    certificate_of,
    each_units,
    has_own_errors,
    most_exact,
    sum_error,
    sum_with_errors,
)
from peerlearn.algorithms.columns.solver import (
    ColumnSolution,
    Prediction,
    Sums,
    largest_square,
    positive,
)
from peerlearn.algorithms.iteration import Certificate, Iterations, check_tolerance
from peerlearn.algorithms.krylov import relative
from peerlearn.algorithms.readout.admm import check_admm
from peerlearn.algorithms.sums import sum_alike
from peerlearn.arrays import Array, dots, norms, sendable
from peerlearn.local.column_blocks import ColumnBlocks, Stacks
from peerlearn.local.normal_equations import product_units
from peerlearn.network.base import Network

__all__ = ["SharingADMM"]

# Coefficients grow this large only if averages are cut off: the loop stops before they overflow.
DIVERGED = 1e100


@dataclass(frozen=True)
class SharingADMM:
    """Ridge readout over columns by sharing ADMM.

    Agents send the outputs of their columns, N x M numbers per iteration; coefficients stay with
    their agents. `DualConjugateGradient` usually sends less.

    Parameters
    ----------
    tolerance : float, default 1e-4
        Relative distance to the centralised coefficients.
    max_iterations : int, default 20000
        Limit of iterations; a solution that needs more warns.
    rho : float or None, default None
        Penalty on disagreement. None chooses sqrt(L alpha / max_k |H_k|^2).
    relaxation : float, default 1.7
        Over-relaxation, w in the formulas, between 0 and 2. 1.0 is plain ADMM.
    vote_every : int, default 10
        Iterations between two votes to stop.
    averaging : Averaging or str, default "auto"
        How agents average: an `Averaging`, or the name of its method.

    Examples
    --------
    >>> from peerlearn import SharingADMM, SimulatedNetwork, VerticalRVFLClassifier, data, graphs
    >>> iris = data.load("iris")
    >>> network = SimulatedNetwork(graphs.ring(4))  # four agents, one column each
    >>> solver = SharingADMM(tolerance=1e-2)
    >>> model = VerticalRVFLClassifier(20, solver=solver, network=network, random_state=0)
    >>> model.fit(iris.X, iris.y).report_.converged
    True
    """

    name: ClassVar = "sharing"
    exact: ClassVar = True
    prediction: ClassVar[Prediction] = "sum"

    tolerance: float = 1e-4
    max_iterations: int = 20_000
    rho: float | None = None
    relaxation: float = 1.7
    vote_every: int = 10
    averaging: Averaging | Method = "auto"

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance, "SharingADMM")
        Averaging.of(self.averaging)
        check_admm(self.rho, self.relaxation, self.max_iterations, self.vote_every)

    def solve_columns(
        self, network: Network, blocks: ColumnBlocks, Y: Array, alpha: float
    ) -> ColumnSolution:
        """Return each hosted agent's part of the centralised coefficients, to the tolerance."""
        positive(alpha, "SharingADMM")
        loop = Iterations(
            network, "SharingADMM", self.tolerance, self.max_iterations, check_every=self.vote_every
        )
        L = network.size
        w = self.relaxation
        sums = Sums.exact_enough(network, self.averaging, blocks, alpha, self.tolerance, power=1.0)
        averaging = sums.averaging
        S = largest_square(network, blocks)
        rho = self.rho or (float(np.sqrt(L * alpha / S)) if S else 1.0)
        uncertain = sums.uncertainty(averaging)
        nearest = blocks.ridge_map(alpha / rho)  # factorised once
        z = shared = np.tile(Y / (L + rho), (blocks.agents, 1, 1))
        u = -z
        for _ in loop:
            b = nearest(shared - u)
            Hb = blocks.outputs(b)
            m = averaging.average(network, Hb)
            p = w * m + (1 - w) * z
            z = (Y + rho * (p + u)) / (L + rho)
            shared = w * Hb + (1 - w) * shared + z - p
            u = u + p - z
            if loop.due:
                bound = self._bound_distance(network, blocks, b, Y - L * m, alpha, averaging)
                loop.judge(uncertain + bound)
        change = (
            "raise max_iterations, tolerance or the averaging's max_rounds, or use solver='dual'"
        )
        note = f"rho = {rho:.3g}, averages by {averaging.method_on(network)}"
        certificate = _certify(network, blocks, b, Y, alpha, averaging)
        report = loop.report(change, note, certificate=certificate)
        return ColumnSolution(blocks.separate(b), report)

    def _bound_distance(
        self,
        network: Network,
        blocks: ColumnBlocks,
        b: Stacks,
        r: Array,
        alpha: float,
        averaging: Averaging,
    ) -> float:
        """Return a bound on the distance to the answer, relative to |b|, the same at all agents."""
        gradients = np.empty(blocks.agents)
        sizes = np.empty(blocks.agents)
        for group, own, moment in zip(blocks.groups, b, blocks.moments(r), strict=True):
            g = moment - alpha * own
            gradients[group.agents] = dots(g, g)
            sizes[group.agents] = dots(own, own)
        # Two sums, because the error of an inexact sum is relative to the largest number in it.
        gradient = np.sqrt(sum_alike(network, gradients, averaging))
        size = np.sqrt(sum_alike(network, sizes, averaging))
        return float("inf") if size[0] > DIVERGED else float(relative(gradient / alpha, size)[0])


def _certify(
    network: Network,
    blocks: ColumnBlocks,
    b: Stacks,
    Y: Array,
    alpha: float,
    averaging: Averaging,
) -> Certificate:
    """Return the certificate of b, by one sum of outputs and one of two numbers."""
    exact = most_exact(network, averaging, GRADIENT_TOLERANCE)
    lengths = np.sqrt(blocks.squares())
    sizes = np.empty(blocks.agents)
    for group, own in zip(blocks.groups, b, strict=True):
        sizes[group.agents] = norms(own)
    rounding = U * (each_units(blocks.widths) + blocks.own_units) * lengths * sizes
    v, errors, reason = sum_with_errors(network, blocks.outputs(b), rounding, exact, sum_alike)
    if reason == CUT_OFF:
        return Certificate(np.inf, CUT_OFF)
    left = Y - v
    units = product_units(blocks.rows) + blocks.own_units
    by_targets = U * blocks.own_units * float(np.linalg.norm(Y))
    errors = lengths * (errors + U * units * norms(left) + by_targets)
    gradients = np.empty(blocks.agents)
    for group, own, moment in zip(blocks.groups, b, blocks.moments(left), strict=True):
        gradients[group.agents] = norms(moment - alpha * own)
    gradients = gradients + errors + 4 * U * alpha * sizes
    squares = sendable(np.column_stack([gradients**2, sizes**2]))
    gradient, size = sum_alike(network, squares, exact)[0].tolist()
    share = 2 * sum_error(network, exact)
    if not has_own_errors(network, exact):
        gradient += share * (gradient + size) / (1 - share)
    distance = np.sqrt(max(gradient, 0.0) / (1 - share)) / alpha
    return certificate_of(float(distance), float(np.sqrt(max(size, 0.0) * (1 - share))), reason)
