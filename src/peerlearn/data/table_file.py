"""Reading a user's own table: a file with named columns, one of which may be the target.

The ending of the file decides the format: .csv (with a header line), .parquet, or .npz, where X has
the columns x0, x1, ... (or those of an array "columns") and y is the column y. Nothing is filled in
or dropped, except missing labels if those are allowed. An error names the row and the column that
cannot be used.
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

from peerlearn.data import csv_file, npz, parquet_file
from peerlearn.data.checks import check_rows, check_targets, get_X_and_y
from peerlearn.data.dataset import AnyArray, Task, targets
from peerlearn.data.folder import guess_task
from peerlearn.data.no_label import mark_missing_entries
from peerlearn.errors import DataError

Content = tuple[Sequence[str], AnyArray, AnyArray | None]  # names of the features, X, y
SHOWN = 20  # column names in a sentence


@dataclass(frozen=True, eq=False)
class DataTable:
    """Rows and targets of a table, with the names of the columns.

    X is float64, rows by columns; cells of any type if the table was read raw. y is int64, float64,
    bool or text, and None if no target was named.
    """

    columns: tuple[str, ...]
    X: AnyArray = field(repr=False)
    y: AnyArray | None = field(repr=False)
    target: str | None

    def select(self, columns: Sequence[str]) -> AnyArray:
        """Return X with these columns, in this order."""
        places = {name: k for k, name in enumerate(self.columns)}
        missing = [name for name in columns if name not in places]
        if missing:
            raise DataError(
                f"the table lacks {_join_names(missing)}: it has {_join_names(self.columns)}, so "
                "add what is missing or rename"
            )
        return np.ascontiguousarray(self.X[:, [places[name] for name in columns]])


def read(
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    partly_labelled: bool = False,
    raw: bool = False,
) -> DataTable:
    """Read the table of a file. With raw, cells may be anything, also empty.

    Without a target all columns are features, except y of an .npz file. With partly_labelled, rows
    may have no label: y is -1 there, and an empty cell of the target means the same.
    """
    file = Path(path).expanduser()
    names = read_header(file)
    if target is not None and target not in names:
        near = difflib.get_close_matches(target, names, n=1)
        nearest = f", the nearest is {near[0]!r}" if near else ""
        raise DataError(f"{file} has no column {target!r}{nearest}: it has {_join_names(names)}")
    if names == (target,):
        raise DataError(
            f"{file} has no column but the target {target!r}: add those to predict it from"
        )
    _, read_numbers, read_raw = _FORMATS[file.suffix.lower()]
    read_content = read_raw if raw else read_numbers
    columns, X, y = read_content(file, names, target, partly_labelled)
    return DataTable(tuple(columns), X, y, target)


def read_header(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the names of all columns of a file, without reading the rest."""
    file = Path(path).expanduser()
    kind = file.suffix.lower()
    if kind not in _FORMATS:
        raise DataError(
            f"{file} ends in {file.suffix!r}, but tables are read from {', '.join(_FORMATS)}: "
            "convert it"
        )
    _check_not_empty(file)
    names = _FORMATS[kind][0](file)
    if not all(names):
        raise DataError(
            f"{file} has a column without a name: name it, or save the table without its row "
            "numbers"
        )
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise DataError(
            f"{file} has several columns of the name {_join_names(twice)}: rename or drop all but "
            "one"
        )
    return tuple(names)


def _check_not_empty(file: Path) -> None:
    try:
        size = file.stat().st_size if file.is_file() else None
    except OSError as error:
        raise DataError(
            f"{file} cannot be reached ({error.strerror}): allow this user into its folder"
        ) from error
    if size is None:
        raise DataError(f"there is no file {file}: check the path")
    if size == 0:
        raise DataError(f"{file} is empty: save it again")


def _join_names(names: Sequence[str]) -> str:
    """Return the first names, for a sentence."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more


def _read_npz_header(path: Path) -> list[str]:
    arrays = npz.read(path)
    names = _npz_columns(arrays, path)
    return [*names, "y"] if "y" in arrays else names


def _read_npz(
    path: Path, _names: Sequence[str], target: str | None, partly_labelled: bool
) -> Content:
    arrays = npz.read(path)
    columns = _npz_columns(arrays, path)
    X = check_rows(arrays["X"], path)
    if target is None:
        return columns, X, None
    if target not in columns:
        return columns, X, _npz_targets(arrays["y"], len(X), path, partly_labelled)
    at = columns.index(target)
    features = columns[:at] + columns[at + 1 :]
    return features, np.delete(X, at, axis=1), X[:, at].copy()


def _read_raw_npz(
    path: Path, names: Sequence[str], target: str | None, partly_labelled: bool
) -> Content:
    """Return numbers as objects. A file of arrays has no other cells."""
    columns, X, y = _read_npz(path, names, target, partly_labelled)
    return columns, X.astype(object), y


def _npz_targets(y: AnyArray, rows: int, path: Path, partly_labelled: bool) -> AnyArray:
    if y.dtype.kind == "U":
        _texts(y.ravel(), "y", path)
    if partly_labelled:
        y = mark_missing_entries(y)
        task: Task = "classification"
    else:
        task = guess_task(y.dtype.kind)
    return targets(check_targets(y, rows, task, path), task)


def _npz_columns(arrays: dict[str, AnyArray], path: Path) -> list[str]:
    """Return the names of the columns of X. In images every pixel is a column."""
    if "X" not in arrays:
        get_X_and_y(arrays, path)  # raises the error
    width = math.prod(arrays["X"].shape[1:])
    names = arrays.get("columns", np.array([f"x{k}" for k in range(width)], dtype=str))
    if names.dtype.kind != "U" or names.shape != (width,):
        raise DataError(
            f"columns in {path} has type {names.dtype} and shape {names.shape}, but X has {width} "
            "columns: save one text for each of them"
        )
    return _texts(names, "columns", path)


def _texts(array: AnyArray, key: str, path: Path) -> list[str]:
    """Return the texts of an array, or raise an error if one has an invalid character.

    A file can hold any number in place of a character. Python notices only when it uses the text.
    """
    try:
        texts: list[str] = array.tolist()
        "".join(texts).encode()
    except (ValueError, SystemError) as error:
        raise DataError(
            f"{key} in {path} has text with characters that do not exist: save it again"
        ) from error
    return texts


Reader = Callable[[Path, Sequence[str], str | None, bool], Content]
_FORMATS: dict[str, tuple[Callable[[Path], list[str]], Reader, Reader]] = {
    ".csv": (csv_file.read_header, csv_file.read, csv_file.read_raw),
    ".parquet": (parquet_file.read_header, parquet_file.read, parquet_file.read_raw),
    ".npz": (_read_npz_header, _read_npz, _read_raw_npz),
}
