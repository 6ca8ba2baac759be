"""Settings by grid search inside the training rows: every candidate is trained and tested on folds of these alone, be
they rows, sequences, or rows with a label.

One model may search for all (thesis, section 4.3.2: the centralised one), or each for itself; in
one place, or over the network. A candidate is run as any other model is, by the protocol of the
comparison; the first of equals is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import Any, Literal

import numpy as np

from peerlearn.arrays import is_whole
from peerlearn.errors import InputError
from peerlearn.experiments.lab.comparison import Data, Model
from peerlearn.experiments.lab.facts import facts_of
from peerlearn.experiments.lab.metrics import METRICS, USUAL, Metric
from peerlearn.experiments.lab.sweeps import with_key
from peerlearn.experiments.lab.training.drawing import drawing_from
from peerlearn.experiments.lab.training.kept import Asked, key_of
from peerlearn.experiments.lab.training.loading import fold_key
from peerlearn.experiments.lab.training.making import kind_of, settings_of, takes
from peerlearn.experiments.lab.trial import Trial
from peerlearn.toml_reader import near

FOUND_KEPT = 4096


@dataclass(frozen=True)
class Search:
    """grid: values to try, by setting; all combinations. metric: one of predictions; empty: the task's usual one."""

    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    folds: int = 3
    metric: str = ""
    model: str = ""  # whose settings serve all models; empty: each searches for itself
    where: Literal["centralised", "network"] = "centralised"

    def __post_init__(self) -> None:
        if not self.grid:
            raise InputError(
                "a search needs a grid: give a list of values for one setting at least"
            )
        for key, values in self.grid.items():
            if not isinstance(values, list | tuple) or not values:
                raise InputError(f"grid.{key} is {values!r}: give a list of values to try")
            if twice := [value for k, value in enumerate(values) if value in values[:k]]:
                raise InputError(f"grid.{key} has {twice[0]!r:.80} twice: give each value once")
        if not is_whole(self.folds) or self.folds < 2:
            raise InputError(
                f"folds of the search is {self.folds!r}: give a whole number, 2 or more"
            )
        if self.metric and self.metric not in METRICS:
            raise InputError(f"metric of the search is {self.metric!r}{near(self.metric, METRICS)}")
        if self.where not in ("centralised", "network"):
            raise InputError(
                f"where of the search is {self.where!r}: choose centralised or network"
            )

    def candidates(self, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
        """All combinations of the values of these keys, in the order of the grid."""
        for chosen in product(*(self.grid[key] for key in keys)):
            yield dict(zip(keys, chosen, strict=True))

    def metric_of(self, trial: Trial) -> Metric:
        task = facts_of(trial.data).task
        metric = METRICS[self.metric or USUAL[task][0]]
        if metric.task != task:
            raise InputError(
                f"the search goes by {metric.name}, which data set {trial.data.name} does not have: leave the metric "
                f"out, which means {USUAL[task][0]} there"
            )
        return metric


def best_settings(trial: Trial) -> dict[str, Any]:
    """The best of the grid for this run's training rows, as far as its model has such settings; empty: no search."""
    search = trial.comparison.search
    if search is None:
        return {}
    searching = _searching(trial, search)
    if not keys_of(search, searching.data, searching.model):
        return {}
    key = key_of(fold_key(trial), trial.data.settings, search, searching.model, searching.network)
    own = keys_of(search, trial.data, trial.model)
    return {key: value for key, value in _found(Asked(key, searching)).items() if key in own}


def keys_of(search: Search, data: Data, model: Model) -> list[str]:
    """The keys of the grid that a model has."""
    kind = kind_of(model, facts_of(data).task)
    settings = settings_of(data, model, kind)
    return [key for key in search.grid if takes(model, kind, settings, key)]


def _searching(trial: Trial, search: Search) -> Trial:
    """The run of the model that searches: in one place, unless the search and both models are over the network."""
    model = _model_of(trial, search)
    together = (
        search.where == "network" and model.where != "centralised" and trial.network is not None
    )
    model = model if together else replace(model, where="centralised")
    return replace(
        trial, model=replace(model, swept={}), network=trial.network if together else None
    )


def _model_of(trial: Trial, search: Search) -> Model:
    if not search.model:
        return trial.model
    for model in trial.comparison.models:
        if model.name == search.model:
            return model
    names = {model.name for model in trial.comparison.models}
    raise InputError(
        f"the search is to be done by {search.model!r}, which is no model{near(search.model, names)}"
    )


@lru_cache(maxsize=FOUND_KEPT)
def _found(asked: Asked[Trial]) -> dict[str, Any]:
    trial = asked.about
    search = trial.comparison.search
    assert search is not None
    metric = search.metric_of(trial)
    candidates = list(search.candidates(keys_of(search, trial.data, trial.model)))
    scores = [
        [_score(trial, one, metric, fold) for one in candidates] for fold in range(search.folds)
    ]
    losses = np.mean(scores, axis=0) * (-1 if metric.larger_is_better else 1)
    return candidates[int(np.argmin(np.where(np.isnan(losses), np.inf, losses)))]


def _score(trial: Trial, candidate: Mapping[str, Any], metric: Metric, fold: int) -> float:
    settings = settings_of(trial.data, trial.model, kind_of(trial.model, facts_of(trial.data).task))
    for key, value in candidate.items():
        settings = with_key(settings, key, value)
    assert trial.comparison.search is not None
    folds = trial.comparison.search.folds
    alone = replace(trial.comparison, folds=folds, search=None, metrics=(metric.name,))
    run = replace(
        trial,
        comparison=alone,
        model=replace(trial.model, settings=settings),
        fold=fold,
        within=trial,
    )
    with drawing_from(
        run.seed("model")
    ):  # so that nothing hangs on whether the search was done here, or before
        return alone.protocol.run(run).values[metric.name]
