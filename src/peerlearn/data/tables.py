"""A table of one's own: a file with named columns, one of which may be the target.

By its ending a file is .csv (with a header line), .parquet, or .npz, where X has the columns x0,
x1, ... (or those of an array "columns") and y is the column y. Nothing is filled in or dropped, but
for labels that may be missing: what cannot be used is named by row and column.
"""

from __future__ import annotations

import difflib
import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from peerlearn.arrays import Array
from peerlearn.data import csv_file, npz, parquet_file
from peerlearn.data.checks import answers, required, table
from peerlearn.data.dataset import AnyArray, targets
from peerlearn.data.folder import guessed_task
from peerlearn.data.no_label import marked_array
from peerlearn.errors import DataError

Read = tuple[Sequence[str], Array, AnyArray | None]  # names of the features, X, y
SHOWN = 20  # column names in a sentence


@dataclass(frozen=True, eq=False)
class Table:
    """X is float64, rows by columns; y is int64, float64, bool or text, and None where no target was named."""

    columns: tuple[str, ...]
    X: Array = field(repr=False)
    y: AnyArray | None = field(repr=False)
    target: str | None

    def select(self, columns: Sequence[str]) -> Array:
        """X with these columns, in this order."""
        places = {name: k for k, name in enumerate(self.columns)}
        if missing := [name for name in columns if name not in places]:
            raise DataError(
                f"the table lacks {_listed(missing)}: it has {_listed(self.columns)}, so add what is missing or rename"
            )
        return np.ascontiguousarray(self.X[:, [places[name] for name in columns]])


def read(
    path: str | os.PathLike[str], target: str | None = None, *, partly_labelled: bool = False
) -> Table:
    """The table in a file; without a target all columns are features, but for y of an .npz file.

    partly_labelled: rows may have no label, which is -1 in y; an empty cell of the target means the
    same.
    """
    file = Path(path).expanduser()
    names = header(file)
    if target is not None and target not in names:
        near = difflib.get_close_matches(target, names, n=1)
        nearest = f", the nearest is {near[0]!r}" if near else ""
        raise DataError(f"{file} has no column {target!r}{nearest}: it has {_listed(names)}")
    if names == (target,):
        raise DataError(
            f"{file} has no column but the target {target!r}: add those to predict it from"
        )
    columns, X, y = _FORMATS[file.suffix.lower()][1](file, names, target, partly_labelled)
    return Table(tuple(columns), X, y, target)


def header(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The names of all columns of a file, before anything else is read."""
    file = Path(path).expanduser()
    if file.suffix.lower() not in _FORMATS:
        raise DataError(
            f"{file} ends in {file.suffix!r}, but tables are read from {', '.join(_FORMATS)}: convert it"
        )
    try:
        size = file.stat().st_size if file.is_file() else None
    except OSError as error:
        raise DataError(
            f"{file} cannot be reached ({error.strerror}): allow this user into its folder"
        ) from error
    if not size:
        raise DataError(
            f"{file} is empty: save it again"
            if size == 0
            else f"there is no file {file}: check the path"
        )
    names = _FORMATS[file.suffix.lower()][0](file)
    if not all(names):
        raise DataError(
            f"{file} has a column without a name: name it, or save the table without its row numbers"
        )
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise DataError(
            f"{file} has several columns of the name {_listed(twice)}: rename or drop all but one"
        )
    return tuple(names)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more


def _npz_header(path: Path) -> list[str]:
    arrays = npz.read(path)
    names = _npz_columns(arrays, path)
    return [*names, "y"] if "y" in arrays else names


def _npz_read(path: Path, _names: Sequence[str], target: str | None, partly_labelled: bool) -> Read:
    arrays = npz.read(path)
    columns, X = _npz_columns(arrays, path), table(arrays["X"], path)
    if target is None:
        return columns, X, None
    if target not in columns:
        y = arrays["y"]
        if y.dtype.kind == "U":
            _texts(y.ravel(), "y", path)
        if partly_labelled:
            return (
                columns,
                X,
                targets(answers(marked_array(y), len(X), "classification", path), "classification"),
            )
        y = answers(y, len(X), task := guessed_task(y.dtype.kind), path)
        return columns, X, targets(y, task)
    at = columns.index(target)
    return columns[:at] + columns[at + 1 :], np.delete(X, at, axis=1), X[:, at].copy()


def _npz_columns(arrays: dict[str, AnyArray], path: Path) -> list[str]:
    """The names of the columns of X; of images, of every pixel."""
    if "X" not in arrays:
        required(arrays, path)
    width = math.prod(arrays["X"].shape[1:])
    names = arrays.get("columns", np.array([f"x{k}" for k in range(width)], dtype=str))
    if names.dtype.kind != "U" or names.shape != (width,):
        raise DataError(
            f"columns in {path} has type {names.dtype} and shape {names.shape}, but X has {width} columns: save one "
            "text for each of them"
        )
    return _texts(names, "columns", path)


def _texts(array: AnyArray, key: str, path: Path) -> list[str]:
    """Any number can stand in a file where a character should; Python notices when it is used."""
    try:
        texts: list[str] = array.tolist()
        "".join(texts).encode()
    except (ValueError, SystemError) as error:
        raise DataError(
            f"{key} in {path} has text with characters that do not exist: save it again"
        ) from error
    return texts


Reader = Callable[[Path, Sequence[str], str | None, bool], Read]
_FORMATS: dict[str, tuple[Callable[[Path], list[str]], Reader]] = {
    ".csv": (csv_file.header, csv_file.read),
    ".parquet": (parquet_file.header, parquet_file.read),
    ".npz": (_npz_header, _npz_read),
}
