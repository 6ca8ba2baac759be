"""A data set: rows, what to predict, and where both came from."""

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
    """X is float64, rows by columns; y is float64 for regression, int64 (or strings) for classification.

    Rows are in the order of the source, which is often sorted by class: shuffle before splitting.
    The scaling was made
    from all rows, as in the thesis; load with scaled=False to scale within each fold instead.
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
    """X sent to the range, and the record of it; None leaves X as it is."""
    if to is None:
        return X, None
    scaling = Scaling.of(X, to)
    return scaling.apply(X), scaling


def targets(y: AnyArray, task: Task) -> AnyArray:
    """y in a type that arithmetic does not overflow: the values stay, int8 does not."""
    if task == "regression":
        return y.astype(np.float64)
    return y.astype(np.int64) if y.dtype.kind in "iu" else y
