"""The checks of peerlearn.testing: all algorithms pass them, and none with a fault does."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from peerlearn import LMSFilter, SplineFilter
from peerlearn.algorithms.columns import column_solvers
from peerlearn.algorithms.completion import COMPLETION
from peerlearn.algorithms.distances import DISTANCES
from peerlearn.algorithms.readout.auto import solvers
from peerlearn.algorithms.smooth import smooth_solvers
from peerlearn.algorithms.streaming.learner import learners
from peerlearn.local.least_squares import Tall
from peerlearn.local.penalties import Ridge
from peerlearn.network.base import Counts
from peerlearn.testing import (
    check_column_solver,
    check_completion,
    check_distances,
    check_filter,
    check_learner,
    check_smooth_solver,
    check_solver,
)
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
    "fault",
    [
        "an offset",
        "half as large",
        "one agent a little off",
        "nothing learned",
        *PENALTIES,
        *REPORTS,
        "an agent forgotten",
        "a row forgotten",
    ],
)
@each(smooth_solvers())
def test_a_wrong_smooth_solver_is_noticed(kind, fault):
    refused(check_smooth_solver, kind(), fault, WrongSmoothSolver)


# Distances


class WrongDistances(Wrong):
    def share(self, network, patterns, seed):
        if self.fault == "other columns":
            patterns = [X * [1.0, 1.0, 1.01] for X in patterns]
        if self.fault == "a row forgotten":
            patterns = [np.vstack([np.zeros((1, X.shape[1])), X[1:]]) for X in patterns]
        known = self.right.share(network, patterns, seed)
        if self.fault == "roots":
            return replace(known, D=[np.sqrt(D) for D in known.D])
        if self.fault == "own rows only":
            return self.own(network, known)
        if self.fault == "an agent forgotten":
            return self.without(known)
        if self.fault == "looks across agents":
            return replace(known, D=[sum(known.D) / network.size for _ in known.D], mask=None)
        if self.fault == "more sent than counted":
            network.mix(np.zeros((len(network.hosted), 1)))
            network.ledger.count(rounds=-1, messages=-1, bytes=0)
        return known

    def masks(self, known):
        return known.mask or [np.ones_like(D, dtype=bool) for D in known.D]

    def own(self, network, known):
        kept = []
        for agent, mask in zip(network.hosted, self.masks(known), strict=True):
            own = np.eye(len(mask), dtype=bool)
            own[known.places.of(agent), known.places.of(agent)] = True
            kept.append(mask & own)
        return self.masked(known, kept)

    def without(self, known):
        rows = known.places.of(FORGOTTEN)
        kept = [mask.copy() for mask in self.masks(known)]
        for mask in kept:
            mask[rows] = mask[:, rows] = False
            np.fill_diagonal(mask, True)
        return self.masked(known, kept)

    def masked(self, known, masks):
        return replace(known, D=[D * m for D, m in zip(known.D, masks, strict=True)], mask=masks)


@each(DISTANCES.kinds())
def test_distances(kind):
    check_distances(kind())


@pytest.mark.parametrize(
    "fault",
    [
        "other columns",
        "a row forgotten",
        "roots",
        "own rows only",
        "an agent forgotten",
        "looks across agents",
        "more sent than counted",
    ],
)
@each(DISTANCES.kinds())
def test_wrong_distances_are_noticed(kind, fault):
    refused(check_distances, kind(), fault, WrongDistances)


# Completion


class WrongCompletion(Wrong):
    def complete(self, network, known, seed, truth=None):
        if known.mask is None and self.fault != "known ones changed":
            return self.right.complete(network, known, seed, truth)
        if self.fault == "known ones misread":
            known = replace(known, D=[np.sqrt(D) for D in known.D])
        completed = self.right.complete(network, known, seed, truth)
        D = [
            self.damage(own, agent) for agent, own in zip(network.hosted, completed.D, strict=True)
        ]
        if self.fault == "looks across agents":
            D = [sum(completed.D) / network.size for _ in completed.D]
        return replace(completed, D=D, report=self.report(network, completed.report))

    def damage(self, D, agent):
        off_diagonal = 1 - np.eye(len(D))
        if self.fault == "half as large":
            return D / 2
        if self.fault == "an offset":
            return D + 0.1 * D.max() * off_diagonal
        if self.fault == "not symmetric":
            return D * np.where(np.triu(np.ones_like(D)) > 0, 1.0, 1 + 1e-6)
        if self.fault == "one agent a little off":
            return D * 1.05 if agent == FORGOTTEN else D
        if self.fault == "another unit":
            return D * (1.1 if D.max() > 50 else 1.0)
        if self.fault == "known ones changed":
            return D * (1 + 1e-6)
        if self.fault == "nothing completed":
            return np.zeros_like(D)
        return D


@each(COMPLETION.kinds())
def test_completions(kind):
    check_completion(kind())


@pytest.mark.parametrize(
    "fault",
    [
        *REPORTS,
        "known ones misread",
        "looks across agents",
        "half as large",
        "an offset",
        "not symmetric",
        "one agent a little off",
        "another unit",
        "known ones changed",
        "nothing completed",
    ],
)
@each(COMPLETION.kinds())
def test_a_wrong_completion_is_noticed(kind, fault):
    refused(check_completion, kind(), fault, WrongCompletion)


# Filters


class HearsHalf:
    def _advance(self, now, x, d, truth):
        return super()._advance(now, x, 0.5 * d, truth)


class ForgetsAnAgent:
    def _advance(self, now, x, d, truth):
        heard = np.array([agent != 0 for agent in now.network.hosted])[:, None]
        return super()._advance(now, x * heard, d * heard - 0.5 * ~heard, truth)


class HearsOneSampleLate:
    def _advance(self, now, x, d, truth):
        late = np.hstack([np.zeros((len(x), 1)), x[:, :-1]])
        return super()._advance(now, late, d, truth)


class ListensAlone:
    def _cooperation(self):
        return replace(super()._cooperation(), when="none")


class CooperatesAlone:
    def _cooperation(self):
        return replace(super()._cooperation(), when="adapt-then-combine")


class LooksAcrossAgents:
    def _advance(self, now, x, d, truth):
        state, record = super()._advance(now, x, d, truth)
        if now.how.when == "none":
            return state, record
        mean = state["theta"].sum(axis=0) / now.network.size
        return state | {"theta": np.tile(mean, (len(state["theta"]), 1))}, record


class SaysNothingWasSent:
    def run(self, x, d, truth=None):
        return replace(super().run(x, d, truth), sent=Counts())


FILTER_FAULTS = {
    HearsHalf: "off the system",
    ForgetsAnAgent: "off the system",
    HearsOneSampleLate: "off the system",
    ListensAlone: "which hears silence, is",
    CooperatesAlone: "messages with",
    LooksAcrossAgents: "samples one by one give outputs",
    SaysNothingWasSent: "but the ledger has",
}


@pytest.mark.parametrize("update", ["lms", "nlms", "rls"])
@pytest.mark.parametrize("kind", [LMSFilter, SplineFilter])
def test_filters(kind, update):
    check_filter(kind(3, update=update))


@pytest.mark.parametrize("fault", FILTER_FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("kind", [LMSFilter, SplineFilter])
def test_a_wrong_filter_is_noticed(kind, fault):
    wrong = type(f"Wrong{kind.__name__}", (fault, kind), {"__init__": kind.__init__})
    with pytest.raises(AssertionError, match=FILTER_FAULTS[fault]):
        check_filter(wrong)
