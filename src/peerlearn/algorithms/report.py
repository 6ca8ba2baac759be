"""The report that every solver, learner and model returns, and the check of tolerances."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

from peerlearn.arrays import is_real
from peerlearn.errors import InputError
from peerlearn.network.base import Counts

__all__ = ["Report"]

SMALLEST_TOLERANCE = 1e-12
# Why a solver that sends nothing has neither a bound nor a gradient.
OF_OWN_DATA = "it is the answer of the agent's own data: of the pooled one nothing is known"


@dataclass(frozen=True)
class Report:
    """Report of how a solver came to its answer; prints as a small table.

    Parameters
    ----------
    solver : str
        Name of the solver.
    converged : bool
        Whether the answer is as exact as asked for.
    iterations : int
        Number of iterations.
    residuals : tuple of float
        One residual per check, as the first hosted agent knew it.
    sent : Counts
        Rounds, messages and bytes of the hosted agents.
    note : str, default ""
        What the solver chose by itself.
    bound : float, default inf
        Upper bound of the relative distance |w - w*| / |w*| of the coefficients to the pooled
        answer w*, the largest of the hosted agents. It covers rounding, inexact sums and
        disagreement between agents. Infinite where there is no bound.
    bound_reason : str, default ""
        Why the bound is infinite, or what else must be known about it.
    gradient : float or None, default None
        Size of the gradient of the pooled objective at the coefficients, the largest of the hosted
        agents, of solvers that do not promise the pooled answer. None if it is not known.

    Examples
    --------
    >>> print(Report("Gram", converged=True, iterations=1, residuals=()))
    solver        Gram
    converged     yes
    iterations    1
    last residual -
    rounds        0
    messages      0
    MB sent       0.000
    """

    solver: str
    converged: bool
    iterations: int
    residuals: tuple[float, ...]
    sent: Counts = field(default_factory=Counts)
    note: str = ""
    bound: float = math.inf
    bound_reason: str = ""
    gradient: float | None = None

    def __str__(self) -> str:
        return "\n".join(f"{name:<14}{value}" for name, value in self._lines())

    def _repr_html_(self) -> str:
        """Return the same table as HTML, for notebooks."""
        cells = [(escape(name), escape(value)) for name, value in self._lines()]
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in cells)
        return f"<table>{rows}</table>"

    def _lines(self) -> list[tuple[str, str]]:
        """Return what is shown: names and texts."""
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
        if self.bound < math.inf or self.bound_reason:
            lines.insert(4, ("error bound", self._bound_text()))
        if self.gradient is not None:
            lines.insert(4, ("gradient", f"{self.gradient:.2e}"))
        if self.note:
            lines.append(("note", self.note))
        return lines

    def _bound_text(self) -> str:
        """Return the bound and what is to be known about it."""
        number = "none" if self.bound == math.inf else f"{self.bound:.2e}"
        return f"{number}: {self.bound_reason}" if self.bound_reason else number

    def for_json(self) -> dict[str, Any]:
        """Return all fields by name; an infinite bound is None, because JSON has no infinity."""
        fields = asdict(self)
        if self.bound == math.inf:
            fields["bound"] = None
        return fields


@dataclass(frozen=True)
class Certificate:
    """Bound on the relative distance to the pooled answer: see certificate.py.

    reason: why it is infinite, or what else must be known about it.
    """

    bound: float
    reason: str = ""

    def describe(self) -> str:
        """Return where the answer is, as a part of a sentence."""
        if self.bound == math.inf:
            return f"at a distance from the answer that has no bound ({self.reason})"
        return f"at a distance of at most {self.bound:.2e} from the answer"


def check_tolerance(tolerance: Any, solver: str) -> None:
    """Refuse a tolerance that is not a number, or below what double precision can resolve."""
    if not is_real(tolerance) or not SMALLEST_TOLERANCE <= tolerance < math.inf:
        raise InputError(
            f"tolerance of {solver} must be a number of {SMALLEST_TOLERANCE:g} or more, "
            f"not {tolerance!r}: double precision reaches no further"
        )
