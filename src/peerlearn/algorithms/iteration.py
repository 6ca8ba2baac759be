"""The loop of iterative solvers: counts iterations, keeps residuals, stops all agents together, warns and reports.

    loop = Iterations(network, "ADMM", tolerance, max_iterations, check_every=10)
    for n in loop:                                 n = 1, 2, ..
        ...                                        one iteration
        if loop.due:                               every 10 iterations, and in the last one
            loop.vote(residuals)                   over the network: all agents know the largest, and stop together
    return Solution(b, loop.report("raise max_iterations"))

A solver that knows the same residual at every agent already calls `judge` in place of `vote`. The
report's `converged` is whether the last residual is within tolerance; `report` warns if not.
"""

from __future__ import annotations

from typing import Literal, Self

from peerlearn.algorithms.flooding import maximum
from peerlearn.algorithms.report import Report
from peerlearn.arrays import HUGE, Array, sendable
from peerlearn.errors import warn_not_converged
from peerlearn.network.base import Network

Measure = Literal["distance", "gradient"]


class Iterations:
    """The iterations of one run of a solver, at all agents hosted here.

    Parameters
    ----------
    network: the ledger's share of the run begins now.
    solver: its name, for the report and the warning.
    tolerance: iterations end when a residual is within it.
    max_iterations: or after so many.
    check_every: iterations from one residual to the next.
    measure: what residuals are: the distance to the answer, or the size of a gradient.
    recovers: the solver goes on from residuals that are huge or no numbers; others stop there.
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
        """Return the largest residual of all agents, from those of the hosted ones, and stop if it is small enough."""
        return self.judge(float(maximum(self.network, sendable(residuals))[0]))

    def judge(self, residual: float) -> float:
        """Keep a residual that all agents know with the same bits, and stop if it is small enough."""
        self.record(residual)
        self._decide()
        return residual

    def record(self, residual: float) -> None:
        """Keep a residual that decides nothing."""
        self.residuals.append(residual)
        self.network.residual = residual

    def correct(self, residual: float) -> None:
        """Replace the last residual by one that is known better, and decide anew whether to stop."""
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
        """Warn that the answer is not as exact as was asked for, and report it as not converged.

        change: what to do about it. tolerance, measure: of this residual, if not those of the loop.
        """
        self._falls_short = True
        asked = self.tolerance if tolerance is None else tolerance
        if (measure or self._measure) == "distance":
            where = f"at a distance of about {residual:.2e} from the answer"
        else:
            where = f"with a gradient of size {residual:.2e}"
        warn_not_converged(
            f"{self.solver} stopped after {self.count} iterations {where}, where {asked:g} was asked for: {change}"
        )

    def report(
        self,
        change: str = "",
        note: str = "",
        *,
        certain: bool = True,
        residual: float | None = None,
        warn: bool = True,
    ) -> Report:
        """Return the report, and warn if the answer is not as exact as was asked for.

        change: what to do about it. certain: False if residuals do not tell the truth, because sums
        were cut off.
        residual: of the answer, if that is not the last one. warn: False for a caller that has
        something else to try.
        """
        last = residual
        if last is None:
            last = self.residuals[-1] if self.residuals else 0.0
        converged = last <= self.tolerance and certain and not self._falls_short
        if warn and not converged and not self._falls_short:
            self.fall_short(last, change)
        sent = self.network.ledger.since(self._mark)
        return Report(self.solver, converged, self.count, tuple(self.residuals), sent, note)
