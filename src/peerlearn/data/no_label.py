"""Rows without a label in a table: where the cell of the target is empty, or says -1.

They are read as -1 among numbers and "-1" among texts, whatever the format says of what is missing:
an empty cell, NaN, a missing value.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from peerlearn.data.dataset import AnyArray

NO_LABEL = -1


def marked(cells: Iterable[str]) -> list[str]:
    """Cells of a target, all that mean no label alike."""
    return [str(NO_LABEL) if _says_none(cell) else cell for cell in cells]


def marked_array(y: AnyArray) -> AnyArray:
    """The same of numbers or texts."""
    if y.dtype.kind == "U":
        return np.array(marked(y.ravel().tolist())).reshape(y.shape)
    return np.where(np.isnan(y), NO_LABEL, y) if y.dtype.kind == "f" else y


def _says_none(cell: str) -> bool:
    try:
        return not cell.strip() or float(cell) == NO_LABEL or np.isnan(float(cell))
    except ValueError:
        return False
