"""The contract of readout solvers, their result, and the checks that they share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from peerlearn.algorithms.iteration import Report
from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Penalty, Ridge
from peerlearn.network.base import Network

__all__ = ["Solution", "Solver"]


@dataclass(frozen=True)
class Solution:
    """The result of a readout solver.

    Parameters
    ----------
    coefficients : ndarray of shape (hosted agents, B, M)
        Coefficients of each agent hosted here.
    report : Report
        How the solver got there.
    apart : float or None, default None
        How far each agent's coefficients may be from the common answer, relative to their size.
        0 means that all agents hold the same bits. None means that each agent has its own, or that
        nothing is known. Models check it by `agreement.check_coefficients`.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn.algorithms import Report, Solution
    >>> report = Report("Gram", converged=True, iterations=1, residuals=())
    >>> Solution(np.zeros((5, 20, 3)), report, apart=0.0).coefficients.shape
    (5, 20, 3)
    """

    coefficients: Array
    report: Report
    apart: float | None = None


class Solver(Protocol):
    """The contract of a readout solver: any object with `solve` can be a model's `solver`.

    Attributes
    ----------
    name : str
        What `solver="..."` calls it. A solver without a name is used as an object only.
    exact : bool
        Whether it reaches the centralised coefficients to the tolerance that it is given.

    Examples
    --------
    >>> from peerlearn import Gram, RVFLClassifier
    >>> solver = Gram(tolerance=1e-8)  # one of them; CONTRIBUTING shows how to write another
    >>> solver.name, solver.exact
    ('gram', True)
    >>> RVFLClassifier(solver=solver).solver
    Gram(tolerance=1e-08, averaging='auto')
    """

    name: ClassVar[str]
    exact: ClassVar[bool]

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        """Return the coefficients of the hosted agents for their problems and the penalty."""
        ...


def must_take(solver: Solver, penalty: Penalty) -> None:
    """Raise the error that `solve` would raise for this penalty, before there are any data.

    A solver without a `must_take` method takes every penalty.
    """
    refuse: Callable[[Penalty], None] | None = getattr(solver, "must_take", None)
    if refuse is not None:
        refuse(penalty)


def only_ridge(penalty: Penalty, solver: str) -> float:
    """Return alpha of a ridge penalty; for another, raise an error that names its solvers."""
    if not isinstance(penalty, Ridge):
        raise InputError(
            f"{solver} solves ridge problems only: for a {type(penalty).__name__} penalty "
            f"use {_name_solvers(penalty)}"
        )
    return penalty.alpha


def ridge_or_lasso(penalty: Penalty, solver: str) -> None:
    """Refuse a penalty that is neither ridge nor lasso."""
    if not isinstance(penalty, Ridge | Lasso):
        raise InputError(
            f"{solver} solves ridge and lasso problems only: for a {type(penalty).__name__} "
            f"penalty use {_name_solvers(penalty)}"
        )


def _name_solvers(penalty: Penalty) -> str:
    if isinstance(penalty, Lasso):
        return "solver='gram' or 'admm', or 'local' alone"
    return "solver='admm'"


def above_zero(penalty: Penalty, solver: str) -> None:
    """Refuse an alpha of 0, for solvers that cannot tell whether the data determine the answer."""
    if penalty.alpha == 0:
        raise InputError(
            f"{solver} cannot tell whether the data determine the coefficients when alpha is 0: "
            "set alpha above 0, or use solver='gram', which can"
        )
