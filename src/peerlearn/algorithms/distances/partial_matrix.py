"""Squared distances between all rows, some or all of which an agent knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerlearn.algorithms.distances.row_index import Places
from peerlearn.arrays import Array, all_finite
from peerlearn.errors import DataError

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Known:
    """The distances that each agent hosted here knows: one matrix and one mask for each.

    places: where whose rows are. D: N x N squared Euclidean distances, symmetric, zero where
    unknown. mask: symmetric, True where known; None if all agents know all. columns: how many
    columns the rows have, or None. Agents that know the same may share one array: never change
    one in place.
    """

    places: Places
    D: list[Array]
    mask: list[Mask] | None = None
    columns: int | None = None

    def __post_init__(self) -> None:
        masks = [None] * len(self.D) if self.mask is None else self.mask
        if len(masks) != len(self.D):
            raise DataError(
                f"there are {len(self.D)} matrices of distances and {len(masks)} masks: "
                "give one for each"
            )
        seen: set[tuple[int, int]] = set()
        for number, (D, mask) in enumerate(zip(self.D, masks, strict=True)):
            if (id(D), id(mask)) not in seen:  # a shared matrix is checked once
                self._check(D, mask, f"the distances of hosted agent number {number}")
            seen.add((id(D), id(mask)))

    def _check(self, D: Array, mask: Mask | None, whose: str) -> None:
        N = self.places.N
        for what, given, kind in (("distances", D, np.float64), ("mask", mask, np.bool_)):
            if given is not None and (given.shape != (N, N) or given.dtype != kind):
                raise DataError(
                    f"{whose}: {what} must be {N} x {N} of {kind.__name__}, not {_describe(given)}"
                )
        if not all_finite(D) or np.count_nonzero(D < 0) or np.count_nonzero(np.diagonal(D)):
            raise DataError(
                f"{whose} must be finite, 0 or more, and 0 on the diagonal: give squared distances"
            )
        if not np.array_equal(D, D.T) or (mask is not None and not np.array_equal(mask, mask.T)):
            raise DataError(
                f"{whose} must be symmetric, and their mask too: set both (i, j) and (j, i)"
            )
        if mask is not None and np.count_nonzero(D[~mask]):
            raise DataError(f"{whose} must be 0 where the mask is False: multiply them by it")


def _describe(array: np.ndarray[Any, Any]) -> str:
    return f"{' x '.join(map(str, array.shape))} of {array.dtype}"
