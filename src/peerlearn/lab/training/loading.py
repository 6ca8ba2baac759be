"""The rows of a run: loaded once per process, split into folds, scaled by training rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from peerlearn import data
from peerlearn.arrays import Array
from peerlearn.data import DataSet, Scaling
from peerlearn.data.dataset import AnyArray, Task
from peerlearn.errors import DataError
from peerlearn.lab.description.comparison import Data, Scale
from peerlearn.lab.description.data_facts import pick_rows, read_rows
from peerlearn.lab.description.memo import Asked, key_of
from peerlearn.lab.description.trial import Trial
from peerlearn.lab.training.estimators import SEEDED, import_class, make_estimator, parameters_of
from peerlearn.lab.training.global_seed import seed_globally
from peerlearn.lab.training.splitting import split_table

FOLDS_KEPT = 2  # prepared folds in memory: runs of one fold come one after another
RANGES: Mapping[Scale, tuple[float, float]] = {"unit": (0.0, 1.0), "signed": (-1.0, 1.0)}


@dataclass(frozen=True, eq=False)
class Fold:
    """Training and test rows, the same for every model and network."""

    task: Task
    X: Array
    y: AnyArray
    X_test: Array
    y_test: AnyArray
    sites: AnyArray | None = None  # of the training rows


def fold_of(trial: Trial) -> Fold:
    """Return the trial's training and test rows, prepared; the last ones are kept."""
    return _fold(Asked(fold_key(trial), trial))


def fold_key(trial: Trial) -> str:
    """Return a text that training and test rows follow from: equal keys, equal rows."""
    whole = trial.comparison
    rows_alone = replace(trial.data, settings={}, swept={})
    drawn = (whole.seed, whole.protocol, whole.folds, whole.test_fraction, whole.split)
    outer = None if trial.within is None else fold_key(trial.within)
    return key_of(*drawn, rows_alone, trial.repetition, trial.fold, outer)


@lru_cache(maxsize=FOLDS_KEPT)
def _fold(asked: Asked[Trial]) -> Fold:
    trial = asked.about
    table = table_of(trial)
    train, test = split_table(trial, table)
    y = table.y[train]
    with seed_globally(
        trial.seed("model")
    ):  # rows that are kept leave the generator as rows made anew do
        X, X_test = prepare(
            trial.data, table.X[train], table.X[test], y=y, seed=trial.seed("model")
        )
    sites = pick_rows(table, train, trial.data).extras.get(trial.data.site or "")
    return Fold(table.task, X, y, X_test, table.y[test], sites)


def table_of(trial: Trial) -> DataSet:
    """Return the data set as found, not scaled; a generated one is the same in all repetitions.

    Of a run within another, these are the other's training rows.
    """
    if trial.within is not None:
        table = table_of(trial.within)
        return pick_rows(table, split_table(trial.within, table)[0], trial.data)
    return read_rows(trial.data, trial.seed("data"))


def prepare(
    entry: Data, X: Array, *others: Array, y: AnyArray | None = None, seed: int = 0
) -> tuple[Array, ...]:
    """Return training rows X and other rows, scaled and transformed.

    Scaling and transformers are fitted to X, and to y of the same rows.
    """
    tables = (X, *others)
    scale = scale_of(entry, X)
    if scale == "standard":
        tables = _through(StandardScaler(), tables, y)
    elif scale in RANGES:
        scaling = Scaling.of(X, RANGES[scale])
        tables = tuple(scaling.apply(table) for table in tables)
    for settings in entry.prepare:
        kind = import_class(settings["kind"])
        seeded = {SEEDED: seed} if SEEDED in parameters_of(kind) else {}
        given = {key: value for key, value in settings.items() if key != "kind"}
        try:
            tables = _through(make_estimator(kind, seeded | given), tables, y)
        except ValueError as error:
            why = " ".join(str(error).split())
            raise DataError(
                f"{settings['kind']} in prepare of {entry.name} cannot take its {len(X)} training "
                f"rows: {why}"
            ) from error
    return tables


def scale_of(entry: Data, X: Array) -> Scale:
    """Return how columns are scaled.

    as loaded: to the range that the set is known by; a given set stays as it is, and so does one
    with gaps.
    """
    if entry.scale != "as loaded":
        return entry.scale
    if entry.prepare and (X.dtype == object or np.isnan(X).any()):
        return "none"
    known = None if entry.given is not None else data.known_range(entry.source or entry.name, X)
    return next((scale for scale, range_ in RANGES.items() if range_ == known), "none")


def _through(transformer: Any, tables: tuple[Array, ...], y: AnyArray | None) -> tuple[Array, ...]:
    transformer.fit(tables[0], y)
    return tuple(np.asarray(transformer.transform(table), dtype=np.float64) for table in tables)
