"""Training and test rows of a fold, the same for every model and network.

rows                  held out at random, by class
within-sites          the same within each site, so that every site has training rows
leave-one-site-out    fold k tests on all rows of site k, and trains on those of the others
time                  test rows are the latest; with several folds, those of fold k come before
                      those of fold k + 1, and all rows before them are trained on

The inner folds of a search lie within sites if the outer ones leave a site out.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from peerlearn.data import DataSet
from peerlearn.data.dataset import AnyArray
from peerlearn.lab.description.comparison import Comparison
from peerlearn.lab.description.trial import Trial

Rows = NDArray[np.intp]


def split_table(trial: Trial, table: DataSet) -> tuple[Rows, Rows]:
    """Return training and test rows of the trial's fold, as the comparison splits tables."""
    whole = trial.comparison
    by_class = table.task == "classification"
    how = whole.split
    if how == "auto":
        how = "within-sites" if trial.data.site else "rows"
    if how == "rows":
        return split(trial, table.y, stratify=by_class)
    if how == "time":
        assert trial.data.time is not None
        return _split_by_time(whole, table.extras[trial.data.time], trial.fold)
    assert trial.data.site is not None
    sites = table.extras[trial.data.site]
    if how == "leave-one-site-out" and trial.within is None:
        own = sites == np.unique(sites)[trial.fold]
        return np.flatnonzero(~own), np.flatnonzero(own)
    return _split_within(trial, sites, table.y, stratify=by_class)


def split(trial: Trial, y: AnyArray, *, stratify: bool) -> tuple[Rows, Rows]:
    """Return training and test rows at random; stratify: every class evenly."""
    return _draw(trial.comparison, y, trial.seed("split"), trial.fold, stratify=stratify)


def _draw(
    whole: Comparison, y: AnyArray, seed: int, fold: int, *, stratify: bool
) -> tuple[Rows, Rows]:
    if whole.folds == 1:
        kind = StratifiedShuffleSplit if stratify else ShuffleSplit
        splitter = kind(1, test_size=whole.test_fraction, random_state=seed)
    else:
        splitter = (StratifiedKFold if stratify else KFold)(
            whole.folds, shuffle=True, random_state=seed
        )
    train, test = list(splitter.split(np.zeros(len(y)), y))[fold]
    return train, test


def _split_within(
    trial: Trial, sites: AnyArray, y: AnyArray, *, stratify: bool
) -> tuple[Rows, Rows]:
    """Return rows at random within each site, by class where every class has rows enough."""
    fewest = max(2, trial.comparison.folds)
    parts = []
    for k, site in enumerate(np.unique(sites)):
        rows = np.flatnonzero(sites == site)
        counts = np.unique(y[rows], return_counts=True)[1] if stratify else np.zeros(1)
        by_class = len(counts) > 1 and counts.min() >= fewest
        seed = trial.seed("split") + k
        train, test = _draw(trial.comparison, y[rows], seed, trial.fold, stratify=by_class)
        parts.append((rows[train], rows[test]))
    return np.concatenate([each[0] for each in parts]), np.concatenate([each[1] for each in parts])


def _split_by_time(whole: Comparison, times: AnyArray, fold: int) -> tuple[Rows, Rows]:
    order = np.argsort(times, kind="stable")
    if whole.folds == 1:
        tested = ceil(len(order) * whole.test_fraction)
        return order[:-tested], order[-tested:]
    train, test = list(TimeSeriesSplit(whole.folds).split(order))[fold]
    return order[train], order[test]
