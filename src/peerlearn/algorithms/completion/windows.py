"""The loop that completions share: iterate, and judge by messages where all agents stand.

    u_k      relative misfit at agent k of the point that a window of rounds starts from                       alone
    U        the largest u_k: rides in the window's messages                                        over the network

A window has as many rounds as the graph is wide, or ten: at its end all agents know the same U.
They stop when it is
small enough. Where it has grown, or has not fallen for a while, all go back to the best point so
far with half the step: steps that are stable at the answer may not be on the way, and nobody needs
to know beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from peerlearn.algorithms.averaging import CHECK_EVERY
from peerlearn.algorithms.completion.completed import WAY_OUT, Completed
from peerlearn.algorithms.flooding import maximum
from peerlearn.algorithms.iteration import Iterations
from peerlearn.arrays import Array, sendable

GROWN = 10.0  # times the least misfit so far: beyond it, momentum is no excuse
PATIENCE = 5  # windows without a new least misfit

Point = TypeVar("Point")


class Iteration(Protocol[Point]):
    """What a completion iterates, for all hosted agents at once."""

    @property
    def point(self) -> Point:
        """Where it is, to come back to: never changed in place."""
        ...

    def look(self) -> tuple[Array, Array]:
        """Misfit of each hosted agent at this point, and error where the truth is known, else no columns."""
        ...

    def advance(self, heard: Array) -> Array:
        """One iteration, which is one round; the largest misfits heard of ride along."""
        ...

    def go_back(self, point: Point) -> None:
        """To an earlier point, with half the step."""
        ...


@dataclass
class Best(Generic[Point]):
    """The best point so far, and how many more windows may pass without a better one."""

    point: Point
    least: float = np.inf
    patience: int = PATIENCE

    def judge(self, point: Point, misfit: float) -> bool:
        """Whether it is time to go back, after a point of which all know the misfit."""
        self.patience -= 1
        if misfit < self.least:
            self.point, self.least, self.patience = point, misfit, PATIENCE
        if misfit <= GROWN * self.least and self.patience > 0:
            return False
        self.patience = PATIENCE
        return True


def run(iteration: Iteration[Point], loop: Iterations) -> tuple[Point, Completed]:
    """Return the best point that was found, and the record of how; the distances are for the caller to add."""
    network, back = loop.network, 0
    window, best = max(network.diameter, CHECK_EVERY), Best(iteration.point)
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # a step too long ends in no number, and is taken back
        history = [_look(iteration)]
        start, heard = iteration.point, history[-1][0]
        for n in loop:
            heard = iteration.advance(heard)
            history.append(_look(iteration))
            if loop.exhausted:
                loop.record(float(maximum(network, history[-1][0])[0]))
                best.judge(iteration.point, loop.residuals[-1])
            elif n % window == 0:
                loop.record(float(heard[0]))  # a window has passed: all agents have heard the same
                if best.judge(start, loop.residuals[-1]):
                    iteration.go_back(best.point)
                    back += 1
                    history[-1] = _look(iteration)
                if best.least <= loop.tolerance:
                    break
                start, heard = iteration.point, history[-1][0]
    report = loop.report(
        WAY_OUT, f"steps were halved {back} times" if back else "", residual=best.least
    )
    misfits, errors = (np.stack(kind) for kind in zip(*history, strict=True))
    return best.point, Completed([], report, misfits, errors.reshape(-1, len(network.hosted)))


def _look(iteration: Iteration[Point]) -> tuple[Array, Array]:
    """Misfits and errors; huge where a step too long left no number, so that the largest can be told."""
    misfit, error = (sendable(values) for values in iteration.look())
    return misfit, error
