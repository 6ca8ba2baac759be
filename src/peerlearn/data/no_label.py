"""Rows without a label: the cell of the target is empty, missing, NaN or -1.

All of these are read as -1 among numbers and as "-1" among texts, whatever the file format is.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from peerlearn.data.dataset import AnyArray

NO_LABEL = -1


def mark_missing(cells: Iterable[str]) -> list[str]:
    """Replace every cell that means "no label" by "-1"."""
    return [str(NO_LABEL) if _is_no_label(cell) else cell for cell in cells]


def mark_missing_entries(y: AnyArray) -> AnyArray:
    """Replace every entry that means "no label" by -1, in numbers or texts."""
    if y.dtype.kind == "U":
        return np.array(mark_missing(y.ravel().tolist())).reshape(y.shape)
    return np.where(np.isnan(y), NO_LABEL, y) if y.dtype.kind == "f" else y


def _is_no_label(cell: str) -> bool:
    try:
        return not cell.strip() or float(cell) == NO_LABEL or np.isnan(float(cell))
    except ValueError:
        return False
