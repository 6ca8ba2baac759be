"""Which solver for which problem: the rule behind solver="auto", and the short names that models accept.

Gram sends about B^2/2 numbers once, or the rows' R factors on a tree; conjugate gradients B M
numbers per sum, and some twenty sums are usual. What that comes to depends on B, M, the graph and
the way of summing, which everybody knows, and on a tree on the rows and how far they have to go,
which is summed first: so all agents choose alike. Where agents differ much conjugate gradients may
need many more: once they have sent what Gram would have, Gram takes over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.readout.admm import ADMM
from peerlearn.algorithms.readout.conjugate_gradient import ConjugateGradient
from peerlearn.algorithms.readout.gram import Gram
from peerlearn.algorithms.readout.solver import Solution, Solver
from peerlearn.algorithms.registry import Family
from peerlearn.algorithms.report import check_tolerance
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Penalty, Ridge
from peerlearn.network.base import Network

__all__ = ["Auto"]

USUAL_SUMS = 20


@dataclass(frozen=True)
class Auto:
    """Gram or conjugate gradients, whichever is expected to send less; Gram for lasso; ADMM for other penalties."""

    tolerance: float = 1e-6
    averaging: Averaging | Method = "auto"

    name: ClassVar = "auto"
    exact: ClassVar = True

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance, "Auto")
        Averaging.of(self.averaging)

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        mark = network.ledger.mark()
        solver, why = self._choose(network, problems, penalty)
        if isinstance(solver, ConjugateGradient):
            solution = solver.attempt(network, problems, penalty)
            if not solution.report.residuals[-1] <= self.tolerance:
                why += f", but {solution.report.iterations} iterations were too few"
                solution = Gram(self.tolerance, self.averaging).solve(network, problems, penalty)
        else:
            solution = solver.solve(network, problems, penalty)
        note = f"chosen because {why}" + (
            f"; {solution.report.note}" if solution.report.note else ""
        )
        return replace(
            solution, report=replace(solution.report, note=note, sent=network.ledger.since(mark))
        )

    def _choose(
        self, network: Network, problems: LeastSquares, penalty: Penalty
    ) -> tuple[Solver, str]:
        if isinstance(penalty, Lasso):
            return Gram(
                self.tolerance, self.averaging
            ), "Gram's lasso is exact, with the same zeros everywhere"
        if not isinstance(penalty, Ridge):
            return ADMM(
                tolerance=self.tolerance, averaging=self.averaging
            ), "the penalty is neither ridge nor lasso"
        if penalty.alpha == 0:
            return Gram(
                self.tolerance, self.averaging
            ), "alpha is 0, and Gram can tell whether the data suffice"
        gram, vectors = (8e-6 * numbers for numbers in self._estimate_traffic(network, problems))
        why = f"Gram should send {gram:,.2g} MB and ConjugateGradient {vectors:,.2g} MB"
        if gram <= vectors:
            return Gram(self.tolerance, self.averaging), why
        enough = int(USUAL_SUMS * min(gram / vectors, 1000.0))  # for what Gram would have cost
        return ConjugateGradient(self.tolerance, enough, averaging=self.averaging), why

    def _estimate_traffic(self, network: Network, problems: LeastSquares) -> tuple[float, float]:
        """How many numbers Gram and conjugate gradients are expected to send, all agents together."""
        B, M = problems.shape
        triangle, answer = B * (B + 1) / 2 + B * M, B * M
        setup = len(problems.features.W) ** 2 / 2 if problems.features else USUAL_SUMS * answer
        averaging = Averaging.of(self.averaging)
        if averaging.exact_on(network):
            links = network.size - 1
            way = (
                problems.rows * network.tree.depth[list(network.hosted)]
            )  # how far each agent's rows have to go
            rows = float(averaging.total(network, way)[0]) * (B + M)
            return min(rows, links * triangle) + links * answer, 2 * links * (
                setup + USUAL_SUMS * answer
            )
        links = 2 * network.graph.number_of_edges()
        tight, loose, rough = (
            links * replace(averaging, tolerance=tolerance).rounds_on(network)
            for tolerance in (1e-4 * self.tolerance, 1e-2 * self.tolerance**0.5, 1e-2)
        )
        return tight * triangle, rough * setup + loose * USUAL_SUMS * answer


READOUT: Family[Solver] = Family(
    "peerlearn.algorithms.readout", "solve", "solver", in_one_place="local"
)
solvers, solver_of = READOUT.kinds, READOUT.of
