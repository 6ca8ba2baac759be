"""What a solver of the linear readout returns, and what it is asked."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from peerlearn.arrays import Array, is_real
from peerlearn.errors import InputError, NotConverged
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Penalty, Ridge
from peerlearn.network.base import Counts, Network

SMALLEST_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Report:
    """How a solver came to its answer. Prints as a small table."""

    solver: str
    converged: bool
    iterations: int
    residuals: tuple[float, ...]  # per iteration (ADMM: per vote), as the first hosted agent saw them
    sent: Counts = field(default_factory=Counts)
    note: str = ""  # what the solver chose by itself

    def __str__(self) -> str:
        last = f"{self.residuals[-1]:.2e}" if self.residuals else "-"
        lines = [
            ("solver", self.solver),
            ("converged", "yes" if self.converged else "NO"),
            ("iterations", f"{self.iterations:,}"),
            ("last residual", last),
            ("rounds", f"{self.sent.rounds:,}"),
            ("messages", f"{self.sent.messages:,}"),
            ("MB sent", f"{self.sent.megabytes:,.3f}"),
        ]
        if self.note:
            lines.append(("note", self.note))
        return "\n".join(f"{name:<14}{value}" for name, value in lines)


@dataclass(frozen=True)
class Solution:
    """What a solver returns.

    apart: how far each agent's coefficients may be from the common answer, relative to their size; 0 where all agents
    hold the same bits, None where each has its own or nothing is known. Models check it by
    `agreement.check_coefficients`.
    """

    coefficients: Array  # hosted agents x B x M
    report: Report
    apart: float | None = None


class Solver(Protocol):
    """Anything with `solve` can be a model's solver; one with a name is found by it."""

    name: ClassVar[str]  # what solver="..." calls it
    exact: ClassVar[bool]  # whether it reaches the centralised coefficients, to the tolerance it is asked for

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution: ...


def must_take(solver: Solver, penalty: Penalty) -> None:
    """What `solve` would refuse of the penalty, said before any data is at hand; a solver that takes all has no say."""
    refuse: Callable[[Penalty], None] | None = getattr(solver, "must_take", None)
    if refuse is not None:
        refuse(penalty)


def only_ridge(penalty: Penalty, solver: str) -> float:
    """alpha of a ridge penalty, or the sentence that says which solvers take another."""
    if not isinstance(penalty, Ridge):
        raise InputError(
            f"{solver} solves ridge problems only: for a {type(penalty).__name__} penalty use {_takers(penalty)}"
        )
    return penalty.alpha


def ridge_or_lasso(penalty: Penalty, solver: str) -> None:
    """Refuse a penalty that sums of H'H and H'Y alone do not solve here."""
    if not isinstance(penalty, Ridge | Lasso):
        raise InputError(
            f"{solver} solves ridge and lasso problems only: for a {type(penalty).__name__} penalty use "
            f"{_takers(penalty)}"
        )


def _takers(penalty: Penalty) -> str:
    return "solver='gram' or 'admm', or 'local' alone" if isinstance(penalty, Lasso) else "solver='admm'"


def above_zero(penalty: Penalty, solver: str) -> None:
    """Refuse alpha of 0 where nobody could tell whether the data determine the coefficients."""
    if penalty.alpha == 0:
        raise InputError(
            f"{solver} cannot tell whether the data determine the coefficients when alpha is 0: set alpha above 0, or "
            "use solver='gram', which can"
        )


def within_reach(tolerance: Any, solver: str) -> None:
    """Refuse tolerances that are no numbers above what double precision can tell."""
    if not is_real(tolerance) or not SMALLEST_TOLERANCE <= tolerance < math.inf:
        raise InputError(
            f"tolerance of {solver} must be a number of {SMALLEST_TOLERANCE:g} or more, not {tolerance!r}: double "
            "precision reaches no further"
        )


def warn_not_converged(
    solver: str, iterations: int, residual: float, tolerance: float, change: str, of: str = "distance"
) -> None:
    """of: what the residual and the tolerance are: a distance from the answer, or the size of a gradient."""
    where = "at a distance of about" if of == "distance" else "with a gradient of size"
    answer = " from the answer" if of == "distance" else ""
    warnings.warn(
        f"{solver} stopped after {iterations} iterations {where} {residual:.2e}{answer}, where {tolerance:g} was asked "
        f"for: {change}",
        NotConverged,
        stacklevel=3,
    )
