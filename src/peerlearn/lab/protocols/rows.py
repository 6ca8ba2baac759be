"""Rows: each agent has some of the rows; test rows are new to all (thesis, chapters 4 and 8).

network        training rows are dealt, and agents train together
centralised    all training rows in one place
alone          every agent trains a copy of the model, which may be any estimator, on its own share
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from peerlearn import partition
from peerlearn.errors import DataError, InputError
from peerlearn.lab.description.comparison import Data, Model
from peerlearn.lab.description.data_facts import facts_of
from peerlearn.lab.description.trial import Outcome, Trial
from peerlearn.lab.training.estimators import estimator_of, find_objection, kind_of, what_it_takes
from peerlearn.lab.training.loading import Fold, fold_of
from peerlearn.lab.training.networks import network_of
from peerlearn.lab.training.outcomes import (
    CURVES,
    MEASURES,
    centralised_distances,
    evaluate,
    fit_alone,
    outcome_of,
    time_fit,
)
from peerlearn.lab.training.search import best_settings

CONCENTRATION = 0.5
DEALS = ("auto", "even", "stratified", "dirichlet", "site")


@dataclass(frozen=True)
class Rows:
    """Rows dealt to agents.

    deal: how training rows become shares; auto: every class evenly, or rows where targets are
    measured; site: each agent has the rows of one site.
    """

    name: ClassVar = "rows"
    searches: ClassVar = True
    measures: ClassVar[Mapping[str, str]] = MEASURES
    curves: ClassVar[Mapping[str, str]] = CURVES

    deal: Literal["auto", "even", "stratified", "dirichlet", "site"] = "auto"
    concentration: float = (
        CONCENTRATION  # of dirichlet: the smaller, the fewer classes an agent has
    )

    def __post_init__(self) -> None:
        if self.deal not in DEALS:
            raise InputError(f"deal is {self.deal!r}: choose one of {', '.join(DEALS)}")
        if not 0 < self.concentration < float("inf"):
            raise InputError(
                f"concentration is {self.concentration!r}: give a number above 0, such as 0.5"
            )
        if self.concentration != CONCENTRATION and self.deal != "dirichlet":
            raise InputError(
                f"concentration is for deal = 'dirichlet', and deal is {self.deal!r}: leave out "
                f"one of them"
            )

    def refuses(self, data: Data, model: Model) -> str:
        task = facts_of(data).task
        if what_it_takes(kind_of(model, task)) == "columns":
            return "learns columns, and rows are dealt"
        if (
            task == "regression"
            and self.deal in ("stratified", "dirichlet")
            and model.where != "centralised"
        ):
            return "rows are dealt by class, and the targets are measured"
        return find_objection(data, model)

    def run(self, trial: Trial) -> Outcome:
        fold = fold_of(trial)
        best = best_settings(trial)
        if trial.model.where == "alone":
            found = fit_alone(estimator_of(trial, **best), self._shares(trial, fold), fold)
            return outcome_of(trial, fold, found, best)
        estimator = estimator_of(trial, network_of(trial), **best)
        seconds = time_fit(
            estimator,
            *((fold.X, fold.y) if trial.network is None else (self._shares(trial, fold),)),
        )
        away = centralised_distances(trial, fold, estimator)
        return outcome_of(trial, fold, evaluate(estimator, fold.X_test, seconds, away), best)

    def _shares(self, trial: Trial, fold: Fold) -> list[partition.Share]:
        assert trial.network is not None
        how = self.deal
        agents = trial.network.agents
        if how == "site":
            return _shares_of_sites(fold, agents)
        seed = trial.seed("deal")
        if how == "dirichlet":
            concentration = trial.network.concentration or self.concentration
            return partition.dirichlet(
                fold.X, fold.y, agents, concentration=concentration, seed=seed
            )
        by_class = how == "stratified" or (how == "auto" and fold.task == "classification")
        return (partition.stratified if by_class else partition.even)(
            fold.X, fold.y, agents, seed=seed
        )


def _shares_of_sites(fold: Fold, agents: int) -> list[partition.Share]:
    assert fold.sites is not None
    sites = np.unique(fold.sites)
    if len(sites) != agents:
        raise DataError(
            f"training rows are of {len(sites)} sites, and there are {agents} agents, one per "
            "site: hold out fewer rows, or give another split"
        )
    return [(fold.X[fold.sites == site], fold.y[fold.sites == site]) for site in sites]
