"""Scaling of columns to a common range, which can be applied to new rows.

    x <- a + (b - a) (x - low) / (high - low)      per column; low and high: of the rows seen first

A constant column carries no information. It is sent to the point of [a, b] nearest to zero, where
it adds least to inner products: 0 in [0, 1], and the middle of [-1, 1].
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
    """Linear map of every column from its own range to a common one.

    Parameters
    ----------
    low : ndarray
        Smallest value of each column.
    high : ndarray
        Largest value of each column.
    to : (float, float)
        The range that low and high are sent to.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn.data import Scaling
    >>> scaling = Scaling.of(np.array([[0.0, 5.0], [10.0, 7.0]]), (-1.0, 1.0))
    >>> scaling.apply([[5.0, 7.0]])
    array([[0., 1.]])
    """

    low: Array
    high: Array
    to: Range

    @classmethod
    def of(cls, X: Array, to: Range) -> Scaling:
        """Return the scaling that sends every column of X exactly onto the range `to`."""
        return cls(X.min(axis=0), X.max(axis=0), to)

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Mask of the columns that have one value only."""
        same: NDArray[np.bool_] = self.low == self.high
        return same

    def apply(self, X: ArrayLike) -> Array:
        """Scale new rows in the same way. Images are flattened to rows.

        Values outside low..high are sent outside the range.
        """
        rows = np.array(X, dtype=np.float64)
        if rows.ndim > 2:
            rows = rows.reshape(len(rows), -1)
        if rows.ndim != 2 or rows.shape[1] != len(self.low):
            raise DataError(
                f"rows of shape {rows.shape} cannot be scaled, because the scaling was made from "
                f"{len(self.low)} columns: give a table with the same columns in the same order"
            )
        a, b = self.to
        rows -= self.low
        rows /= np.where(self.constant, 1.0, self.high - self.low)
        rows *= b - a
        rows += a
        rows[:, self.constant] = self._point_nearest_zero
        return rows

    @property
    def _point_nearest_zero(self) -> float:
        a, b = self.to
        return min(max(0.0, a), b)

    def __str__(self) -> str:
        a, b = self.to
        sentence = f"each of {len(self.low)} columns scaled from its own range to [{a:g}, {b:g}]"
        constant = int(self.constant.sum())
        if constant:
            sentence += f" ({constant} constant, sent to {self._point_nearest_zero:g})"
        return sentence
