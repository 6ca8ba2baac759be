"""Rows of which few have a label: training rows, which of them keep a label, test rows.

    tested       rows that are held out: a fold, or so many drawn at random
    labelled     of the other rows so many, any of them or as many of each class
    unlabelled   the rest, or so many; their label is -1

Classes are called 0, 1, .. in the order of their labels: sets that call one of theirs -1 would say
that it is unknown. All is drawn from the run's seeds, so that every model and network sees the same
rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from peerlearn import data, partition
from peerlearn.arrays import Indices, is_whole
from peerlearn.data import DataSet
from peerlearn.errors import DataError, InputError
from peerlearn.lab.description.comparison import Data, Model
from peerlearn.lab.description.data_facts import facts_of, source_of
from peerlearn.lab.description.memo import Asked, key_of
from peerlearn.lab.description.sweeps import with_key
from peerlearn.lab.description.trial import Trial
from peerlearn.lab.training.estimators import configure, kind_of, parameters_of
from peerlearn.lab.training.global_seed import seed_globally
from peerlearn.lab.training.loading import FOLDS_KEPT, Fold, fold_key, prepare, table_of
from peerlearn.lab.training.splitting import split
from peerlearn.toml_reader import near

UNKNOWN = -1
LEAST = {"labelled": 2, "unlabelled": 0, "tested": 0}
Count = int | Mapping[str, int]


@dataclass(frozen=True)
class Labelling:
    """Numbers of labelled, unlabelled and tested rows, for all data sets or by name.

    0 unlabelled: all that are left; 0 tested: those that the comparison holds out.

    labels: which rows keep theirs. classes: by data set, the labels of the classes to tell apart;
    rows of others are
    left out. tuned: by data set and model, settings that a model has for that set alone.
    """

    labelled: Count = 40
    unlabelled: Count = 0
    tested: Count = 0
    labels: Literal["at random", "per class"] = "at random"
    classes: Mapping[str, Any] = field(default_factory=dict)
    tuned: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, least in LEAST.items():
            given = getattr(self, key)
            for number in given.values() if isinstance(given, Mapping) else [given]:
                if not is_whole(number) or number < least:
                    raise InputError(f"{key} is {given!r}: give whole numbers of {least} or more")
        if self.labels not in ("at random", "per class"):
            raise InputError(f"labels is {self.labels!r}: choose 'at random' or 'per class'")
        for name, kept in self.classes.items():
            if not isinstance(kept, list | tuple) or len(set(kept)) < 2:
                raise InputError(
                    f"classes.{name} is {kept!r}: give the labels of two classes or more"
                )
        for name, models in self.tuned.items():
            if not isinstance(models, Mapping) or not all(
                isinstance(each, Mapping) for each in models.values()
            ):
                raise InputError(
                    f"tuned.{name} is {models!r:.80}: give a table of settings by the name of the "
                    f"model"
                )

    def count(self, key: str, entry: Data) -> int:
        """Return how many rows of one kind are drawn from this data set."""
        given: Count = getattr(self, key)
        if not isinstance(given, Mapping):
            return given
        if LEAST[key] and entry.name not in given:
            raise InputError(
                f"{key} of the protocol says nothing of data set {entry.name}: give it a number "
                f"there"
            )
        return given.get(entry.name, 0)

    def only(self, entry: Data) -> Data:
        """Return the data set without the classes that are left out, if it has rows enough."""
        if entry.name in self.classes:
            kept = tuple(self.classes[entry.name])
            given = entry.given and of_classes(entry.given, kept)
            entry = replace(entry, given=given or _load_classes(source_of(entry), kept))
        asked = sum(self.count(key, entry) for key in LEAST)
        rows = facts_of(entry).rows
        if asked > rows:
            raise InputError(
                f"data set {entry.name} has {rows} rows, and the protocol asks for {asked}, "
                f"labelled, unlabelled and "
                "tested ones together: ask for fewer"
            )
        return entry

    def settings(self, entry: Data, model: Model) -> dict[str, Any]:
        """Return the model's settings for this data set alone, or refuse them."""
        tuned = dict(self.tuned.get(entry.name, {}).get(model.name, {}))
        kind = kind_of(model, "classification")
        settings = dict(model.settings)
        taken = parameters_of(kind)
        for key, value in tuned.items():
            if key.partition(".")[0] not in taken:
                whose = f"tuned.{entry.name}.{model.name} of the protocol"
                raise InputError(
                    f"{whose} has {key}, which is no parameter of {kind.__name__}{near(key, taken)}"
                )
            settings = with_key(settings, key, value)
        configure(model, kind, settings)
        return tuned

    def fold(self, trial: Trial) -> Fold:
        """Return training rows, most with the label -1, and test rows; the last are kept."""
        return _fold(Asked(key_of(fold_key(trial), self), (self, trial)))

    def draw_fold(self, trial: Trial) -> Fold:
        """Return a new fold."""
        if trial.within is not None:
            return _of_the_labelled(trial, self.fold(trial.within))
        table = table_of(trial)
        if trial.data.name in self.classes:
            table = of_classes(table, tuple(self.classes[trial.data.name]))
        codes = np.unique(table.y, return_inverse=True)[1]
        rng = np.random.default_rng((trial.seed("split"), trial.fold))
        tested = self.count("tested", trial.data)
        if tested:
            test, train = np.split(rng.permutation(len(codes)), [tested])
        else:
            train, test = split(trial, codes, stratify=True)
            train = rng.permutation(train)
        known = self._choose_labelled(codes[train], trial.data)
        others = np.setdiff1d(np.arange(len(train)), known)[
            : self.count("unlabelled", trial.data) or None
        ]
        rows = train[np.concatenate([known, others])]
        y = np.where(np.arange(len(rows)) < len(known), codes[rows], UNKNOWN)
        with seed_globally(
            trial.seed("model")
        ):  # as in loading: rows that are kept leave the generator as new ones do
            X, X_test = prepare(
                trial.data, table.X[rows], table.X[test], y=y, seed=trial.seed("model")
            )
        return Fold("classification", X, y, X_test, codes[test])

    def _choose_labelled(self, codes: Indices, entry: Data) -> Indices:
        """Return which training rows keep their label: the first, in their random order."""
        wanted = self.count("labelled", entry)
        classes = int(codes.max()) + 1
        if self.labels == "at random":
            parts = [np.arange(len(codes))[:wanted]]
        else:
            ends = wanted * np.arange(classes + 1) // classes
            parts = [np.flatnonzero(codes == c)[:each] for c, each in enumerate(np.diff(ends))]
        known = np.concatenate(parts)
        if len(known) < wanted:
            raise DataError(
                f"data set {entry.name} has {len(codes)} training rows, too few for {wanted} "
                f"labels drawn "
                f"{self.labels}: ask for fewer"
            )
        return known


