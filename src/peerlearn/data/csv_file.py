"""Reading a .csv file as Python's csv module understands it, with a header line, in UTF-8.

Cells are separated by commas. A file that has several columns only if it is split at semicolons or
tabs is split there, and its numbers may have decimal commas: 1,5 is read as 1.5, and 1,234 as
1.234.
"""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from peerlearn.arrays import Array
from peerlearn.data.dataset import AnyArray
from peerlearn.data.no_label import mark_missing
from peerlearn.errors import DataError

COMMA = ","
OTHERS = (";", "\t")
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*", re.ASCII)


def read_header(path: Path) -> list[str]:
    """Return the cells of the first line."""
    _, names = next(_lines(path, _find_separator(path)), (1, []))
    if not names:
        raise DataError(f"{path} begins with an empty line: put the names of the columns there")
    if all(map(_is_number, names)):  # otherwise the first row would be lost as a header
        raise DataError(
            f"the first line of {path} has numbers only: put a line with the names of the columns "
            "before it"
        )
    return names


def _find_separator(path: Path) -> str:
    """Return what is between cells: a comma, or what gives several columns where commas do not."""
    usual = _first_widths(path, COMMA)
    if usual and usual[0] > 1:
        return COMMA
    for separator in OTHERS:
        widths = _first_widths(path, separator)
        if len(set(widths)) == 1 and widths[0] > 1:
            return separator
    return COMMA


def _first_widths(path: Path, separator: str) -> list[int]:
    """Return how many cells the header and the first row have; nothing if the split fails."""
    try:
        return [len(cells) for _, cells in islice(_lines(path, separator), 2)]
    except DataError:
        return []


def read(
    path: Path, names: Sequence[str], target: str | None, partly_labelled: bool
) -> tuple[Sequence[str], Array, AnyArray | None]:
    """Return the names of the features, their numbers, and the target's entries."""
    at = None if target is None else names.index(target)
    features = [name for name in names if name != target]
    numbers = array("d")
    labels = list[str]()
    lines = array("q")
    for line, cells in _rows(path, len(names)):
        lines.append(line)
        if at is not None:
            labels.append(cells.pop(at))
        try:
            numbers.extend(map(_number, cells))
        except ValueError:
            k = next(k for k, cell in enumerate(cells) if not _is_number(cell))
            raise _cell_error(
                path, lines, len(lines) - 1, features[k], cells[k], "a finite number"
            ) from None
    if not lines:
        raise DataError(f"{path} has a header line but no rows: add one at least")
    X = np.array(numbers).reshape(len(lines), len(features))
    if target is None:
        return features, X, None
    if partly_labelled:
        labels = mark_missing(labels)
    return features, X, _targets(path, lines, target, labels)


def read_raw(
    path: Path, names: Sequence[str], target: str | None, partly_labelled: bool
) -> tuple[Sequence[str], AnyArray, AnyArray | None]:
    """Return the names of the features, their cells as texts, and the target's entries."""
    at = None if target is None else names.index(target)
    features = [name for name in names if name != target]
    table = list[list[str]]()
    labels = list[str]()
    lines = array("q")
    for line, cells in _rows(path, len(names)):
        lines.append(line)
        if at is not None:
            labels.append(cells.pop(at))
        table.append(cells)
    if not lines:
        raise DataError(f"{path} has a header line but no rows: add one at least")
    X = np.array(table, dtype=object).reshape(len(lines), len(features))
    if target is None:
        return features, X, None
    if partly_labelled:
        labels = mark_missing(labels)
    return features, X, _targets(path, lines, target, labels)


def _targets(path: Path, lines: array[int], target: str, labels: list[str]) -> AnyArray:
    """Return the entries of the target, or raise an error if one is missing."""
    y = _parse_labels(labels)
    missing = np.array([not label.strip() for label in labels])
    if y.dtype.kind == "f":
        missing = ~np.isfinite(y)
    if missing.any():
        row = int(missing.argmax())
        raise _cell_error(path, lines, row, target, labels[row], "a finite number or a label")
    return y


def _parse_labels(labels: list[str]) -> AnyArray:
    """Return whole numbers if all labels are, else numbers if all labels are, else text."""
    if any("_" in label for label in labels):  # Python reads 1_000 as a number, others do not
        return np.array(labels)
    try:
        return np.array([int(label) for label in labels], dtype=np.int64)
    except OverflowError:  # as floats, two different labels might become equal
        return np.array(labels)
    except ValueError:
        pass
    try:
        return np.array([float(label) for label in labels])
    except ValueError:
        return np.array(labels)


def _rows(path: Path, width: int) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of each row. Empty lines are allowed at the end only."""
    lines = _lines(path, _find_separator(path))
    row = 0
    empty = 0  # the first empty line
    next(lines)
    for line, cells in lines:
        if not cells:
            empty = empty or line
            continue
        row += 1
        if empty:
            raise DataError(
                f"line {empty} of {path} is empty, but rows follow: fill it in or remove it"
            )
        if len(cells) != width:
            raise DataError(
                f"row {row} (line {line}) of {path} has {len(cells)} cells, but the header names "
                f"{width} columns: add what is missing, and quote cells that have a separator in "
                "them"
            )
        yield line, cells


def _lines(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of each line. Decimal commas become points."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, delimiter=separator, strict=True)
            for cells in reader:
                if separator != COMMA:
                    cells = [_with_point(cell) for cell in cells]
                yield reader.line_num, cells
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not text in UTF-8 ({error.reason}): save it as CSV in UTF-8"
        ) from error
    except csv.Error as error:
        raise DataError(
            f"line {reader.line_num} of {path} is not CSV ({error}): mend the quotes there"
        ) from error
    except OSError as error:
        raise DataError(
            f"{path} cannot be opened ({error.strerror}): allow this user to read it"
        ) from error


def _with_point(cell: str) -> str:
    """Return a number with a decimal comma as one with a point, and any other cell as it is."""
    return cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell) else cell


def _number(cell: str) -> float:
    value = float(cell)
    if not math.isfinite(value) or "_" in cell:  # Python reads 1_000 as a number, others do not
        raise ValueError
    return value


def _is_number(cell: str) -> bool:
    try:
        _number(cell)
    except ValueError:
        return False
    return True


def _cell_error(
    path: Path, lines: array[int], row: int, column: str, cell: str, needed: str
) -> DataError:
    found = repr(cell[:40]) if cell.strip() else "nothing"
    return DataError(
        f"row {row + 1} (line {lines[row]}) of {path} has {found} in column {column!r}, where "
        f"{needed} is needed: write numbers as 1.5, fill in what is missing, or drop the row or "
        "the column"
    )
