"""Which solver for which problem: the rule behind solver="auto", and the short names that models accept.

Gram sends about B^2/2 numbers once, conjugate gradients about 2 B M numbers per iteration, and some ten to forty
iterations are usual. Everybody knows B, M and the size of the network, so all agents choose alike.
"""

from __future__ import annotations

import difflib
import pkgutil
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import ClassVar

from peerlearn.algorithms.admm import ADMM
from peerlearn.algorithms.conjugate_gradient import ConjugateGradient
from peerlearn.algorithms.consensus import Averaging, Method
from peerlearn.algorithms.gram import Gram
from peerlearn.algorithms.solution import Solution, Solver
from peerlearn.errors import InputError
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Penalty
from peerlearn.network.base import Network

USUAL_ITERATIONS = 20


@dataclass(frozen=True)
class Auto:
    """Gram where its triangle is smaller than some twenty conjugate-gradient vectors, else conjugate gradients."""

    name: ClassVar = "auto"
    exact: ClassVar = True

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


@cache
def solvers() -> dict[str, type[Solver]]:
    """Every solver of this folder by its name: any class with `name` and `solve`. A new file is found by itself."""
    found: dict[str, type[Solver]] = {}
    for file in pkgutil.iter_modules([str(Path(__file__).parent)]):
        for kind in vars(import_module(f"{__package__}.{file.name}")).values():
            if isinstance(kind, type) and hasattr(kind, "solve") and hasattr(kind, "name"):
                found[kind.name] = kind
    return found


def solver_of(solver: Solver | str) -> Solver:
    """A solver, also from its short name."""
    known = sorted(solvers())
    if not isinstance(solver, str):
        if not hasattr(solver, "solve"):
            raise InputError(
                f"solver must be one of {', '.join(known)}, or an object with a solve method, "
                f"not {type(solver).__name__}"
            )
        return solver
    if solver not in known:
        near = difflib.get_close_matches(solver.lower(), known, n=1)
        hint = f", did you mean {near[0]!r}?" if near else ":"
        raise InputError(f"solver {solver!r} is not known{hint} there are {', '.join(known)}")
    return solvers()[solver]()
