"""Kinds of columns: numbers, dates or categories, guessed from the cells of one agent's table.

    number       numbers, truth values, or texts that are either
    date         dates and times, or texts such as 2024-03-31; days since 1970 as numbers
    category     other texts, at most as many different ones as allowed
    text         more different texts, or texts longer than LONGEST: free text, which is refused
    nothing      gaps only, or no rows: fits every kind

A code stands for each kind, so that agents can compare kinds by sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from numbers import Real
from typing import Any

import numpy as np

from peerlearn.arrays import Array
from peerlearn.preparing.cells import category_of, is_gap

NOTHING, NUMBER, DATE, CATEGORY, TEXT, UNFIT = range(6)  # UNFIT: not of the kind that was declared
CODES = 6
NAMES = {NUMBER: "number", DATE: "date", CATEGORY: "category"}
WORDS = {NUMBER: "numbers", DATE: "dates", CATEGORY: "texts"}  # for error messages
LONGEST = 60  # characters of a category
DAY = 86400.0  # seconds
TRUTHS = {"true": 1.0, "false": 0.0}


def guess_kind(cells: Sequence[Any], most: int) -> int:
    """Return the code of a column's kind. `most`: of how many different texts categories are."""
    present = [cell for cell in cells if not is_gap(cell)]
    if not present:
        return NOTHING
    if all(number_of(cell) is not None for cell in present):
        return NUMBER
    if all(days_of(cell) is not None for cell in present):
        return DATE
    texts = {category_of(cell) or "" for cell in present}
    is_free = len(texts) > most or any(len(text) > LONGEST for text in texts)
    return TEXT if is_free else CATEGORY


def check_declared(cells: Sequence[Any], kind: int) -> int:
    """Return the declared code if all cells have that kind, NOTHING without cells, else UNFIT."""
    present = [cell for cell in cells if not is_gap(cell)]
    if not present:
        return NOTHING
    convert = {NUMBER: number_of, DATE: days_of}.get(kind, category_of)
    return kind if all(convert(cell) is not None for cell in present) else UNFIT


def numbers_of(cells: Sequence[Any], kind: int) -> Array:
    """Return a column of numbers or dates as numbers. NaN stands for gaps and for other cells."""
    convert = days_of if kind == DATE else number_of
    found = [None if is_gap(cell) else convert(cell) for cell in cells]
    return np.array([np.nan if number is None else number for number in found], dtype=np.float64)


def number_of(cell: Any) -> float | None:
    """Return a cell as a finite number, or None if it is none. True is 1, also as a text."""
    if isinstance(cell, str) and cell.strip().lower() in TRUTHS:
        return TRUTHS[cell.strip().lower()]
    try:
        number = float(cell) if isinstance(cell, Real | np.bool_ | str) else math.nan
    except ValueError:
        return None
    underscored = isinstance(cell, str) and "_" in cell  # Python reads 1_000 as a number
    return number if math.isfinite(number) and not underscored else None


def days_of(cell: Any) -> float | None:
    """Return a date or time as days since 1970, or None if it is none. UTC if no zone is given."""
    if isinstance(cell, str):
        try:
            cell = datetime.fromisoformat(cell.strip())
        except ValueError:
            return None
    if isinstance(cell, np.datetime64):
        return float(cell.astype("datetime64[us]").astype(np.int64)) / 1e6 / DAY
    if isinstance(cell, date) and not isinstance(cell, datetime):
        cell = datetime(cell.year, cell.month, cell.day)
    if not isinstance(cell, datetime):
        return None
    moment = cell if cell.tzinfo is not None else cell.replace(tzinfo=UTC)
    return moment.timestamp() / DAY
