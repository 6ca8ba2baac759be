"""The rule behind solver="auto", and the registry of readout solvers.

Gram sends about B^2/2 numbers once, or the rows' R factors on a tree. Conjugate gradients send B M
numbers per sum, and about twenty sums are usual. All agents know B, M, the graph and the way of
summing. On a tree the traffic also depends on how many rows there are and how far they have to
travel, so that is summed first. All agents therefore make the same choice.

Conjugate gradients may need many more sums if the agents' data differ much. Once they have sent as
much as Gram would have, Gram takes over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.iteration import check_tolerance
from peerlearn.algorithms.readout.admm import ADMM
from peerlearn.algorithms.readout.conjugate_gradient import ConjugateGradient
from peerlearn.algorithms.readout.gram import Gram
from peerlearn.algorithms.readout.solver import Solution, Solver
from peerlearn.algorithms.registry import Family
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Penalty, Ridge
from peerlearn.network.base import Network

__all__ = ["Auto"]

USUAL_SUMS = 20


@dataclass(frozen=True)
class Auto:
    """Readout by the exact solver that is expected to send least.

    `Gram` or `ConjugateGradient` for ridge, `Gram` for lasso, `ADMM` for other penalties. The note
    of the report says which was chosen, and why.

    Parameters
    ----------
    tolerance : float, default 1e-6
        Relative distance to the centralised coefficients.
    averaging : Averaging or str, default "auto"
        How agents add up: an `Averaging`, or the name of its method.

    Examples
    --------
    >>> from peerlearn import Auto, RVFLClassifier, SimulatedNetwork, data, graphs
    >>> iris = data.load("iris")
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> fixed = {"alpha": 1.0, "activation": "sigmoid", "network": network, "random_state": 0}
    >>> model = RVFLClassifier(50, solver=Auto(), **fixed)
    >>> model.fit(iris.X, iris.y).report_.note
    'chosen because Gram should send 0.05 MB and ConjugateGradient 0.19 MB'
    """

    tolerance: float = 1e-6
    averaging: Averaging | Method = "auto"

    name: ClassVar = "auto"
    exact: ClassVar = True
    leaks: ClassVar = "would show how many rows single agents have, to choose a solver"

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance, "Auto")
        Averaging.of(self.averaging)

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        """Choose a solver, solve with it, and fall back to Gram if it did not converge."""
        mark = network.ledger.mark()
        solver, why = self._choose(network, problems, penalty)
        if isinstance(solver, ConjugateGradient):
            solution = solver.attempt(network, problems, penalty)
            averaging = Averaging.of(self.averaging)
            if not solution.report.converged and averaging.suffices_on(network):
                why += f", but its {solution.report.iterations} iterations did not reach it"
                solution = Gram(self.tolerance, self.averaging).solve(network, problems, penalty)
        else:
            solution = solver.solve(network, problems, penalty)
        note = f"chosen because {why}"
        if solution.report.note:
            note += f"; {solution.report.note}"
        report = replace(solution.report, note=note, sent=network.ledger.since(mark))
        return replace(solution, report=report)

    def _choose(
        self, network: Network, problems: LeastSquares, penalty: Penalty
    ) -> tuple[Solver, str]:
        """Return the solver for this problem, and why it was chosen."""
        gram = Gram(self.tolerance, self.averaging)
        if isinstance(penalty, Lasso):
            return gram, "Gram's lasso is exact, with the same zeros everywhere"
        if not isinstance(penalty, Ridge):
            admm = ADMM(tolerance=self.tolerance, averaging=self.averaging)
            return admm, "the penalty is neither ridge nor lasso"
        if penalty.alpha == 0:
            return gram, "alpha is 0, and Gram can tell whether the data suffice"
        triangles, vectors = (
            8e-6 * numbers for numbers in self._estimate_traffic(network, problems)
        )
        why = f"Gram should send {triangles:,.2g} MB and ConjugateGradient {vectors:,.2g} MB"
        if triangles <= vectors:
            return gram, why
        # As many iterations as Gram's traffic would pay for.
        enough = int(USUAL_SUMS * min(triangles / vectors, 1000.0))
        return ConjugateGradient(self.tolerance, enough, averaging=self.averaging), why

    def _estimate_traffic(self, network: Network, problems: LeastSquares) -> tuple[float, float]:
        """Return how many numbers Gram and ConjugateGradient would send, all agents together."""
        B, M = problems.shape
        answer = B * M
        triangle = B * (B + 1) / 2 + B * M
        setup = len(problems.features.W) ** 2 / 2 if problems.features else USUAL_SUMS * answer
        averaging = Averaging.of(self.averaging)
        if averaging.exact_on(network):
            links = network.size - 1
            # Every row travels as many links as its agent is deep in the tree.
            way = problems.rows * network.tree.depth[list(network.hosted)]
            rows = float(averaging.total(network, way)[0]) * (B + M)
            by_gram = min(rows, links * triangle) + links * answer
            return by_gram, 2 * links * (setup + USUAL_SUMS * answer)
        links = 2 * network.graph.number_of_edges()
        tight, loose, rough = (
            links * replace(averaging, tolerance=tolerance).rounds_on(network)
            for tolerance in (1e-4 * self.tolerance, 1e-2 * self.tolerance**0.5, 1e-2)
        )
        return tight * triangle, rough * setup + loose * USUAL_SUMS * answer


READOUT: Family[Solver] = Family(
    "peerlearn.algorithms.readout", "solve", "solver", in_one_place="local"
)
solvers = READOUT.kinds
solver_of = READOUT.of
