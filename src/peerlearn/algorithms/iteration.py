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

from typing import Literal, Self

from peerlearn.algorithms.report import Report
from peerlearn.algorithms.sums import maximum
from peerlearn.arrays import HUGE, Array, sendable
from peerlearn.errors import warn_not_converged
from peerlearn.network.base import Network

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
        warn_not_converged(
            f"{self.solver} stopped after {self.count} iterations {where}, "
            f"where {asked:g} was asked for: {change}"
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
        """Return the report, and warn if the answer is not as exact as asked for.

        change: what the user can do about it. certain: False if residuals cannot be trusted,
        because sums were cut off. residual: that of the answer, if it is not the last one.
        warn: False for a caller that can try something else.
        """
        last = residual
        if last is None:
            last = self.residuals[-1] if self.residuals else 0.0
        converged = last <= self.tolerance and certain and not self._falls_short
        if warn and not converged and not self._falls_short:
            self.fall_short(last, change)
        sent = self.network.ledger.since(self._mark)
        return Report(self.solver, converged, self.count, tuple(self.residuals), sent, note)
