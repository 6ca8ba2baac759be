"""The report that every solver, learner and model returns, and the check of tolerances."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape
from typing import Any

from peerlearn.arrays import is_real
from peerlearn.errors import InputError
from peerlearn.network.base import Counts

__all__ = ["Report"]

SMALLEST_TOLERANCE = 1e-12


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
        Upper bound of the relative distance |w - w*| / |w*| to the pooled answer w*.
    bound_reason : str, default ""
        Why there is no finite bound, and what `converged` is about instead.

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
        if self.note:
            lines.append(("note", self.note))
        return lines


def check_tolerance(tolerance: Any, solver: str) -> None:
    """Refuse a tolerance that is not a number, or below what double precision can resolve."""
    if not is_real(tolerance) or not SMALLEST_TOLERANCE <= tolerance < math.inf:
        raise InputError(
            f"tolerance of {solver} must be a number of {SMALLEST_TOLERANCE:g} or more, "
            f"not {tolerance!r}: double precision reaches no further"
        )
