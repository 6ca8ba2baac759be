"""Which solver for which problem: the rule behind solver="auto", and the short names that models accept.

Gram sends about B^2/2 numbers once, conjugate gradients about 2 B M numbers per iteration, and some ten to forty
iterations are usual. Everybody knows B, M and the size of the network, so all agents choose alike.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace

from peerlearn.algorithms.admm import ADMM
from peerlearn.algorithms.averaged_fit import Consensus
from peerlearn.algorithms.conjugate_gradient import ConjugateGradient
from peerlearn.algorithms.consensus import Averaging, Method
from peerlearn.algorithms.gram import Gram
from peerlearn.algorithms.local_fit import Local
from peerlearn.algorithms.solution import Solution, Solver
from peerlearn.errors import InputError
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Penalty
from peerlearn.network.base import Network

USUAL_ITERATIONS = 20


@dataclass(frozen=True)
class Auto:
    """Gram where its triangle is smaller than some twenty conjugate-gradient vectors, else conjugate gradients."""

    tolerance: float = 1e-6
    averaging: Averaging | Method = "auto"

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        solver, why = self.choose(problems, penalty)
        solution = solver.solve(network, problems, penalty)
        note = f"chosen because {why}" + (f"; {solution.report.note}" if solution.report.note else "")
        return replace(solution, report=replace(solution.report, note=note))

    def choose(self, problems: LeastSquares, penalty: Penalty) -> tuple[Solver, str]:
        if isinstance(penalty, Lasso):
            return ADMM(tolerance=self.tolerance, averaging=self.averaging), "the penalty is not quadratic"
        B, M = problems.shape
        d = len(problems.features.W) if problems.features else 0
        triangle, vectors = B * (B + 1) // 2 + B * M, 2 * B * M * USUAL_ITERATIONS + d * d // 2
        sizes = f"its triangle has {triangle:,} numbers, {USUAL_ITERATIONS} iterations of vectors {vectors:,}"
        if triangle <= vectors:
            return Gram(self.tolerance, self.averaging), sizes
        solver = ConjugateGradient(
            self.tolerance, preconditioner="synthetic" if problems.features else "local", averaging=self.averaging
        )
        return solver, f"Gram is larger: {sizes}"


SOLVERS: dict[str, Callable[[], Solver]] = {
    "auto": Auto,
    "local": Local,
    "consensus": Consensus,
    "admm": ADMM,
    "gram": Gram,
    "cg": ConjugateGradient,
}


def solver_of(solver: Solver | str) -> Solver:
    """A solver, also from its short name."""
    if not isinstance(solver, str):
        if not hasattr(solver, "solve"):
            raise InputError(
                f"solver must be a name ({', '.join(SOLVERS)}) or an object with a solve method, "
                f"not {type(solver).__name__}"
            )
        return solver
    if solver not in SOLVERS:
        near = difflib.get_close_matches(solver.lower(), SOLVERS, n=1)
        hint = f": did you mean {near[0]!r}?" if near else ""
        raise InputError(f"solver {solver!r} is not known{hint} There are {', '.join(SOLVERS)}")
    return SOLVERS[solver]()
