"""Facts of a data set that are needed before the first run: task, rows, smallest class."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from peerlearn import data
from peerlearn.data import DataSet
from peerlearn.data.dataset import Task
from peerlearn.errors import DataError, InputError
from peerlearn.lab.description.comparison import Data
from peerlearn.toml_reader import near

SERIES = {
    each.__name__: each
    for each in (data.narma10, data.extended_polynomial, data.mackey_glass, data.lorenz)
}
SIGNALS = {"wiener": data.wiener}
GENERATORS: Mapping[str, Any] = {**SERIES, **SIGNALS}  # by their names in peerlearn.data


@dataclass(frozen=True)
class Facts:
    """Task and sizes of a data set."""

    task: Task
    rows: int  # sequences, of series; 0: as many as there are agents, of signals
    columns: int
    rarest: int  # rows of the smallest class; 0: no classes
    classes: int = 0
    counted: bool = False  # classes are whole numbers, which may be amounts after all


def source_of(entry: Data) -> str:
    return entry.source or entry.name


def facts_of(entry: Data) -> Facts:
    """Return the facts of a data set, loaded or counted once per process."""
    if entry.given is not None:
        return _count_facts(entry.given)
    source = source_of(entry)
    if source in GENERATORS:
        return Facts("regression", options_of(entry).get("sequences", 0), 1, 0)
    if entry.options:
        raise InputError(
            f"{source} is no generator, and only those take options: leave them out, or give as "
            f"source one of "
            f"{', '.join(sorted(GENERATORS))}"
        )
    return _load_facts(source, entry.task)


def as_task(table: DataSet, task: Task | None) -> DataSet:
    """Return the same rows with targets as classes or as numbers, whatever was guessed."""
    if task is None or task == table.task:
        return table
    y = table.y
    if task == "regression" and y.dtype.kind not in "fiub":
        raise DataError(
            f"the targets of {table.name} are texts, and regression needs numbers: leave out task"
        )
    if task == "classification" and (y.ndim > 1 or not np.array_equal(y, np.round(y))):
        raise DataError(
            f"the targets of {table.name} are measured, and classes are whole numbers: leave out "
            f"task"
        )
    y = y.astype(np.int64) if task == "classification" else y.astype(np.float64)
    return replace(table, y=y, task=task)


def options_of(entry: Data) -> dict[str, Any]:
    """Return the options of a generator, its defaults among them."""
    takes = inspect.signature(GENERATORS[source_of(entry)]).parameters
    defaults = {name: each.default for name, each in takes.items() if name != "seed"}
    for key in entry.options:
        if key not in defaults:
            raise InputError(f"{key} is not an option of {source_of(entry)}{near(key, defaults)}")
    return {**defaults, **entry.options}


@lru_cache(maxsize=256)
def _load_facts(name: str, task: Task | None) -> Facts:
    return _count_facts(as_task(data.load(name, scaled=False), task))


def _count_facts(table: DataSet) -> Facts:
    N, columns = table.X.shape
    if table.task == "regression":
        return Facts(table.task, N, columns, 0)
    rows = np.unique(table.y, return_counts=True)[1]
    return Facts(table.task, N, columns, int(rows.min()), len(rows), table.y.dtype.kind in "iu")
