"""Columns: each agent has some columns of every row, and all know the targets (thesis, chapter 6).

network        columns are dealt, and agents train and predict together
centralised    all columns in one place
alone          every agent trains a copy of the model, of any estimator, on its own columns
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone

from peerlearn import graphs, partition
from peerlearn.algorithms.columns import DualConjugateGradient
from peerlearn.arrays import Array, is_whole
from peerlearn.errors import InputError
from peerlearn.lab.description import metrics
from peerlearn.lab.description.comparison import Data, Model
from peerlearn.lab.description.data_facts import facts_of
from peerlearn.lab.description.memo import Asked, key_of
from peerlearn.lab.description.trial import Outcome, Trial
from peerlearn.lab.training.estimators import estimator_of, find_objection, kind_of, what_it_takes
from peerlearn.lab.training.loading import Fold, fold_key, fold_of
from peerlearn.lab.training.networks import network_of
from peerlearn.lab.training.outcomes import (
    CURVES,
    MEASURES,
    compute_centre,
    evaluate,
    fit_alone,
    outcome_of,
    time_fit,
)
from peerlearn.lab.training.search import best_settings
from peerlearn.network import SimulatedNetwork

UNITS = ("each", "together")
EXACT = DualConjugateGradient(tolerance=1e-8)


@dataclass(frozen=True)
class Columns:
    """Columns dealt to agents.

    units: whether n_hidden counts the hidden units of each agent, or of all together. Together,
    each has its part of them, rounded up, so that one number serves networks of any size.
    """

    name: ClassVar = "columns"
    searches: ClassVar = True
    measures: ClassVar[Mapping[str, str]] = MEASURES
    curves: ClassVar[Mapping[str, str]] = CURVES

    units: Literal["each", "together"] = "each"

    def __post_init__(self) -> None:
        if self.units not in UNITS:
            raise InputError(f"units is {self.units!r}: choose one of {', '.join(UNITS)}")

    def refuses(self, data: Data, model: Model) -> str:
        kind = kind_of(model, facts_of(data).task)
        if model.where == "network" and what_it_takes(kind) != "columns":
            return "learns rows, and columns are dealt"
        return find_objection(data, model)

    def run(self, trial: Trial) -> Outcome:
        fold = fold_of(trial)
        best = best_settings(trial)
        estimator = estimator_of(
            trial, network_of(trial) if trial.model.where == "network" else None, **best
        )
        if trial.network is None:
            return outcome_of(
                trial,
                fold,
                evaluate(estimator, fold.X_test, time_fit(estimator, fold.X, fold.y)),
                best,
            )
        blocks = partition.column_blocks(
            fold.X.shape[1], trial.network.agents, seed=trial.seed("deal")
        )
        tables = [fold.X[:, own] for own in blocks]
        tests = [fold.X_test[:, own] for own in blocks]
        self._divide(estimator, len(blocks))
        if trial.model.where == "alone":
            found = fit_alone(estimator, [(own, fold.y) for own in tables], fold, tests)
        else:
            seconds = time_fit(estimator, tables, fold.y)
            found = evaluate(estimator, tests, seconds, _distance(trial, fold, tables, estimator))
        return outcome_of(trial, fold, found, best)

    def _divide(self, estimator: Any, agents: int) -> None:
        """Leave the estimator the hidden units of one agent."""
        units: Any = getattr(estimator, "n_hidden", None)
        if self.units == "together" and is_whole(units):
            estimator.set_params(n_hidden=-(-units // agents))


def _distance(trial: Trial, fold: Fold, tables: list[Array], estimator: Any) -> list[float]:
    """Return how far all coefficients together are from the exact ones, if that is asked."""
    if "distance" not in trial.comparison.metrics:
        return []
    everybody = SimulatedNetwork(
        graphs.complete(len(tables))
    )  # the problem is the same on any graph
    exact = clone(estimator).set_params(solver=EXACT, network=everybody)
    key = key_of(fold_key(trial), exact)
    b = compute_centre(Asked(key, lambda: np.concatenate(exact.fit(tables, fold.y).coefficients_)))
    return metrics.distances(np.concatenate(estimator.coefficients_)[None], b)
