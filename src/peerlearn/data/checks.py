"""Checks of the arrays X and y of a file. They return both in one shape, or raise an error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

from peerlearn.arrays import Array
from peerlearn.data.dataset import AnyArray, Task
from peerlearn.errors import DataError

Entry = TypeVar("Entry")  # an array, or its header


def get_X_and_y(arrays: Mapping[str, Entry], path: Path) -> tuple[Entry, Entry]:
    """Return X and y of a file, or raise an error if one is missing."""
    for key in ("X", "y"):
        if key not in arrays:
            held = ", ".join(sorted(arrays)) or "nothing"
            raise DataError(
                f"{path} has no array {key!r} (it holds {held}): save it with "
                "np.savez(path, X=X, y=y)"
            )
    return arrays["X"], arrays["y"]


def check_rows(X: AnyArray, path: Path, *, gaps: bool = False) -> Array:
    """Return X as float64, rows by columns; images are flattened to rows. gaps: allow NaN."""
    if X.dtype.kind not in "fiub":
        raise DataError(
            f"X in {path} has type {X.dtype}, but must be real numbers: encode it as numbers "
            "before saving"
        )
    if X.ndim < 2 or X.size == 0:
        raise DataError(
            f"X in {path} has shape {X.shape}, but needs a row and a column at least: save it as "
            "a table"
        )
    rows = np.ascontiguousarray(X.reshape(len(X), -1), dtype=np.float64)
    _check_finite(np.where(np.isnan(rows), 0.0, rows) if gaps else rows, "X", path)
    return rows


def check_targets(y: AnyArray, rows: int, task: Task, path: Path) -> AnyArray:
    """Return y with one entry per row of X. Only a regression may have several columns."""
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim == 0 or len(y) != rows:
        raise DataError(
            f"{path} has {rows} rows in X but y has shape {y.shape}: save one entry of y per row "
            "of X"
        )
    if y.ndim > 2 or (y.ndim == 2 and task == "classification"):
        raise DataError(
            f"y in {path} has shape {y.shape}, but {task} needs {_shape(rows, task)}: save y in "
            "that shape"
        )
    if task == "regression" and y.dtype.kind not in "fiub":
        raise DataError(
            f"y in {path} has type {y.dtype}, but regression needs real numbers: encode it before "
            "saving"
        )
    if y.dtype.kind == "f":
        _check_finite(y, "y", path)
    return y


def _shape(rows: int, task: Task) -> str:
    return f"({rows},)" if task == "classification" else f"({rows},) or ({rows}, outputs)"


def _check_finite(values: AnyArray, key: str, path: Path) -> None:
    finite = np.isfinite(values)
    if finite.all():
        return
    wrong = np.argwhere(~finite)
    where = " column ".join(str(i) for i in wrong[0])
    first = values[tuple(wrong[0])]
    raise DataError(
        f"{key} in {path} has {len(wrong)} missing or infinite values, the first ({first}) in row "
        f"{where}: fill them in or drop those rows before saving"
    )
