"""Completion: how near agents come to the distances between all rows (section 7.5).

    E = |D~ - D| / |D|         D: squared distances between the rows of all agents

averaged over agents.

A model that learns from distances says how they are shared and completed; nothing is learned. After
an exchange of n rounds of patterns and n of distances, for each n asked for, agents complete what
they do not know. Seconds are those of sharing and completing. Ways to share that leave nothing to
complete, such as landmarks, are the same for every n.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from peerlearn import partition
from peerlearn.algorithms.completion import COMPLETION, Completion
from peerlearn.algorithms.distances import DISTANCES, Distances, Exchange, Known
from peerlearn.arrays import Array, is_whole
from peerlearn.errors import InputError
from peerlearn.lab.description.comparison import Data, Model
from peerlearn.lab.description.data_facts import facts_of
from peerlearn.lab.description.metrics import distances
from peerlearn.lab.description.trial import Curve, Outcome, Trial
from peerlearn.lab.training.estimators import estimator_of, kind_of, parameters_of
from peerlearn.lab.training.labelling import Count
from peerlearn.lab.training.loading import prepare, table_of
from peerlearn.lab.training.networks import network_of
from peerlearn.local.squared_distances import squared_distances
from peerlearn.network import SimulatedNetwork
from peerlearn.network.base import Counts


@dataclass(frozen=True)
class Completions:
    """Completion of distances.

    rows: how many are dealt, for all data sets or by the name of each; 0: all there are.

    rounds: of an exchange, as many for patterns as for distances; none: those that the model says.
    by_iteration:
    complete once more after the most rounds, and look at every iteration; this takes no part in the
    seconds.
    """

    name: ClassVar = "completion"
    measures: ClassVar[Mapping[str, str]] = {
        "completion_error": "error of the completed distances",
        "known": "share of the distances that agents know before",
    }
    curves: ClassVar[Mapping[str, str]] = {
        "completion_error": "error of the completed distances, by rounds of exchange",
        "known": "share of the distances that agents know before, by rounds of exchange",
        "seconds": "seconds of sharing and completing, by rounds of exchange",
        "progress": "error of the distances, by iteration of the completion",
    }

    rows: Count = 0
    rounds: tuple[int, ...] = ()
    by_iteration: bool = False

    def __post_init__(self) -> None:
        for number in self.rows.values() if isinstance(self.rows, Mapping) else [self.rows]:
            if not is_whole(number) or number < 0:
                raise InputError(f"rows is {self.rows!r}: give whole numbers, or 0 for all rows")
        whole = all(is_whole(n) and n >= 0 for n in self.rounds)
        if not whole or list(self.rounds) != sorted(set(self.rounds)):
            raise InputError(
                f"rounds is {list(self.rounds)!r}: give numbers of rounds in ascending order"
            )

    def refuses(self, data: Data, model: Model) -> str:
        if "distances" not in parameters_of(kind_of(model, facts_of(data).task)):
            return "does not learn from distances"
        if model.where != "network":
            return "knows all its distances"
        return ""

    def run(self, trial: Trial) -> Outcome:
        network = network_of(trial)
        assert network is not None
        model = estimator_of(trial, network)
        seed = trial.seed("model")
        shares = self._shares(trial, network.size)
        sharing = DISTANCES.of(model.distances)
        completion = COMPLETION.of(model.completion)
        ways = [sharing]
        if isinstance(sharing, Exchange) and self.rounds:
            ways = [replace(sharing, pattern_rounds=n, entry_rounds=n) for n in self.rounds]
        truth = squared_distances(np.vstack(shares))
        found = [_complete(network, shares, truth, way, completion, seed) for way in ways]
        last = found[-1]
        curves = self._curves(found)
        if self.by_iteration and last.known.mask is not None:
            watched = completion.complete(network, last.known, seed, truth).errors.mean(axis=1)
            curves["progress"] = ([float(n) for n in range(len(watched))], watched.tolist())
        return Outcome(
            last.seconds,
            values={"completion_error": last.error, "known": last.share},
            agents={"completion_error": last.errors},
            curves=curves,
            sent=last.sent,
            converged=last.converged,
            iterations=last.iterations,
        )

    def _shares(self, trial: Trial, agents: int) -> list[Array]:
        """Deal rows at random, scaled by themselves, evenly to all agents."""
        X = table_of(trial).X
        rng = np.random.default_rng(trial.seed("split"))
        wanted = self.rows.get(trial.data.name, 0) if isinstance(self.rows, Mapping) else self.rows
        if wanted > len(X):
            raise InputError(
                f"rows asks for {wanted} of {trial.data.name}, which has {len(X)}: ask for fewer"
            )
        (X,) = prepare(
            trial.data, X[rng.permutation(len(X))[: wanted or None]], seed=trial.seed("model")
        )
        return [own for own, _ in partition.even(X, X, agents, seed=trial.seed("deal"))]

    def _curves(self, found: list[_Found]) -> dict[str, Curve]:
        at = [float(n) for n in self.rounds]
        each = found if len(found) == len(at) else found * len(at)
        values = {
            "completion_error": [one.error for one in each],
            "known": [one.share for one in each],
            "seconds": [one.seconds for one in each],
        }
        return {name: (at, own) for name, own in values.items()} if at else {}


@dataclass(frozen=True)
class _Found:
    """The result of one exchange, or of what took its place."""

    known: Known
    errors: list[float]  # of each agent
    seconds: float
    sent: Counts
    converged: bool
    iterations: int

    @property
    def error(self) -> float:
        return float(np.mean(self.errors))

    @property
    def share(self) -> float:
        return (
            float(np.mean([mask.mean() for mask in self.known.mask]))
            if self.known.mask is not None
            else 1.0
        )


def _complete(
    network: SimulatedNetwork,
    shares: list[Array],
    truth: Array,
    sharing: Distances,
    completion: Completion,
    seed: int,
) -> _Found:
    mark = network.ledger.mark()
    start = time.perf_counter()
    known = sharing.share(network, shares, seed)
    converged = True
    iterations = 0
    D = known.D
    if known.mask is not None:
        completed = completion.complete(network, known, seed)
        D = completed.D
        converged = completed.report.converged
        iterations = completed.report.iterations
    seconds = time.perf_counter() - start
    return _Found(
        known,
        distances(np.stack(D), truth),
        seconds,
        network.ledger.since(mark),
        converged,
        iterations,
    )
