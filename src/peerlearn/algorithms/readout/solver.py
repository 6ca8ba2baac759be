"""What a solver of the linear readout returns, and what it is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from peerlearn.algorithms.report import Report
from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Penalty, Ridge
from peerlearn.network.base import Network

__all__ = ["Solution", "Solver"]


@dataclass(frozen=True)
class Solution:
    """What a solver returns.

    apart: how far each agent's coefficients may be from the common answer, relative to their size;
    0 where all agents
    hold the same bits, None where each has its own or nothing is known. Models check it by
    `agreement.check_coefficients`.
    """

    coefficients: Array  # hosted agents x B x M
    report: Report
    apart: float | None = None


class Solver(Protocol):
    """Anything with `solve` can be a model's solver; one with a name is found by it."""

    name: ClassVar[str]  # what solver="..." calls it
    exact: ClassVar[
        bool
    ]  # whether it reaches the centralised coefficients, to the tolerance it is asked for

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
    return (
        "solver='gram' or 'admm', or 'local' alone"
        if isinstance(penalty, Lasso)
        else "solver='admm'"
    )


def above_zero(penalty: Penalty, solver: str) -> None:
    """Refuse alpha of 0 where nobody could tell whether the data determine the coefficients."""
    if penalty.alpha == 0:
        raise InputError(
            f"{solver} cannot tell whether the data determine the coefficients when alpha is 0: set alpha above 0, or "
            "use solver='gram', which can"
        )
