"""Data sets of the thesis that OpenML has, and how its tables become the arrays of our files.

They are found by name and version where both are known for sure, else by number. A table that is
not as expected is refused. Of the two large data sets an excerpt is kept, drawn with a fixed seed,
with which the reproductions take minutes and not days.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from peerlearn.data.dataset import AnyArray

YEARS = (1922, 2011)  # of the million songs, those that have one
THEIR_SONGS = 200_000  # songs that the thesis takes, from the first on
SONGS = 5000  # of those, songs that are kept
TRAINING = 50_000  # images to train with; the rest is for tests
IMAGES = 1000  # training images of each class that are kept
TEST_IMAGES = 200  # test images of each class that are kept

Arrays = dict[str, Any]  # by their names in the file


@dataclass(frozen=True)
class Source:
    """A data set of OpenML. `arrays` turns its table and target into the arrays of our file."""

    # Arguments of fetch_openml. Offline, it gives up sooner on a name than on a number.
    query: Mapping[str, Any]
    rows: int
    columns: int
    arrays: Callable[[AnyArray, AnyArray], Arrays]

    def read(self, X: AnyArray, target: AnyArray) -> Arrays:
        """Return the arrays of our file, or raise ValueError if the table is not as expected."""
        if X.shape != (self.rows, self.columns):
            raise ValueError(
                f"it has {X.shape[0]} rows and {X.shape[1]} columns, "
                f"not {self.rows} and {self.columns}"
            )
        table = X if X.dtype.kind in "iu" else np.asarray(X, dtype=np.float64)
        if table.dtype.kind == "f" and not np.isfinite(table).all():
            raise ValueError("it has missing values")
        return self.arrays(table, target)

    def __str__(self) -> str:
        if "name" not in self.query:
            return f"number {self.query['data_id']}"
        return f"{self.query['name']}, version {self.query['version']}"


def _sylva(X: AnyArray, labels: AnyArray) -> Arrays:
    y = _to_whole_numbers(labels)
    _expect({-1: 13_509, 1: 886}, y)
    return {"X": X.astype(np.float32), "y": y.astype(np.int8)}


def _cifar10(X: AnyArray, labels: AnyArray) -> Arrays:
    """Return an excerpt of CIFAR-10 as images.

    A row of OpenML has all its reds, then all its greens, then all its blues. In our images the
    three colours of a pixel stand together.
    """
    y = _to_whole_numbers(labels)
    _expect(dict.fromkeys(range(10), 6000), y)
    if X.min() < 0 or X.max() > 255:
        raise ValueError(
            f"its pixels lie between {X.min():g} and {X.max():g}, not between 0 and 255"
        )
    rng = np.random.default_rng(0)
    kept = {
        "train": _of_each(y[:TRAINING], IMAGES, rng),
        "test": TRAINING + _of_each(y[TRAINING:], TEST_IMAGES, rng),
    }
    images = {
        part: X[rows].astype(np.uint8).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        for part, rows in kept.items()
    }
    return {
        "X": images["train"],
        "y": y[kept["train"]].astype(np.uint8),
        "X_test": images["test"],
        "y_test": y[kept["test"]].astype(np.uint8),
        "idx_train": kept["train"],
        "idx_test": kept["test"],
    }


def _of_each(y: AnyArray, count: int, rng: np.random.Generator) -> AnyArray:
    """Return the rows of an excerpt with `count` rows of each class, in ascending order."""
    rows = [rng.permutation(np.flatnonzero(y == label))[:count] for label in np.unique(y)]
    return np.sort(np.concatenate(rows))


def _years(X: AnyArray, years: AnyArray) -> Arrays:
    year = _to_whole_numbers(years)
    if year.min() < YEARS[0] or year.max() > YEARS[1]:
        raise ValueError(
            f"its years run from {year.min()} to {year.max()}, not from {YEARS[0]} to {YEARS[1]}"
        )
    kept = np.sort(np.random.default_rng(0).permutation(THEIR_SONGS)[:SONGS])
    year = year[kept].astype(np.int16)
    return {
        "X": X[kept].astype(np.float32),
        "y": (year >= 2000).astype(np.int8),
        "year": year,
        "idx": kept,
    }


SOURCES: dict[str, Source] = {
    "Sylva": Source(
        {"name": "sylva_agnostic", "version": 1, "target_column": "label"}, 14_395, 216, _sylva
    ),
    "CIFAR10": Source({"name": "CIFAR_10", "version": 1}, 60_000, 3072, _cifar10),
    "YearPredictionMSD": Source({"data_id": 44027}, 515_345, 90, _years),
}


def _to_whole_numbers(values: AnyArray) -> AnyArray:
    numbers = np.asarray(values).astype(np.float64)
    if numbers.ndim != 1 or (numbers != np.round(numbers)).any():
        raise ValueError("its targets are not whole numbers")
    return numbers.astype(np.int64)


def _expect(counts: dict[int, int], y: AnyArray) -> None:
    labels, sizes = np.unique(y, return_counts=True)
    found = dict(zip(labels.tolist(), sizes.tolist(), strict=True))
    if found != counts:
        raise ValueError(f"its classes have {found} rows, not {counts}")
