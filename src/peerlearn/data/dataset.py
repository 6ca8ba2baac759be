"""Data sets: rows, targets, and where both came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from peerlearn.arrays import Array
from peerlearn.data.scaling import Range, Scaling

Task: TypeAlias = Literal["classification", "regression"]
AnyArray: TypeAlias = NDArray[Any]


@dataclass(frozen=True, eq=False)
class DataSet:
    """Rows, targets, and where both came from.

    Rows are in the order of the source, which is often sorted by class: shuffle before splitting.
    The scaling was computed from all rows, as in the thesis. Load with scaled=False to scale within
    each fold instead.

    Parameters
    ----------
    name : str
        Name of the data set.
    X : ndarray of float64
        Rows by columns.
    y : ndarray
        One target per row: float64 for regression, int64 or strings for classification.
    task : {"classification", "regression"}
        What is predicted.
    source : str
        Where the data came from.
    scaling : Scaling or None
        How the columns were scaled; None if they are as found.
    extras : dict, default {}
        Further arrays of the source, such as the names of the columns.

    Examples
    --------
    >>> from peerlearn import data
    >>> wine = data.load("wine")
    >>> wine.X.shape, wine.y.dtype, sorted(wine.extras)
    ((178, 13), dtype('int64'), ['classes', 'features'])
    """

    name: str
    X: Array = field(repr=False)
    y: AnyArray = field(repr=False)
    task: Task
    source: str
    scaling: Scaling | None = field(repr=False)
    extras: dict[str, AnyArray] = field(repr=False, default_factory=dict)

    def __str__(self) -> str:
        rows, columns = self.X.shape
        scaling = self.scaling or "columns as found"
        return f"{self.name}: {rows} rows, {columns} columns, {self.task}; {self.source}; {scaling}"


def scale(X: Array, to: Range | None) -> tuple[Array, Scaling | None]:
    """Return X scaled to the range, and the scaling. None leaves X as it is."""
    if to is None:
        return X, None
    scaling = Scaling.of(X, to)
    return scaling.apply(X), scaling


def targets(y: AnyArray, task: Task) -> AnyArray:
    """Return y in a wide type, so that arithmetic with it does not overflow as in int8."""
    if task == "regression":
        return y.astype(np.float64)
    return y.astype(np.int64) if y.dtype.kind in "iu" else y
