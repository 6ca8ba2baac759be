"""Averaging alone: how many rounds agents need to agree, and how near the average they come.

Readouts are found by every agent alone, from its share of the training rows, and then averaged as
the model's solver says: { name = "consensus", averaging = { method = .., tolerance = .., stopping =
.. } } (thesis, sections 4.4.2 and 5.3). Rounds, messages and bytes are those of the average, and of
nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Literal

import numpy as np

from peerlearn.algorithms import Averaging, Local, average, iterates
from peerlearn.algorithms.averaging import Method
from peerlearn.algorithms.readout.auto import READOUT
from peerlearn.algorithms.readout.consensus import Consensus
from peerlearn.arrays import Array, is_whole
from peerlearn.errors import InputError
from peerlearn.lab.description import metrics
from peerlearn.lab.description.comparison import Data, Model
from peerlearn.lab.description.data_facts import facts_of
from peerlearn.lab.description.trial import Outcome, Trial
from peerlearn.lab.training.estimators import estimator_of, find_objection, kind_of, make_estimator
from peerlearn.lab.training.loading import fold_of
from peerlearn.lab.training.networks import network_of
from peerlearn.network import Network, SimulatedNetwork


@dataclass(frozen=True)
class Averages:
    """Averaging of what each agent has found alone.

    start: what agents begin with, their readouts, or standard normal numbers in place of them.

    rows: training rows of the whole network, drawn at random; 0: all of them. watched: rounds of
    the curve.
    """

    name: ClassVar = "averaging"
    measures: ClassVar[Mapping[str, str]] = {
        "left": "distance of the agents from the true average at the end, relative to the start",
        "off": (
            "distance of the worst agent from the true average at the end, relative to its length"
        ),
    }
    curves: ClassVar[Mapping[str, str]] = {
        "disagreement": "disagreement by round, relative to the start"
    }

    start: Literal["readouts", "random"] = "readouts"
    rows: int = 0
    watched: int = 100

    def __post_init__(self) -> None:
        if self.start not in ("readouts", "random"):
            raise InputError(f"start is {self.start!r}: choose readouts or random")
        for key, what in {
            "rows": "training rows, or 0 for all",
            "watched": "rounds, or 0 for no curve",
        }.items():
            if not is_whole(getattr(self, key)) or getattr(self, key) < 0:
                raise InputError(f"{key} is {getattr(self, key)!r}: give the number of {what}")

    def refuses(self, data: Data, model: Model) -> str:
        if model.where != "network":
            return "has nobody to agree with"
        kind = kind_of(model, facts_of(data).task)
        given = model.estimator or make_estimator(kind, model.settings)
        if not hasattr(given, "solver") or not isinstance(_solver(given), Consensus):
            return "does not average readouts: solver = 'consensus' does"
        return find_objection(data, model)

    def run(self, trial: Trial) -> Outcome:
        network = network_of(trial)
        assert network is not None
        averaging = Averaging.of(_solver(estimator_of(trial, network)).averaging)
        x = self._start(trial, network)
        truth = x.mean(axis=0)
        mark = network.ledger.mark()
        began = time.perf_counter()
        now = averaging.average(network, x)
        seconds = time.perf_counter() - began
        sent = network.ledger.since(mark)
        left = metrics.relative(
            float(np.linalg.norm(now - truth)), float(np.linalg.norm(x - truth))
        )
        curve = list(
            islice(disagreements(network, x, averaging.method_on(network)), self.watched + 1)
        )
        return Outcome(
            seconds,
            values={"left": left, "off": max(metrics.distances(now, truth))},
            curves={"disagreement": ([float(n) for n in range(len(curve))], curve)}
            if self.watched
            else {},
            sent=sent,
            converged=left <= averaging.tolerance,
        )

    def _start(self, trial: Trial, network: SimulatedNetwork) -> Array:
        fold = fold_of(trial)
        rng = np.random.default_rng(trial.seed("deal"))
        chosen = rng.permutation(len(fold.y))[: self.rows or None]
        local = estimator_of(trial, network, solver=Local()).fit(fold.X[chosen], fold.y[chosen])
        readouts: Array = local.coefficients_
        return readouts if self.start == "readouts" else rng.standard_normal(readouts.shape)


def disagreements(network: Network, x: Array, method: Method) -> Iterator[float]:
    """Yield the distance of agents to the average of x, before the first round and after each.

    Before the first round it is 1.

    As somebody sees it who can look at all agents at once. A tree is at its end when all have
    heard; others have none.
    """
    truth = x.mean(axis=0)
    apart = float(np.linalg.norm(x - truth))
    yield metrics.relative(apart, apart)
    if method != "tree":
        for now in iterates(network, x, method):
            yield metrics.relative(float(np.linalg.norm(now - truth)), apart)
    tree = network.tree
    exact = average(network, x, method="tree")
    for n in range(1, 2 * tree.height + 1):
        # The sum is at the root after `height` rounds; until it has come back down, an agent has
        # only its own x.
        heard = (tree.depth <= n - tree.height).reshape(-1, *(1,) * (x.ndim - 1))
        yield metrics.relative(float(np.linalg.norm(np.where(heard, exact, x) - truth)), apart)


def _solver(estimator: Any) -> Any:
    return READOUT.of(estimator.solver)
