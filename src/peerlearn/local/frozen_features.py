"""Frozen features: a map x -> h(x) that a user gives, such as a trained network without readout.

The map is a function, or a fitted scikit-learn transformer. It gets some rows at a time and returns
one row of features for each. The features of all rows are never in memory together.

All agents must have the same map, and a file cannot hold it. So it is tried on a few fixed rows:
agents compare what it returns there, and so do files. Networks compute in single precision, whose
last digits differ between machines. Maps that agree to SAME count as the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from peerlearn.arrays import Array
from peerlearn.errors import DataError, InputError
from peerlearn.local.features import BLOCK, clip_rows

SAME = 1e-4  # relative distance of features that count as the same
LARGEST = 1e100  # largest feature that is accepted: sums of squares stay finite


@dataclass(frozen=True)
class FrozenFeatures:
    """Features x -> h(x) by a function that was given."""

    compute: Callable[[Any], Any]
    name: str
    probed: Array  # features of the rows on which the map was tried
    center: Array | None = None  # subtracted from all features; None subtracts nothing
    norm: float | None = None  # longer rows of features are shortened to it; None shortens none

    @classmethod
    def of(cls, given: Any, rows: Array) -> FrozenFeatures:
        """Return the features of a function or fitted transformer, after trying it on some rows."""
        name = str(getattr(given, "__qualname__", type(given).__name__))
        compute = given.transform if hasattr(given, "transform") else given
        try:
            first = compute(rows.copy())
            again = compute(rows[:1].copy())
        except Exception as error:
            raise InputError(
                f"features ({name}) fails on the {len(rows)} rows of numbers from -1 to 1 on which "
                f"it is compared ({type(error).__name__}: {error}): it must take any table of "
                f"{rows.shape[1]} columns"
            ) from error
        probed = _checked(first, len(rows), None, f"features ({name})", 0)
        alone = _checked(again, 1, probed.shape[1], f"features ({name})", 0)
        if not are_same(alone, probed[:1]):
            raise InputError(
                f"features ({name}) returns other numbers for a row alone than for the same row "
                "among others: it must depend on the row only; call eval() on a network of torch, "
                "so that nothing is dropped or normalised at random"
            )
        return cls(compute, name, probed)

    @property
    def width(self) -> int:
        """Number of features, B in the formulas."""
        return int(self.probed.shape[1])

    @property
    def digest(self) -> float:
        """A number that maps which are not the same have in common by chance only.

        It depends on the length of the features of the probed rows, and on their direction. Maps
        that are the same up to SAME have digests that are.
        """
        signs = np.random.default_rng(0).choice([-1.0, 1.0], self.probed.size)
        length = float(np.linalg.norm(self.probed))
        return 4 * length + float(signs @ self.probed.ravel())

    def __call__(self, X: Any) -> Array:
        """Return H = h(X), one row per row of X."""
        H = np.empty((X.shape[0], self.width))
        for rows, h in self.blocks(X):
            H[rows] = h
        return H

    def blocks(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """Yield h(X), some rows at a time."""
        N = X.shape[0]
        for start in range(0, N, BLOCK):
            rows = slice(start, min(start + BLOCK, N))
            part = X[rows]
            # A copy, so that a map which changes its input in place changes nothing here.
            computed = self.compute(part.toarray() if issparse(part) else part.copy())
            what = f"features ({self.name})"
            H = _checked(computed, rows.stop - start, self.width, what, start)
            if self.center is not None:
                H = H - self.center
            if self.norm is not None:
                H = H.copy()  # a map may return an array that it keeps
                clip_rows(H, self.norm)
            yield rows, H


def are_same(H: Array, other: Array) -> bool:
    """Return whether features of the same rows are the same, up to single precision."""
    if H.shape != other.shape:
        return False
    return float(np.linalg.norm(H - other)) <= SAME * float(np.linalg.norm(other))


def _checked(H: Any, rows: int, width: int | None, what: str, start: int) -> Array:
    """Return features as an array of numbers, if there is one row of them per row."""
    try:
        dense = H.toarray() if issparse(H) else H
        table = np.asarray(dense, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(
            f"{what} must return a table of numbers ({error}): return a numpy array, from torch by "
            "detach().cpu().numpy()"
        ) from error
    expected = "any number" if width is None else str(width)
    fits = table.ndim == 2 and len(table) == rows
    if not fits or (width is not None and table.shape[1] != width):
        raise DataError(
            f"{what} returned shape {table.shape} for {rows} rows: return shape "
            f"({rows}, {expected}), one row of features per row"
        )
    if table.shape[1] == 0:
        raise DataError(f"{what} returned no features: return one column at least")
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(~(np.abs(table) <= LARGEST).all(axis=1))
    if len(bad):
        raise DataError(
            f"{what} returned NaN, infinite or huge values, first for row {start + bad[0]}: leave "
            "such rows out, or change the features"
        )
    return table
