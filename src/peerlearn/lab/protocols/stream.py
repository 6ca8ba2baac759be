"""Streams: training rows come in chunks, and models are tested on the way (thesis, chapter 5).

    network        each chunk is one partial_fit; row i of the stream is that of agent i mod L
    centralised    one model gets the same chunks
    alone          every agent has a copy of the model, which gets the agent's rows of each chunk

A model without partial_fit is fitted once, to all rows that have come.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from peerlearn.arrays import Array, is_whole
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import DataError, InputError
from peerlearn.lab.description import metrics
from peerlearn.lab.description.comparison import Data, Model
from peerlearn.lab.description.data_facts import facts_of
from peerlearn.lab.description.trial import Curve, Outcome, Trial
from peerlearn.lab.training.estimators import estimator_of, find_objection, kind_of, what_it_takes
from peerlearn.lab.training.loading import Fold, fold_of
from peerlearn.lab.training.networks import network_of
from peerlearn.lab.training.outcomes import (
    MEASURES,
    Trained,
    centralised_distances,
    evaluate,
    fit_alone,
    outcome_of,
    time_fit,
)
from peerlearn.lab.training.search import best_settings


@dataclass(frozen=True)
class Stream:
    """Training rows that come in chunks.

    chunk: rows of the whole network per chunk. repeat: how often the training rows come; test rows
    never do.

    every: test after every so many chunks, and after the last. The rounds of the first chunk are
    also those in which
    agents agree on their settings; rounds per chunk leave it out.
    """

    name: ClassVar = "stream"
    searches: ClassVar = True
    measures: ClassVar[Mapping[str, str]] = {
        **MEASURES,
        "chunk_rounds": "rounds per chunk, the first left out",
        "most_rounds": "rounds of the chunk that took most, the first left out",
        "rounds_kept": "rounds of chunks in the last quarter, relative to the first",
    }
    curves: ClassVar[Mapping[str, str]] = {
        **{metric.name: f"{metric.words} by chunk" for metric in metrics.METRICS.values()},
        "rounds": "rounds by chunk",
    }

    chunk: int = 20
    repeat: int = 1
    every: int = 1

    def __post_init__(self) -> None:
        for key, what in {
            "chunk": "rows per chunk",
            "repeat": "passes",
            "every": "chunks between tests",
        }.items():
            if not is_whole(getattr(self, key)) or getattr(self, key) < 1:
                raise InputError(
                    f"{key} is {getattr(self, key)!r}: give the number of {what}, 1 or more"
                )

    def refuses(self, data: Data, model: Model) -> str:
        kind = kind_of(model, facts_of(data).task)
        if what_it_takes(kind) == "columns":
            return "learns columns, and rows come in chunks"
        why = find_objection(data, model)
        if not why and model.where == "network" and not hasattr(kind, "partial_fit"):
            return "learns all rows at once, and they come in chunks"
        return why

    def run(self, trial: Trial) -> Outcome:
        fold = self._arriving(trial)
        best = best_settings(trial)
        where = trial.model.where
        agents = (
            trial.network.agents if trial.network and where == "alone" else 1
        )  # who have a model each
        if len(fold.y) < agents:
            raise DataError(
                f"{len(fold.y)} training rows of {trial.data.name} cannot be dealt to {agents} "
                f"agents, one each at "
                "least: use fewer agents"
            )
        network = network_of(trial) if where == "network" else None
        models = [estimator_of(trial, network, **best) for _ in range(agents)]
        if not hasattr(models[0], "partial_fit"):
            return outcome_of(trial, fold, _at_once(models, fold), best)
        listeners = _Listeners(models, fold, trial.comparison.metrics)
        for n, start in enumerate(range(0, len(fold.y), self.chunk), start=1):
            stop = min(start + self.chunk, len(fold.y))
            listeners.learn(start, stop)
            if (
                n % self.every == 0 or stop == len(fold.y)
            ) and stop >= agents:  # before, some have learned nothing
                listeners.test(n)
        away = [] if network is None else centralised_distances(trial, fold, models[0])
        outcome = outcome_of(trial, fold, listeners.evaluate(away), best)
        if network is None:
            return replace(outcome, curves=listeners.curves)
        rounds = np.diff(np.array(listeners.rounds, dtype=np.float64), prepend=0.0)
        chunks = np.arange(1.0, len(rounds) + 1)
        curves = {**listeners.curves, "rounds": (chunks.tolist(), rounds.tolist())}
        return replace(outcome, values={**outcome.values, **_per_chunk(rounds)}, curves=curves)

    def _arriving(self, trial: Trial) -> Fold:
        """Return the training rows in the order in which they come."""
        fold = fold_of(trial)
        order = np.random.default_rng(trial.seed("deal")).permutation(
            np.tile(np.arange(len(fold.y)), self.repeat)
        )
        return replace(fold, X=fold.X[order], y=fold.y[order])


class _Listeners:
    """Models that take turns at the rows of a stream, with their times and tests."""

    def __init__(self, models: Sequence[Any], fold: Fold, asked: Sequence[str]) -> None:
        self.models = models
        self.fold = fold
        self.asked = asked
        classes = np.unique(np.concatenate([fold.y, fold.y_test]))
        self.given = {"classes": classes} if fold.task == "classification" else {}
        self.seconds = 0.0
        self.rounds: list[int] = []  # in all, after each chunk
        self.at: list[float] = []  # chunks after which there was a test
        self.tested: dict[str, list[float]] = {}

    def learn(self, start: int, stop: int) -> None:
        """Learn one more chunk of rows; of several models, each gets the rows of its turn."""
        X = self.fold.X
        y = self.fold.y
        several = len(self.models)
        began = time.perf_counter()
        for k, model in enumerate(self.models):
            own = slice(start + (k - start) % several, stop, several)
            if own.start < stop:
                model.partial_fit(X[own], y[own], **self.given)
        self.seconds += time.perf_counter() - began
        self.rounds.append(
            self.models[0].report_.sent.rounds if hasattr(self.models[0], "report_") else 0
        )

    def test(self, chunks: int) -> None:
        fold = self.fold
        self.predictions: AnyArray = np.vstack(
            [evaluate(each, fold.X_test, 0.0).predictions for each in self.models]
        )
        self.at.append(float(chunks))
        for name, value in metrics.measure(self.asked, fold.task, fold.y_test, self.predictions)[
            0
        ].items():
            self.tested.setdefault(name, []).append(value)

    def evaluate(self, distances: Sequence[float]) -> Trained:
        if len(self.models) > 1:
            return Trained(self.seconds, self.predictions)
        return evaluate(self.models[0], self.fold.X_test, self.seconds, distances)

    @property
    def curves(self) -> dict[str, Curve]:
        return {name: (self.at, values) for name, values in self.tested.items()}


def _per_chunk(rounds: Array) -> dict[str, float]:
    """Return the rounds per chunk, without the first chunk if there are others."""
    later = rounds[1:] if len(rounds) > 1 else rounds
    quarter = -(-len(later) // 4)
    kept = metrics.relative(float(later[-quarter:].mean()), float(later[:quarter].mean()))
    return {
        "chunk_rounds": float(later.mean()),
        "most_rounds": float(later.max()),
        "rounds_kept": kept,
    }


def _at_once(models: Sequence[Any], fold: Fold) -> Trained:
    """Fit to all rows that have come, in one place or by each agent to its own."""
    if len(models) == 1:
        seconds = time_fit(models[0], fold.X, fold.y)
        return evaluate(models[0], fold.X_test, seconds)
    shares = [(fold.X[k :: len(models)], fold.y[k :: len(models)]) for k in range(len(models))]
    return fit_alone(models[0], shares, fold)
