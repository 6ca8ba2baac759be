"""The checks of peerlearn.testing: everything that is found passes them, and whatever is sabotaged does not."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from peerlearn.algorithms.columns import column_solvers
from peerlearn.algorithms.readout.auto import solvers
from peerlearn.algorithms.smooth import smooth_solvers
from peerlearn.algorithms.streaming.learner import learners
from peerlearn.local.least_squares import Tall
from peerlearn.local.penalties import Ridge
from peerlearn.testing import check_column_solver, check_learner, check_smooth_solver, check_solver
from peerlearn.testing.smooth import MarginLosses

FORGOTTEN = 2  # the agent whose rows somebody forgets


def each(kinds):
    return pytest.mark.parametrize("kind", kinds.values(), ids=lambda kind: kind.__name__)


class TestWhatIsFound:
    @each(solvers())
    def test_solvers(self, kind):
        check_solver(kind())

    @each(learners())
    def test_learners(self, kind):
        check_learner(kind())

    @each(column_solvers())
    def test_column_solvers(self, kind):
        check_column_solver(kind())

    @each(smooth_solvers())
    def test_smooth_solvers(self, kind):
        check_smooth_solver(kind())


# What goes wrong with answers, hosted agents x numbers, and with what is reported
# -----------------------------------


def mixed_up(b):
    return np.roll(b, 1, axis=0) if len(b) > 1 else b + 1.0


def one_off(b):
    b = b.copy()
    b[-1] *= 1.05
    return b


ANSWERS = {
    "agents mixed up": mixed_up,
    "an offset": lambda b: b + 0.1,
    "half as large": lambda b: 0.5 * b,
    "one agent a little off": one_off,
    "nothing learned": np.zeros_like,
}


@dataclass(frozen=True)
class Wrong:
    """Something that does what it should, but for one fault."""

    right: Any
    fault: str

    def __getattr__(self, name):
        return getattr(self.right, name)

    def answer(self, b):
        return ANSWERS[self.fault](b) if self.fault in ANSWERS else b

    def alpha(self, alpha):
        return {"ten times the penalty": 10 * alpha, "the penalty of one agent": alpha / 5}.get(
            self.fault, alpha
        )

    def report(self, network, report):
        if self.fault == "more sent than reported":
            network.mix(np.zeros((len(network.hosted), 1)))
        return replace(report, converged=False) if self.fault == "not converged" else report


def refused(check, right, fault, kind=Wrong):
    with pytest.raises(AssertionError) as error:
        check(kind(right, fault))
    assert len(str(error.value)) > 20, "with a sentence"


# Solvers of the readout
# ----------------------------------------------------------------------------------------------


class WrongSolver(Wrong):
    def solve(self, network, problems, penalty):
        problems = self.problems(network, problems)
        solution = self.right.solve(network, problems, Ridge(self.alpha(penalty.alpha)))
        b = self.answer(solution.coefficients)
        return replace(solution, coefficients=b, report=self.report(network, solution.report))

    def problems(self, network, problems):
        if self.fault != "an agent forgotten":
            return problems
        problems = deepcopy(problems)
        for group in problems.groups:
            for i, k in enumerate(group.agents.tolist()):
                if network.hosted[k] == FORGOTTEN:
                    for part in (
                        (group.G, group.HY) if isinstance(group, Tall) else (group.H, group.Y)
                    ):
                        part[i] = 0.0
        return problems


PENALTIES = ["ten times the penalty", "the penalty of one agent"]
REPORTS = ["more sent than reported", "not converged"]


FAULTS = [*ANSWERS, *PENALTIES, *REPORTS, "an agent forgotten"]


def faulty_solvers():
    for name, kind in solvers().items():
        for fault in FAULTS:
            if (
                name != "consensus" or fault != "one agent a little off"
            ):  # which only promises to be near
                yield pytest.param(kind, fault, id=f"{kind.__name__}-{fault}")


@pytest.mark.parametrize(("kind", "fault"), list(faulty_solvers()))
def test_a_wrong_solver_is_noticed(kind, fault):
    refused(check_solver, kind(), fault, WrongSolver)


# Learners
# ------------------------------------------------------------------------------------------------------------


class WrongLearner(Wrong):
    def start(self, network, shape, alpha):
        return self.right.start(network, shape, self.alpha(alpha))

    def learn(self, network, state, chunks, alpha):
        if self.fault == "an agent forgotten":
            chunks = [self.without(network, chunk) for chunk in chunks]
        if self.fault == "a row forgotten":
            chunks = [
                replace(chunk, Y=chunk.Y * (np.arange(chunk.Y.shape[1]) > 0)[:, None])
                for chunk in chunks
            ]
        state = self.right.learn(network, state, chunks, self.alpha(alpha))
        return state | {"b": self.answer(state["b"])}

    def without(self, network, chunk):
        others = np.array([network.hosted[k] != FORGOTTEN for k in chunk.agents], dtype=bool)
        return replace(
            chunk,
            agents=chunk.agents[others],
            rows=chunk.rows[others],
            H=chunk.H[others],
            Y=chunk.Y[others],
        )


@pytest.mark.parametrize(
    "fault",
    [
        "an offset",
        "half as large",
        "nothing learned",
        *PENALTIES,
        "an agent forgotten",
        "a row forgotten",
    ],
)
@each(learners())
def test_a_wrong_learner_is_noticed(kind, fault):
    if kind.__name__ == "DiffusionLMS" and fault in PENALTIES:
        check_learner(WrongLearner(kind(), fault))  # it has no penalty
    else:
        refused(check_learner, kind(), fault, WrongLearner)


# Solvers over columns
# ------------------------------------------------------------------------------------------------


class WrongColumnSolver(Wrong):
    def solve_columns(self, network, blocks, Y, alpha):
        if self.fault == "a row forgotten":
            Y = Y * (np.arange(len(Y)) > 0)[:, None]
        solution = self.right.solve_columns(network, blocks, Y, self.alpha(alpha))
        b = [self.answer(own) for own in solution.coefficients]
        if self.fault == "an agent forgotten":
            b = [own * (agent != 0) for agent, own in zip(network.hosted, b, strict=True)]
        return replace(solution, coefficients=b, report=self.report(network, solution.report))


@pytest.mark.parametrize(
    "fault", [*ANSWERS, *PENALTIES, *REPORTS, "an agent forgotten", "a row forgotten"]
)
@each(column_solvers())
def test_a_wrong_column_solver_is_noticed(kind, fault):
    refused(check_column_solver, kind(), fault, WrongColumnSolver)


# Solvers of smooth problems
# ------------------------------------------------------------------------------------------


class WrongSmoothSolver(Wrong):
    def minimise(self, network, losses, alpha, start=None):
        if self.fault == "an agent forgotten":
            rows = [z * (agent != 0) for agent, z in zip(network.hosted, losses.rows, strict=True)]
            losses = MarginLosses(rows, losses.convex)
        if self.fault == "a row forgotten":
            losses = MarginLosses(
                [z * (np.arange(len(z)) > 0)[:, None] for z in losses.rows], losses.convex
            )
        minimum = self.right.minimise(network, losses, self.alpha(alpha), start)
        w = self.answer(minimum.coefficients)
        return replace(minimum, coefficients=w, report=self.report(network, minimum.report))


@pytest.mark.parametrize(
    "fault", ["an offset", "half as large", "one agent a little off", "nothing learned", *PENALTIES, *REPORTS,
              "an agent forgotten", "a row forgotten"]
)  # fmt: skip
@each(smooth_solvers())
def test_a_wrong_smooth_solver_is_noticed(kind, fault):
    refused(check_smooth_solver, kind(), fault, WrongSmoothSolver)