def _of_the_labelled(trial: Trial, whole: Fold) -> Fold:
    """Return a fold of the labelled training rows of a run, for a search.

    One fold of the labelled rows is tested; the other labelled rows and those without a label are
    trained on. All stay as they were prepared, for rows without a label were there too.
    """
    known = np.flatnonzero(whole.y != UNKNOWN)
    X = whole.X
    y = whole.y
    if np.unique(y[known], return_counts=True)[1].min() < 2:
        raise DataError(
            f"a class of {trial.data.name} has one labelled row, which a search cannot both learn "
            f"and test: give more "
            "rows a label, or labels = 'per class'"
        )
    rng = np.random.default_rng(trial.seed("split"))
    held = np.sort(
        known[partition.stratified_rows(y[known], trial.comparison.folds, rng)[trial.fold]]
    )
    kept = np.setdiff1d(np.arange(len(y)), held)
    return Fold(whole.task, X[kept], y[kept], X[held], y[held])


def of_classes(table: DataSet, kept: tuple[Any, ...]) -> DataSet:
    """Return only the rows of these classes."""
    there = np.unique(table.y).tolist()
    for label in kept:
        if label not in there:
            raise DataError(
                f"data set {table.name} has no class {label!r} to be told apart: it has {there}"
            )
    own = np.isin(table.y, kept)
    return DataSet(table.name, table.X[own], table.y[own], table.task, table.source, table.scaling)


@lru_cache(maxsize=FOLDS_KEPT)
def _load_classes(source: str, kept: tuple[Any, ...]) -> DataSet:
    return of_classes(data.load(source, scaled=False), kept)


@lru_cache(maxsize=FOLDS_KEPT)
def _fold(asked: Asked[tuple[Labelling, Trial]]) -> Fold:
    labelling, trial = asked.about
    return labelling.draw_fold(trial)
