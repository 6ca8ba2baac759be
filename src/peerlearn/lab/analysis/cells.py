"""Cells: the runs that share what a table or a figure sets side by side.

A run that knows nothing of a column belongs to all its values: who is centralised is so for any
number of agents, and
who has no max_iterations is compared with those who have, at each of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from peerlearn.arrays import Array
from peerlearn.lab.description.specs import Conditions
from peerlearn.lab.results.results import Results, deviation

Row = Mapping[str, Any]
SENT = ("rounds", "messages", "bytes")
Place = tuple[Any, ...]  # a value per column; None: of all values
MIDDLE = (10, 90)  # percentiles of the runs, between which a band is on a logarithmic axis


def percentiles(values: Array) -> Array:
    """Return the ends of that band, over the first axis."""
    with np.errstate(invalid="ignore"):  # infinite ones
        return np.asarray(np.percentile(values, MIDDLE, axis=0))


@dataclass(frozen=True)
class Cell:
    """The runs of one place."""

    values: tuple[float, ...] = ()  # of those that were done and measured this
    failed: int = 0
    refused: int = 0  # not applicable
    splits: int = 0  # of data sets into folds, in all repetitions, that were done

    @property
    def lost(self) -> int:
        """The number of runs whose value is infinite or not a number."""
        return sum(not math.isfinite(value) for value in self.values)

    @property
    def runs(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        with np.errstate(
            invalid="ignore", over="ignore"
        ):  # infinite ones of both signs, or nearly so
            return float(np.mean(self.values)) if self.values else math.nan

    @property
    def spread(self) -> float:
        """The standard deviation over runs; NaN of a single run, or around an infinite mean."""
        if len(self.values) < 2 or self.lost:
            return math.nan
        with np.errstate(over="ignore"):
            found = deviation(np.array(self.values))
        return found if math.isfinite(found) else math.nan

    def band(self, log: bool) -> tuple[float, float]:
        """Return the ends of the band around the mean; both are the mean of a single run.

        The mean less its standard deviation may be negative, which a logarithmic axis cannot show.
        There the band is made of percentiles of the runs.
        """
        if len(self.values) < 2:
            return self.mean, self.mean
        if log:
            low, high = percentiles(np.array(self.values))
            return float(low), float(high)
        return self.mean - self.spread, self.mean + self.spread

    @property
    def status(self) -> str:
        """done, failed, not applicable, not measured, or not run."""
        if self.values:
            return "done"
        if self.failed or self.refused:
            return "failed" if self.failed else "not applicable"
        return "not measured" if self.splits else "not run"


def known_value(row: Row, column: str) -> Any:
    """Return the value of a run in a column, or None if it has none.

    A run with all rows in one place has no agents.
    """
    if column in ("network", "agents") and not row["network"]:
        return None
    return row.get(column)


def number(row: Row, metric: str) -> float | None:
    """Return what a run measured, of a curve its last point.

    A run without a network sends nothing.
    """
    value = row.get(metric) if row["network"] or metric not in SENT else None
    if isinstance(value, list | tuple | np.ndarray):
        value = value[-1] if len(value) else None
    return None if value is None else float(value)


def select_rows(results: Results, where: Conditions) -> list[Row]:
    """Return the rows that meet the conditions; a list of values means any of them."""
    return [row for row in results.rows if _meets(row, where)]


def _meets(row: Row, where: Conditions) -> bool:
    return all(_fits(known_value(row, key), value) for key, value in where.items())


def rows_of_task(rows: Sequence[Row], metric: str) -> list[Row]:
    """Return the rows of data sets whose task has this metric."""
    done = [row for row in rows if row["status"] == "done"]
    having = {row["data"] for row in done if number(row, metric) is not None}
    without = {row["data"] for row in done} - having
    return [row for row in rows if row["data"] not in without]


def _fits(value: Any, wanted: Any) -> bool:
    if value is None:
        return True
    if isinstance(wanted, list | tuple):
        return value in wanted
    return bool(value == wanted)


@dataclass(frozen=True)
class Cells:
    """The rows of a comparison by their values in some columns."""

    results: Results
    metric: str
    columns: tuple[str, ...]
    rows: Sequence[Row]

    @classmethod
    def of(
        cls, results: Results, metric: str, columns: Sequence[str], where: Conditions | None = None
    ) -> Cells:
        return cls(results, metric, tuple(columns), select_rows(results, where or {}))

    @cached_property
    def groups(self) -> dict[Place, list[Row]]:
        found: dict[Place, list[Row]] = {}
        for row in self.rows:
            place = tuple(known_value(row, column) for column in self.columns)
            found.setdefault(place, []).append(row)
        return found

    def at(self, place: Place) -> Cell:
        rows = self.rows_at(place)
        if self.metric in SENT:  # runs without a network have nobody to send to
            rows = [row for row in rows if row["network"]]
        done = [row for row in rows if row["status"] == "done"]
        values = (number(row, self.metric) for row in done)
        splits = {(row["data"], row["repetition"], row["fold"]) for row in done}
        return Cell(
            tuple(value for value in values if value is not None),
            sum(row["status"] == "failed" for row in rows),
            sum(row["status"] == "not applicable" for row in rows),
            len(splits),
        )

    def rows_at(self, place: Place) -> list[Row]:
        found = list(self.groups.get(place, ()))
        for own, rows in self._wide.items():
            if own != place and _covers(own, place):
                found += rows
        return found

    @cached_property
    def _wide(self) -> dict[Place, list[Row]]:
        """The groups that belong to more than one place."""
        return {place: rows for place, rows in self.groups.items() if None in place}

    def places(self, columns: Sequence[str]) -> list[Place]:
        """Return the combinations of these columns that occur, in the file's order.

        A column that is the same for all others is left out.
        """
        at = [self.columns.index(column) for column in columns]
        found = list(dict.fromkeys(tuple(place[k] for k in at) for place in self.groups))
        narrow = [each for each in found if None not in each or not _covers_some(each, found)]

        def rank(place: Place) -> tuple[Any, ...]:
            return tuple(map(self._rank, columns, place))

        return sorted(narrow, key=rank)

    def values(self, column: str) -> list[Any]:
        return [place[0] for place in self.places([column])]

    def mixed(self) -> dict[str, list[Any]]:
        """Return the other columns that differ within a cell, with the values a mean runs over."""
        others = [column for column in self.results.order if column not in self.columns]
        found = {}
        for column in others:
            if any(len(_known_values(rows, column)) > 1 for rows in self.groups.values()):
                values = _known_values(self.rows, column)
                found[column] = sorted(values, key=partial(self._rank, column))
        return found

    def _rank(self, column: str, value: Any) -> tuple[int, Any]:
        order = list(self.results.order.get(column, ()))
        if value in order:
            return (0, order.index(value))
        return (1, value) if isinstance(value, int | float) else (2, str(value))


def _known_values(rows: Sequence[Row], column: str) -> set[Any]:
    return {known_value(row, column) for row in rows} - {None}


def _covers_some(wide: Place, places: Sequence[Place]) -> bool:
    return any(wide != other and _covers(wide, other) for other in places)


def _covers(wide: Place, narrow: Place) -> bool:
    """Return whether a place covers another; None stands for all values."""
    return all(own is None or own == other for own, other in zip(wide, narrow, strict=True))
