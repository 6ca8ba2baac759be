"""Rows given as objects, DataSet or (X, y): checked, and in the form that runs need."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np

from peerlearn.data import DataSet
from peerlearn.data.dataset import AnyArray, Task, targets
from peerlearn.data.folder import guess_task
from peerlearn.errors import DataError
from peerlearn.lab.description.comparison import Data
from peerlearn.lab.description.data_facts import as_task


def convert_rows(entry: Data) -> Data:
    """Return the entry with its rows as arrays; the same object if they are already."""
    if entry.task not in (None, *get_args(Task)):
        raise DataError(f"task is {entry.task!r}: give classification or regression")
    given: Any = entry.given
    if given is None:
        return entry
    if isinstance(given, tuple) and len(given) == 2:
        y = _targets(given[1])
        given = DataSet(entry.name, given[0], y, guess_task(y.dtype.kind), "given", None)
    if not isinstance(given, DataSet):
        raise DataError(f"it is a {type(given).__name__}: give a DataSet, or a pair (X, y)")
    raw = np.asarray(given.X).dtype.kind == "O" and bool(entry.prepare)
    if raw and entry.scale not in ("as loaded", "none"):
        raise DataError(
            f"scale is {entry.scale!r}, but X has cells that are no numbers until prepare has "
            "seen them: leave scale out, and scale in prepare"
        )
    table = _check_table(as_task(_arrays(given, raw=raw), entry.task))
    return entry if table is entry.given else replace(entry, given=table)


def _arrays(given: DataSet, *, raw: bool = False) -> DataSet:
    """Return rows as numbers, and targets. raw: cells may be anything, because of prepare."""
    if given.task not in get_args(Task):
        raise DataError(f"its task is {given.task!r}: give classification or regression")
    try:
        X = np.asarray(given.X, dtype=object if raw else np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"X is not all numbers ({error}): encode it as numbers, or prepare it by "
            "peerlearn.TablePreparer"
        ) from None
    y = _targets(given.y)
    if given.task == "regression" and y.dtype.kind not in "fiub":
        raise DataError(
            f"y has type {y.dtype}, and regression needs numbers: make them so, or the task "
            f"classification"
        )
    y = targets(y, given.task)
    same = (
        X is given.X and y.dtype == getattr(given.y, "dtype", None) and y.shape == np.shape(given.y)
    )
    return given if same and isinstance(given.y, np.ndarray) else replace(given, X=X, y=y)


def _targets(y: Any) -> AnyArray:
    """Return targets as an array with an entry per row, texts of pandas as texts of numpy."""
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.dtype == object:
        if any(each is None or each != each for each in array.flat):
            raise DataError("y has missing values: fill them in, or drop those rows")
        array = (
            array.astype(str)
            if any(isinstance(each, str) for each in array.flat)
            else np.array(array.tolist())
        )
    return array


def _check_table(table: DataSet) -> DataSet:
    X = table.X
    y = table.y
    if X.ndim != 2 or 0 in X.shape:
        raise DataError(f"X has shape {X.shape}: give rows by columns, one of each at least")
    if y.ndim == 0 or len(y) != len(X):
        raise DataError(f"X has {len(X)} rows, and y has shape {y.shape}: give one target per row")
    if y.ndim > 2 or (y.ndim == 2 and table.task == "classification"):
        raise DataError(
            f"y has shape {y.shape}, and {table.task} needs ({len(X)},): give one target per row"
        )
    for what, values in (("X", X), ("y", y)):
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            row = int(np.argwhere(~np.isfinite(values))[0][0])
            raise DataError(
                f"{what} has missing or infinite values, the first in row {row}: fill them in, or "
                f"drop it"
            )
    if (
        table.task == "classification"
        and y.dtype.kind == "f"
        and not np.array_equal(y, np.round(y))
    ):
        raise DataError(
            "y is measured, and classes are whole numbers or texts: give the task regression"
        )
    return table
