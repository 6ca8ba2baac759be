"""Cells of tables: which are gaps, and what a cell is as a category.

A category is a text. A number is written without a point if it is whole, so that 1, 1.0 and "1" at
three sites are one category.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerlearn.algorithms.categories import Value


def is_gap(cell: Any) -> bool:
    """Return whether a cell is empty: None, NaN, pandas.NA, NaT, or a text without letters."""
    if cell is None:
        return True
    if isinstance(cell, str):
        return not cell.strip()
    try:
        return bool(cell != cell)  # NaN and NaT differ from themselves
    except TypeError:  # raised by pandas.NA, which is neither equal nor unequal
        return True


def category_of(cell: Any) -> str | None:
    """Return a cell as the text of a category; None for a gap."""
    if is_gap(cell):
        return None
    if isinstance(cell, bool | np.bool_):
        return str(bool(cell))
    if isinstance(cell, Real):
        number = float(cell)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(cell).strip()


def value_of(cell: Any) -> Value:
    """Return a cell as a number or a text; None for a gap."""
    if is_gap(cell):
        return None
    return float(cell) if isinstance(cell, Real | np.bool_) else str(cell)


def gaps_of(table: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which cells of a table are gaps."""
    if table.dtype.kind == "f":
        return np.asarray(np.isnan(table))
    if table.dtype.kind in "biu":
        return np.zeros(table.shape, dtype=bool)
    gaps = [is_gap(cell) for cell in table.ravel().tolist()]
    return np.array(gaps, dtype=bool).reshape(table.shape)
