"""The rows of a run: loaded once per process, split into folds, scaled by training rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from peerlearn import data
from peerlearn.arrays import Array
from peerlearn.data import DataSet, Scaling
from peerlearn.data.dataset import AnyArray, Task
from peerlearn.errors import DataError
from peerlearn.lab.description.comparison import Data, Scale
from peerlearn.lab.description.data_facts import as_task
from peerlearn.lab.description.trial import Trial
from peerlearn.lab.training.estimators import SEEDED, import_class, make_estimator, parameters_of
from peerlearn.lab.training.global_seed import seed_globally
from peerlearn.lab.training.memo import Asked, key_of

Rows = NDArray[np.intp]
KEPT = 4  # data sets in memory at a time
FOLDS_KEPT = 2  # likewise, prepared: runs of one fold come one after another
RANGES: Mapping[Scale, tuple[float, float]] = {"unit": (0.0, 1.0), "signed": (-1.0, 1.0)}


@dataclass(frozen=True, eq=False)
class Fold:
    """Training and test rows, the same for every model and network."""

    task: Task
    X: Array
    y: AnyArray
    X_test: Array
    y_test: AnyArray


def fold_of(trial: Trial) -> Fold:
    """Return the trial's training and test rows, prepared; the last ones are kept."""
    return _fold(Asked(fold_key(trial), trial))


def fold_key(trial: Trial) -> str:
    """Return a text that training and test rows follow from: equal keys, equal rows."""
    whole = trial.comparison
    rows_alone = replace(trial.data, settings={}, swept={})
    drawn = (whole.seed, whole.protocol, whole.folds, whole.test_fraction)
    outer = None if trial.within is None else fold_key(trial.within)
    return key_of(*drawn, rows_alone, trial.repetition, trial.fold, outer)


@lru_cache(maxsize=FOLDS_KEPT)
def _fold(asked: Asked[Trial]) -> Fold:
    trial = asked.about
    table = table_of(trial)
    train, test = split(trial, table.y, stratify=table.task == "classification")
    y = table.y[train]
    with seed_globally(
        trial.seed("model")
    ):  # rows that are kept leave the generator as rows made anew do
        X, X_test = prepare(
            trial.data, table.X[train], table.X[test], y=y, seed=trial.seed("model")
        )
    return Fold(table.task, X, y, X_test, table.y[test])


def table_of(trial: Trial) -> DataSet:
    """Return the data set as found, not scaled; a generated one is the same in all repetitions.

    Of a run within another, these are the other's training rows.
    """
    if trial.within is not None:
        table = table_of(trial.within)
        train, _ = split(trial.within, table.y, stratify=table.task == "classification")
        return replace(table, X=table.X[train], y=table.y[train])
    if trial.data.given is not None:
        return trial.data.given
    return as_task(_load(trial.data.source or trial.data.name, trial.seed("data")), trial.data.task)


@lru_cache(maxsize=KEPT)
def _load(name: str, seed: int) -> DataSet:
    return data.load(name, seed=seed, scaled=False)


def split(trial: Trial, y: Any, *, stratify: bool) -> tuple[Rows, Rows]:
    """Return training and test rows of the trial's fold; the same for every model and network."""
    whole = trial.comparison
    seed = trial.seed("split")
    if whole.folds == 1:
        kind = StratifiedShuffleSplit if stratify else ShuffleSplit
        splitter = kind(1, test_size=whole.test_fraction, random_state=seed)
    else:
        splitter = (StratifiedKFold if stratify else KFold)(
            whole.folds, shuffle=True, random_state=seed
        )
    train, test = list(splitter.split(np.zeros(len(y)), y))[trial.fold]
    return train, test


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

    as loaded: to the range that the set is known by; a given set stays as it is.
    """
    if entry.scale != "as loaded":
        return entry.scale
    known = None if entry.given is not None else data.known_range(entry.source or entry.name, X)
    return next((scale for scale, range_ in RANGES.items() if range_ == known), "none")


def _through(transformer: Any, tables: tuple[Array, ...], y: AnyArray | None) -> tuple[Array, ...]:
    transformer.fit(tables[0], y)
    return tuple(np.asarray(transformer.transform(table), dtype=np.float64) for table in tables)
