"""The loop of iterative solvers: counts, keeps residuals, stops all agents together, and reports.

    loop = Iterations(network, "ADMM", tolerance, max_iterations, check_every=10)
    for n in loop:                                 n = 1, 2, ..
        ...                                        one iteration
        if loop.due:                               every 10 iterations, and in the last one
            loop.vote(residuals)                   over the network: all agents know the largest
    return Solution(b, loop.report("raise max_iterations"))

A solver that already knows the same residual at every agent calls `judge` instead of `vote`. The
report's `converged` says whether the last residual is within tolerance; `report` warns if not.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, Literal, Self

from peerlearn.algorithms.sums import maximum
from peerlearn.arrays import HUGE, Array, is_real, sendable
from peerlearn.errors import InputError, warn_not_converged
from peerlearn.network.base import Counts, Network
from peerlearn.secret.privacy_statement import PrivacyStatement
from peerlearn.secret.statement import SecrecyStatement

__all__ = ["Report"]

Measure = Literal["distance", "gradient"]


class Iterations:
    """The iterations of one run of a solver, at all agents hosted here.

    Parameters
    ----------
    network : Network
        The network of the agents. Messages sent from now on count for this run.
    solver : str
        The solver's name, for the report and the warning.
    tolerance : float
        Iterations end when a residual is within it.
    max_iterations : int
        Iterations also end after this many.
    check_every : int, default 1
        Iterations from one residual to the next.
    measure : {"distance", "gradient"}, default "distance"
        What residuals are: the distance to the answer, or the size of a gradient.
    recovers : bool, default False
        Whether the solver can go on after a residual that is huge or NaN. Others stop there.

    Examples
    --------
    >>> from peerlearn import SimulatedNetwork, graphs
    >>> loop = Iterations(SimulatedNetwork(graphs.ring(3)), "Halving", 0.2, max_iterations=100)
    >>> for n in loop:
    ...     residual = loop.judge(0.5**n)
    >>> loop.report().iterations
    3
    """

    def __init__(
        self,
        network: Network,
        solver: str,
        tolerance: float,
        max_iterations: int,
        *,
        check_every: int = 1,
        measure: Measure = "distance",
        recovers: bool = False,
    ) -> None:
        self.network = network
        self.solver = solver
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.check_every = check_every
        self.count = 0
        self.residuals: list[float] = []
        self._measure = measure
        self._recovers = recovers
        self._stopped = False
        self._falls_short = False
        self._mark = network.ledger.mark()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> int:
        if self._stopped or self.exhausted:
            raise StopIteration
        self.count += 1
        return self.count

    @property
    def due(self) -> bool:
        """Whether a residual is due in this iteration."""
        return self.count % self.check_every == 0 or self.exhausted

    @property
    def exhausted(self) -> bool:
        """Whether this is the last iteration that is allowed."""
        return self.count >= self.max_iterations

    @property
    def converged(self) -> bool:
        """Whether the last residual is within tolerance."""
        return bool(self.residuals) and self.residuals[-1] <= self.tolerance

    def vote(self, residuals: Array) -> float:
        """Return the largest residual of all agents, and stop the loop if it is within tolerance.

        residuals: those of the hosted agents.
        """
        return self.judge(float(maximum(self.network, sendable(residuals))[0]))

    def judge(self, residual: float) -> float:
        """Keep a residual that all agents know alike, and stop if it is within tolerance."""
        self.record(residual)
        self._decide()
        return residual

    def record(self, residual: float) -> None:
        """Keep a residual without a decision about stopping."""
        self.residuals.append(residual)
        self.network.residual = residual

    def correct(self, residual: float) -> None:
        """Replace the last residual by a more exact one, and decide again whether to stop."""
        self.residuals[-1] = residual
        self._decide()

    def stop(self) -> None:
        """End the loop after this iteration."""
        self._stopped = True

    def _decide(self) -> None:
        diverged = not self.residuals[-1] < HUGE  # NaN is not
        self._stopped = self.converged or (diverged and not self._recovers)

    def fall_short(
        self,
        residual: float,
        change: str,
        *,
        tolerance: float | None = None,
        measure: Measure | None = None,
    ) -> None:
        """Warn that the answer is not as exact as asked for, and report it as not converged.

        change: what the user can do about it. tolerance, measure: those of this residual, if they
        are not those of the loop.
        """
        self._falls_short = True
        asked = self.tolerance if tolerance is None else tolerance
        if (measure or self._measure) == "distance":
            where = f"at a distance of about {residual:.2e} from the answer"
        else:
            where = f"with a gradient of size {residual:.2e}"
        self._warn(where, asked, change)

    def report(
        self,
        change: str = "",
        note: str = "",
        *,
        certain: bool = True,
        residual: float | None = None,
        warn: bool = True,
        certificate: Certificate | None = None,
    ) -> Report:
        """Return the report, and warn if the answer is not as exact as asked for.

        change: what the user can do about it. certain: False if residuals cannot be trusted,
        because sums were cut off. residual: that of the answer, if it is not the last one.
        warn: False for a caller that can try something else. certificate: the bound that decides
        whether the answer is exact enough, in place of the last residual.
        """
        if certificate is not None:
            return self._certified_report(certificate, change, note, warn=warn)
        last = residual
        if last is None:
            last = self.residuals[-1] if self.residuals else 0.0
        converged = last <= self.tolerance and certain and not self._falls_short
        if warn and not converged and not self._falls_short:
            self.fall_short(last, change)
        sent = self.network.ledger.since(self._mark)
        return Report(self.solver, converged, self.count, tuple(self.residuals), sent, note)

    def _certified_report(
        self, certificate: Certificate, change: str, note: str, *, warn: bool
    ) -> Report:
        converged = certificate.bound <= self.tolerance
        if warn and not converged and not self._falls_short:
            self._warn(certificate.describe(), self.tolerance, change)
        sent = self.network.ledger.since(self._mark)
        return Report(
            self.solver,
            converged,
            self.count,
            tuple(self.residuals),
            sent,
            note,
            certificate.bound,
            certificate.reason,
        )

    def _warn(self, where: str, asked: float, change: str) -> None:
        warn_not_converged(
            f"{self.solver} stopped after {self.count} iterations {where}, "
            f"where {asked:g} was asked for: {change}"
        )


SMALLEST_TOLERANCE = 1e-12
IN_ONE_PLACE = 1e-6  # tolerance of a single agent, which has all rows
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
        disagreement between agents. With an intercept it holds for the coefficients alone, and for
        coefficients and intercept together. Infinite where there is no bound.
    bound_reason : str, default ""
        Why the bound is infinite, or what else must be known about it.
    gradient : float or None, default None
        Size of the gradient of the pooled objective at the coefficients, the largest of the hosted
        agents, of solvers that do not promise the pooled answer. None if it is not known.
    privacy : PrivacyStatement or None, default None
        What differential privacy promises: its attributes are epsilon, delta, neighbors, clipping,
        colluders, agents and noise_multiplier. None without it.
    secrecy : SecrecyStatement or None, default None
        What agents learned of each other in secret sums, and what is promised about it. None
        without secrecy.

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
    privacy: PrivacyStatement | None = None
    secrecy: SecrecyStatement | None = None

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
        if self.privacy is not None:
            lines += self.privacy.lines()
        if self.secrecy is not None:
            lines += self.secrecy.lines()
        return lines

    def _bound_text(self) -> str:
        """Return the bound and what is to be known about it."""
        number = "none" if self.bound == math.inf else f"{self.bound:.2e}"
        return f"{number}: {self.bound_reason}" if self.bound_reason else number

    def for_json(self) -> dict[str, Any]:
        """Return all fields by name; an infinite bound is None, because JSON has no infinity.

        Without secrecy or differential privacy, there is no entry about it.
        """
        fields = asdict(self)
        for name in ("privacy", "secrecy"):
            if fields[name] is None:
                del fields[name]
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
