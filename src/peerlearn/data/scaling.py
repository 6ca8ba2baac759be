"""Columns to a common range, and the record that scales new rows the same way.

    x <- a + (b - a) (x - low) / (high - low)      per column, low and high over the rows it was made from

A constant column carries nothing, so it is sent to the point of [a, b] nearest to zero, where it
adds nothing to any inner product: 0 in [0, 1], and the middle of [-1, 1].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from peerlearn.arrays import Array
from peerlearn.errors import DataError

Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Scaling:
    """What was done to the columns: their smallest and largest values, and the range these were sent to."""

    low: Array
    high: Array
    to: Range

    @classmethod
    def of(cls, X: Array, to: Range) -> Scaling:
        """The scaling that sends every column of X exactly onto the range `to`."""
        return cls(X.min(axis=0), X.max(axis=0), to)

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Which columns had one value only."""
        same: NDArray[np.bool_] = self.low == self.high
        return same

    def apply(self, X: ArrayLike) -> Array:
        """New rows, scaled identically; images are flattened to rows. Values outside low..high leave the range."""
        rows = np.array(X, dtype=np.float64)
        if rows.ndim > 2:
            rows = rows.reshape(len(rows), -1)
        if rows.ndim != 2 or rows.shape[1] != len(self.low):
            raise DataError(
                f"rows of shape {rows.shape} cannot be scaled, because the scaling was made from {len(self.low)} "
                "columns: give a table with the same columns in the same order"
            )
        a, b = self.to
        rows -= self.low
        rows /= np.where(self.constant, 1.0, self.high - self.low)
        rows *= b - a
        rows += a
        rows[:, self.constant] = self._resting_point
        return rows

    @property
    def _resting_point(self) -> float:
        a, b = self.to
        return min(max(0.0, a), b)

    def __str__(self) -> str:
        a, b = self.to
        sentence = f"each of {len(self.low)} columns scaled from its own range to [{a:g}, {b:g}]"
        constant = int(self.constant.sum())
        return sentence + (
            f" ({constant} constant, sent to {self._resting_point:g})" if constant else ""
        )
