"""The one array type that agents compute with, and the sentences for arrays that cannot be used."""

from __future__ import annotations

from math import isfinite
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from peerlearn.errors import InputError

Array: TypeAlias = NDArray[np.float64]
HUGE = 1e150  # squares of it are still numbers

SMALLEST_NORM = 1e-145  # squares of smaller numbers lose digits, or all of them

Indices: TypeAlias = NDArray[np.intp]
# What a sum over the network may add: numbers, or integers modulo 2^64.
Addends: TypeAlias = NDArray[np.float64] | NDArray[np.int64] | NDArray[np.uint64]
ADDENDS = tuple(map(np.dtype, (np.float64, np.int64, np.uint64)))


def is_real(value: Any) -> bool:
    """A number, of Python or numpy."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def per_agent(x: Any, hosted: int, what: str = "x") -> Array:
    """x as float64 with a leading axis of the agents hosted here, or the sentence that says why not."""
    if np.iscomplexobj(x):
        raise InputError(
            f"{what} has complex numbers, and agents send real ones: give real and imaginary parts "
            "side by side (average and total take complex numbers as they are)"
        )
    array = np.asarray(x, dtype=np.float64)
    if array.ndim == 0 or array.shape[0] != hosted:
        raise InputError(
            f"{what} has shape {array.shape}, but its leading axis must be the {hosted} agents hosted here: "
            "stack one entry per hosted agent"
        )
    return array


def addends_per_agent(x: Any, hosted: int) -> Addends:
    """Return x with a leading axis of the hosted agents: int64 and uint64 arrays as they are, all else as float64."""
    if isinstance(x, np.ndarray) and x.dtype in ADDENDS[1:] and x.ndim and len(x) == hosted:
        return x
    return per_agent(x, hosted)


def all_finite(x: np.ndarray[Any, Any]) -> bool:
    """Return whether no entry is NaN or infinite.

    One such entry makes the sum of squares NaN or infinite. BLAS computes that sum in half a
    microsecond where x is small, and in a quarter of the time of other ways where it is large.
    Entries above 1e154 also make it infinite, so then every entry is checked.
    """
    return x.dtype.kind != "f" or isfinite(np.vdot(x, x)) or bool(np.isfinite(x).all())


def norms(x: Array) -> Array:
    """Return the Euclidean (Frobenius) norm of each agent's entry: shape (agents,).

    Numbers whose squares underflow are scaled first.
    """
    found: Array = np.sqrt(dots(x, x))
    for k in np.flatnonzero(found < SMALLEST_NORM):
        largest = np.abs(x[k]).max(initial=0.0)
        if largest > 0:
            found[k] = largest * np.sqrt(np.sum((x[k] / largest) ** 2))
    return found


def dots(x: Array, y: Array) -> Array:
    """The inner product of each agent's entries of x and y: shape (agents,).

    Not einsum: beyond its buffer it sums in an order that depends on how many agents are hosted
    here.
    """
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # what has diverged may be beyond all numbers
        products: Array = np.add.reduce((x * y).reshape(len(x), -1), axis=1)
    return products


def sendable(x: Array) -> Array:
    """x with HUGE numbers where there were none or larger ones: what diverges must not stop a network that sends only
    numbers, nor sums of them become none.
    """
    fine = all_finite(x) and not np.count_nonzero(np.abs(x) > HUGE)
    return x if fine else np.clip(np.nan_to_num(x, nan=HUGE), -HUGE, HUGE)
