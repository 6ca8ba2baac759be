"""Few labels: most training rows have none, and test rows are new (chapters 7 and 8).

network        labelled rows are dealt evenly, the others too, and agents train together
centralised    all training rows in one place
alone          every agent trains a copy of the model on its own share

Models that cannot learn from rows without a label, such as rivals of scikit-learn's, are given the
others alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from peerlearn import partition
from peerlearn.arrays import Array, Indices
from peerlearn.errors import DataError
from peerlearn.lab.description.comparison import Data, Model
from peerlearn.lab.description.trial import Outcome, Trial
from peerlearn.lab.training.estimators import estimator_of, find_objection
from peerlearn.lab.training.labelling import UNKNOWN, Labelling
from peerlearn.lab.training.loading import Fold
from peerlearn.lab.training.networks import network_of
from peerlearn.lab.training.outcomes import (
    CURVES,
    MEASURES,
    Trained,
    centralised_distances,
    evaluate,
    fit_alone,
    outcome_of,
    time_fit,
)
from peerlearn.lab.training.search import best_settings
from peerlearn.models.base import NetworkModel

LEARN_FROM_ALL = "sklearn.semi_supervised"  # whose estimators know -1 too


@dataclass(frozen=True)
class FewLabels(Labelling):
    """Training on rows of which few have a label, see Labelling."""

    name: ClassVar = "few-labels"
    searches: ClassVar = True
    measures: ClassVar[Mapping[str, str]] = MEASURES
    curves: ClassVar[Mapping[str, str]] = CURVES

    def refuses(self, data: Data, model: Model) -> str:
        why = find_objection(self.only(data), model)
        if not why:
            self.settings(data, model)
        return why

    def run(self, trial: Trial) -> Outcome:
        fold = self.fold(trial)
        best = best_settings(trial)
        settings = {**self.settings(trial.data, trial.model), **best}
        if trial.model.where == "alone":
            return outcome_of(trial, fold, _train_alone(trial, fold, settings), best)
        estimator = estimator_of(trial, network_of(trial), **settings)
        rows = usable_rows(estimator, fold.X, fold.y)
        seconds = time_fit(
            estimator, *(rows if trial.network is None else (shares_of(trial, estimator, fold),))
        )
        away = centralised_distances(trial, fold, estimator)
        return outcome_of(trial, fold, evaluate(estimator, fold.X_test, seconds, away), best)


def usable_rows(estimator: Any, X: Array, y: Indices) -> partition.Share:
    """Return all these rows, or the labelled ones if the estimator takes -1 for a class."""
    partly_labelled = isinstance(estimator, NetworkModel) and estimator.partly_labelled
    if partly_labelled or type(estimator).__module__.startswith(LEARN_FROM_ALL):
        return X, y
    return X[y != UNKNOWN], y[y != UNKNOWN]


def shares_of(trial: Trial, estimator: Any, fold: Fold) -> list[partition.Share]:
    """Deal labelled rows evenly to all agents, and the others too; the same for all models."""
    assert trial.network is not None
    rng = np.random.default_rng(trial.seed("deal"))
    dealt = partition.stratified_rows(fold.y != UNKNOWN, trial.network.agents, rng)
    return [usable_rows(estimator, fold.X[own], fold.y[own]) for own in dealt]


def _train_alone(trial: Trial, fold: Fold, settings: Mapping[str, Any]) -> Trained:
    estimator = estimator_of(trial, **settings)
    shares = shares_of(trial, estimator, fold)
    if (
        isinstance(estimator, NetworkModel) and estimator.alone
    ):  # it is told of classes that an agent has not seen
        estimator = estimator_of(trial, network_of(trial), **{**settings, **estimator.alone})
        return evaluate(estimator, fold.X_test, time_fit(estimator, shares))
    return fit_alone(
        estimator, [_rows_to_learn(trial, k, *share) for k, share in enumerate(shares)], fold
    )


def _rows_to_learn(trial: Trial, agent: int, X: Array, y: Indices) -> partition.Share:
    """Return an agent's rows, only the labelled ones if they are of one class."""
    known = y != UNKNOWN
    classes = len(np.unique(y[known]))
    if not classes:
        raise DataError(
            f"agent {agent} has no labelled row of {trial.data.name}, from which "
            f"{trial.model.name} could learn alone: "
            "label more rows, or deal them to fewer agents"
        )
    return (X, y) if classes > 1 else (X[known], y[known])
