"""The loop that completions share: iterate, and decide by messages when to stop or go back.

    u_k      relative misfit at agent k, where a window of rounds starts        alone
    U        the largest u_k, sent with the window's messages                   over the network

A window has as many rounds as the graph is wide, or ten: at its end all agents know the same U.
They stop when it is small enough. If it has grown, or has not fallen for a while, all go back to
the best point so far with half the step. Steps that are stable at the answer may not be stable on
the way, and no agent can know that beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from peerlearn.algorithms.averaging import CHECK_EVERY
from peerlearn.algorithms.completion.completed import WAY_OUT, Completed
from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.sums import maximum
from peerlearn.arrays import Array, sendable

GROWN = 10.0  # times the least misfit so far: momentum alone does not explain more
PATIENCE = 5  # windows without a new least misfit

Point = TypeVar("Point")


class Iteration(Protocol[Point]):
    """The iteration of a completion, for all hosted agents at once."""

    @property
    def point(self) -> Point:
        """The current point, to come back to: never changed in place."""
        ...

    def look(self) -> tuple[Array, Array]:
        """Return the misfit and the error of each hosted agent at the current point.

        The error is empty if the truth is not known.
        """
        ...

    def advance(self, heard: Array) -> Array:
        """Do one iteration, which is one round; return the largest misfits heard."""
        ...

    def go_back(self, point: Point) -> None:
        """Go back to an earlier point, with half the step."""
        ...


@dataclass
class Best(Generic[Point]):
    """The best point so far, and how many more windows may pass without a better one."""

    point: Point
    least: float = np.inf
    patience: int = PATIENCE

    def judge(self, point: Point, misfit: float) -> bool:
        """Keep the point if it is the best so far; return whether it is time to go back.

        All agents know the misfit.
        """
        self.patience -= 1
        if misfit < self.least:
            self.point = point
            self.least = misfit
            self.patience = PATIENCE
        if misfit <= GROWN * self.least and self.patience > 0:
            return False
        self.patience = PATIENCE
        return True


def run(iteration: Iteration[Point], loop: Iterations) -> tuple[Point, Completed]:
    """Return the best point that was found, and the record of the run without the distances."""
    network = loop.network
    back = 0
    window = max(network.diameter, CHECK_EVERY)
    best = Best(iteration.point)
    # A step that is too long ends in NaN or infinity, and is undone.
    with np.errstate(over="ignore", invalid="ignore"):
        history = [_look(iteration)]
        start = iteration.point
        heard = history[-1][0]
        for n in loop:
            heard = iteration.advance(heard)
            history.append(_look(iteration))
            if loop.exhausted:
                loop.record(float(maximum(network, history[-1][0])[0]))
                best.judge(iteration.point, loop.residuals[-1])
            elif n % window == 0:
                loop.record(float(heard[0]))  # after a window all agents know the same misfit
                if best.judge(start, loop.residuals[-1]):
                    iteration.go_back(best.point)
                    back += 1
                    history[-1] = _look(iteration)
                if best.least <= loop.tolerance:
                    break
                start = iteration.point
                heard = history[-1][0]
    note = f"steps were halved {back} times" if back else ""
    report = loop.report(WAY_OUT, note, residual=best.least)
    misfits, errors = (np.stack(kind) for kind in zip(*history, strict=True))
    return best.point, Completed([], report, misfits, errors.reshape(-1, len(network.hosted)))


def _look(iteration: Iteration[Point]) -> tuple[Array, Array]:
    """Return misfits and errors; NaN and infinity are replaced by huge numbers that can be sent."""
    misfit, error = (sendable(values) for values in iteration.look())
    return misfit, error
