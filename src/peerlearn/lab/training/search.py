"""Grid search inside the training rows: every candidate is trained and tested on folds of them.

One model may search for all (thesis, section 4.3.2: the centralised one), or each for itself; in
one place, or over the network. A candidate is run as any other model is, by the protocol of the
comparison. Of equally good candidates the first is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from peerlearn.errors import InputError
from peerlearn.lab.description.comparison import Data, Model
from peerlearn.lab.description.data_facts import facts_of
from peerlearn.lab.description.memo import Asked, key_of
from peerlearn.lab.description.metrics import METRICS, USUAL, Metric
from peerlearn.lab.description.search import Search
from peerlearn.lab.description.sweeps import with_key
from peerlearn.lab.description.trial import Trial
from peerlearn.lab.training.estimators import kind_of, settings_of, takes
from peerlearn.lab.training.global_seed import seed_globally
from peerlearn.lab.training.loading import fold_key

FOUND_KEPT = 4096


def best_settings(trial: Trial) -> dict[str, Any]:
    """Return the best of the grid that the model has, for this run's training rows.

    Without a search there is none.
    """
    search = trial.comparison.search
    if search is None:
        return {}
    searching = _searching_trial(trial, search)
    if not keys_of(search, searching.data, searching.model):
        return {}
    key = key_of(fold_key(trial), trial.data.settings, search, searching.model, searching.network)
    own = keys_of(search, trial.data, trial.model)
    return {key: value for key, value in _search_grid(Asked(key, searching)).items() if key in own}


def keys_of(search: Search, data: Data, model: Model) -> list[str]:
    """Return the keys of the grid that a model has."""
    kind = kind_of(model, facts_of(data).task)
    settings = settings_of(data, model, kind)
    return [key for key in search.grid if takes(model, kind, settings, key)]


def _searching_trial(trial: Trial, search: Search) -> Trial:
    """Return the run of the model that searches.

    It is in one place, unless the search and both models are over the network.
    """
    model = _searching_model(trial, search)
    together = (
        search.where == "network" and model.where != "centralised" and trial.network is not None
    )
    model = model if together else replace(model, where="centralised")
    return replace(
        trial, model=replace(model, swept={}), network=trial.network if together else None
    )


def _searching_model(trial: Trial, search: Search) -> Model:
    if not search.model:
        return trial.model
    return next(model for model in trial.comparison.models if model.name == search.model)


@lru_cache(maxsize=FOUND_KEPT)
def _search_grid(asked: Asked[Trial]) -> dict[str, Any]:
    trial = asked.about
    search = trial.comparison.search
    assert search is not None
    task = facts_of(trial.data).task
    metric = METRICS[search.metric or USUAL[task][0]]
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
    # Whether the search was done here or before must not change what is drawn afterwards.
    with seed_globally(run.seed("model")):
        outcome = alone.protocol.run(run)
    if metric.name not in outcome.values:
        raise InputError(
            f"the search goes by {metric.name}, and {trial.model.name} has none: {outcome.note}"
        )
    return outcome.values[metric.name]
