"""Facts of a data set that are needed before the first run: task, rows, smallest class."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerlearn import data
from peerlearn.data import DataSet
from peerlearn.data.dataset import AnyArray, Task
from peerlearn.errors import DataError, InputError
from peerlearn.lab.description.comparison import Data
from peerlearn.lab.description.memo import Asked, key_of
from peerlearn.toml_reader import near

Rows = NDArray[np.intp]
SERIES = {
    each.__name__: each
    for each in (data.narma10, data.extended_polynomial, data.mackey_glass, data.lorenz)
}
SIGNALS = {"wiener": data.wiener}
TABLES = {"hospital_tables": data.hospital_tables}  # one table per site
GENERATORS: Mapping[str, Any] = {**SERIES, **SIGNALS, **TABLES}  # by names in peerlearn.data
COMPLETE = "complete"  # the option of files: columns without gaps
KEPT = 4  # data sets in memory at a time


@dataclass(frozen=True)
class Facts:
    """Task and sizes of a data set."""

    task: Task
    rows: int  # sequences, of series; 0: as many as there are agents, of signals
    columns: int
    rarest: int  # rows of the smallest class; 0: no classes
    classes: int = 0
    counted: bool = False  # classes are whole numbers, which may be amounts after all
    sites: tuple[int, ...] = ()  # rows of each site


def source_of(entry: Data) -> str:
    return entry.source or entry.name


def facts_of(entry: Data) -> Facts:
    """Return the facts of a data set, loaded or counted once per process."""
    source = source_of(entry)
    if entry.given is None and source in {**SERIES, **SIGNALS}:
        return Facts("regression", options_of(entry).get("sequences", 0), 1, 0)
    if entry.given is not None:
        return _count_facts(entry.given, entry.site)
    if source not in GENERATORS and {*entry.options} - {COMPLETE}:
        raise InputError(
            f"{source} is no generator, and only those take options: leave them out, or give as "
            f"source one of {', '.join(sorted(GENERATORS))}"
        )
    return _load_facts(Asked(key_of(source, entry.options, entry.task, entry.site), entry))


def read_rows(entry: Data, seed: int = 0) -> DataSet:
    """Return the rows of a data set as found; a generated one follows from the seed."""
    if entry.given is not None:
        return entry.given
    source = source_of(entry)
    if source in TABLES:
        if not entry.prepare:
            raise DataError(
                f"{source} has texts and gaps: give it columns = {{}}, or prepare it by "
                "peerlearn.TablePreparer"
            )
        options = {**options_of(entry), "seed": seed}
        return as_task(_draw_tables(Asked(key_of(source, options), (source, options))), entry.task)
    table = as_task(_load(source, seed, bool(entry.prepare)), entry.task)
    if COMPLETE not in entry.options:
        return table
    return pick_rows(table, _complete_rows(table, entry.options[COMPLETE]), entry)


def pick_rows(table: DataSet, rows: Rows, entry: Data) -> DataSet:
    """Return some rows of a table, with their sites and times."""
    used = [key for key in (entry.site, entry.time) if key in table.extras]
    extras = {key: table.extras[key][rows] for key in used if key is not None}
    return replace(table, X=table.X[rows], y=table.y[rows], extras=extras)


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
def _load_facts(asked: Asked[Data]) -> Facts:
    entry = asked.about
    return _count_facts(read_rows(entry), entry.site)


@lru_cache(maxsize=KEPT)
def _load(name: str, seed: int, gaps: bool) -> DataSet:
    return data.load(name, seed=seed, scaled=False, gaps=gaps)


@lru_cache(maxsize=KEPT)
def _draw_tables(asked: Asked[tuple[str, dict[str, Any]]]) -> DataSet:
    """Return the tables of all sites as one, with the number of each row's site."""
    source, options = asked.about
    tables = TABLES[source](**options)
    X = np.concatenate([rows for rows, _ in tables])
    y = np.concatenate([targets for _, targets in tables])
    site = np.repeat(np.arange(len(tables)), [len(targets) for _, targets in tables])
    return DataSet(source, X, y, "classification", "generated", None, {"site": site})


def _complete_rows(table: DataSet, columns: Sequence[str]) -> Rows:
    """Return the rows without gaps in these columns."""
    names = table.extras.get("columns", np.array([])).tolist()
    for each in columns:
        if each not in names:
            raise InputError(f"{table.name} has no column {each!r}{near(each, names)}")
    gaps = np.isnan(table.X[:, [names.index(each) for each in columns]])
    return np.flatnonzero(~gaps.any(axis=1))


def _count_facts(table: DataSet, site: str | None) -> Facts:
    N, columns = table.X.shape
    sites: tuple[int, ...] = ()
    if site is not None:
        sites = tuple(np.unique(get_extra(table, site, "site"), return_counts=True)[1].tolist())
    if table.task == "regression":
        return Facts(table.task, N, columns, 0, sites=sites)
    rows = np.unique(table.y, return_counts=True)[1]
    whole = table.y.dtype.kind in "iu"
    return Facts(table.task, N, columns, int(rows.min()), len(rows), whole, sites)


def get_extra(table: DataSet, name: str, what: str) -> AnyArray:
    """Return the site or time of each row."""
    found = table.extras.get(name)
    if found is None or found.shape != (len(table.y),):
        known = [key for key, each in table.extras.items() if each.shape == (len(table.y),)]
        raise InputError(
            f"{what} is {name!r}, but {table.name} has no such array with an entry per row"
            f"{near(name, known)}"
        )
    return found
