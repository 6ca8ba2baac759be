"""A .csv file as Python's csv module understands it: commas, a header line, UTF-8."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from peerlearn.arrays import Array
from peerlearn.data.dataset import AnyArray
from peerlearn.data.no_label import marked
from peerlearn.errors import DataError


def header(path: Path) -> list[str]:
    """The cells of the first line."""
    _must_have_commas(path)
    _, names = next(_lines(path), (1, []))
    if not names:
        raise DataError(f"{path} begins with an empty line: put the names of the columns there")
    if all(map(_is_number, names)):  # else the first row would be lost as a header
        raise DataError(
            f"the first line of {path} has numbers only: put a line with the names of the columns before it"
        )
    return names


def _must_have_commas(path: Path) -> None:
    """Refuse a file that has one column, or none, and several when it is split at semicolons or tabs."""
    usual = _first_widths(path, ",")
    if usual and usual[0] > 1:
        return
    for separator, name in ((";", "semicolons"), ("\t", "tabs")):
        widths = _first_widths(path, separator)
        if len(set(widths)) == 1 and widths[0] > 1:
            raise DataError(
                f"{path} has {name} between its cells, where commas are needed: save it again as CSV with commas, and "
                "with points in its numbers (1.5, not 1,5)"
            )


def _first_widths(path: Path, separator: str) -> list[int]:
    """Return how many cells the header and the first row have; nothing where the file cannot be split like this."""
    try:
        return [len(cells) for _, cells in islice(_lines(path, separator), 2)]
    except DataError:
        return []


def read(
    path: Path, names: Sequence[str], target: str | None, partly_labelled: bool
) -> tuple[Sequence[str], Array, AnyArray | None]:
    """Names of the features, their numbers, and the target's entries."""
    at = None if target is None else names.index(target)
    features = [name for name in names if name != target]
    numbers, labels, lines = array("d"), list[str](), array("q")
    for line, cells in _rows(path, len(names)):
        lines.append(line)
        if at is not None:
            labels.append(cells.pop(at))
        try:
            numbers.extend(map(_number, cells))
        except ValueError:
            k = next(k for k, cell in enumerate(cells) if not _is_number(cell))
            raise _objection(
                path, lines, len(lines) - 1, features[k], cells[k], "a finite number"
            ) from None
    if not lines:
        raise DataError(f"{path} has a header line but no rows: add one at least")
    X = np.array(numbers).reshape(len(lines), len(features))
    if partly_labelled:
        labels = marked(labels)
    return features, X, None if target is None else _answers(path, lines, target, labels)


def _answers(path: Path, lines: array[int], target: str, labels: list[str]) -> AnyArray:
    y = _typed(labels)
    missing = (
        ~np.isfinite(y)
        if y.dtype.kind == "f"
        else np.array([not label.strip() for label in labels])
    )
    if missing.any():
        row = int(missing.argmax())
        raise _objection(path, lines, row, target, labels[row], "a finite number or a label")
    return y


def _typed(labels: list[str]) -> AnyArray:
    """Whole numbers if all are, else numbers if all are, else text."""
    if not any("_" in label for label in labels):
        try:
            return np.array([int(label) for label in labels], dtype=np.int64)
        except OverflowError:  # as text they stay apart, as numbers they might not
            return np.array(labels)
        except ValueError:
            pass
        try:
            return np.array([float(label) for label in labels])
        except ValueError:
            pass
    return np.array(labels)


def _rows(path: Path, width: int) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row; empty lines are no rows, and stand at the end only."""
    lines, row, empty = _lines(path), 0, 0
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
                f"row {row} (line {line}) of {path} has {len(cells)} cells, but the header names {width} columns: "
                "add what is missing, and quote cells that have a comma in them"
            )
        yield line, cells


def _lines(path: Path, separator: str = ",") -> Iterator[tuple[int, list[str]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, delimiter=separator, strict=True)
            for cells in reader:
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


def _number(cell: str) -> float:
    value = float(cell)
    if not math.isfinite(value) or "_" in cell:  # 1_000 is a number to Python alone
        raise ValueError
    return value


def _is_number(cell: str) -> bool:
    try:
        _number(cell)
    except ValueError:
        return False
    return True


def _objection(
    path: Path, lines: array[int], row: int, column: str, cell: str, needed: str
) -> DataError:
    found = repr(cell[:40]) if cell.strip() else "nothing"
    return DataError(
        f"row {row + 1} (line {lines[row]}) of {path} has {found} in column {column!r}, where {needed} is needed: "
        "write numbers as 1.5, fill in what is missing, or drop the row or the column"
    )
