"""Array types that agents compute with, checks of arrays, and the number of threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from functools import cache
from math import isfinite
from numbers import Integral, Real
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from peerlearn.errors import InputError

Array: TypeAlias = NDArray[np.float64]
FLOAT = np.dtype(np.float64)
HUGE = 1e150  # its square does not overflow

MUCH = 2**22  # numbers; with fewer, threads cost more than they gain
Computed = TypeVar("Computed")

SMALLEST_NORM = 1e-145  # squares of smaller numbers lose digits, or all of them

Indices: TypeAlias = NDArray[np.intp]
# Types that the network can add: floating-point numbers, and integers modulo 2^64.
Addends: TypeAlias = NDArray[np.float64] | NDArray[np.int64] | NDArray[np.uint64]
ADDENDS = tuple(map(np.dtype, (np.float64, np.int64, np.uint64)))


def is_real(value: Any) -> bool:
    """Return whether this is a real number of Python or numpy; bool is not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Return whether this is an integer of Python or numpy; bool is not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def per_agent(x: Any, hosted: int, what: str = "x") -> Array:
    """Return x as float64, or raise InputError if its leading axis is not the hosted agents."""
    if isinstance(x, np.ndarray) and x.dtype == FLOAT and x.shape[:1] == (hosted,):
        return x  # every round passes here
    if np.iscomplexobj(x):
        raise InputError(
            f"{what} has complex numbers, and agents send real ones: give real and imaginary parts "
            "side by side (average and total take complex numbers as they are)"
        )
    array = np.asarray(x, dtype=np.float64)
    if array.ndim == 0 or array.shape[0] != hosted:
        raise InputError(
            f"{what} has shape {array.shape}, but its leading axis must be the {hosted} agents "
            "hosted here: stack one entry per hosted agent"
        )
    return array


def addends_per_agent(x: Any, hosted: int) -> Addends:
    """Return int64 and uint64 arrays as they are and all others as float64.

    Raises InputError if the leading axis is not the hosted agents.
    """
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
    """Return the inner product of each agent's entries of x and y, with shape (agents,).

    einsum is not used: beyond its buffer it sums in an order that depends on how many agents are
    hosted here.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # numbers that diverged may overflow
        products: Array = np.add.reduce((x * y).reshape(len(x), -1), axis=1)
    return products


def product(A: Array, B: Array) -> Array:
    """Return A @ B, or a stack of such products, never by a product of matrix and vector.

    The rounding error of BLAS's matrix-vector products grows like the number of terms if these have
    few different values: measured 33,000 units for 140,000 rows. Matrix products work in blocks.
    Their error hardly grows: 145 units for 200,000 rows.
    """
    rows = A.shape[-2]
    columns = B.shape[-1]
    if rows == 1:
        A = np.repeat(A, 2, axis=-2)
    if columns == 1:
        B = np.repeat(B, 2, axis=-1)
    result: Array = (A @ B)[..., :rows, :columns]
    return result if result.flags.c_contiguous else np.ascontiguousarray(result)


def sendable(x: Array, largest: float = HUGE) -> Array:
    """Return x with NaN replaced by `largest` and all entries clipped to [-largest, largest].

    A network sends finite numbers only. So an iteration that diverges can go on and report it, and
    sums of its numbers do not overflow.
    """
    fine = all_finite(x) and not np.count_nonzero(np.abs(x) > largest)
    return x if fine else np.clip(np.nan_to_num(x, nan=largest), -largest, largest)


@cache
def _controller() -> ThreadpoolController:
    # Once, because the search for loaded libraries takes milliseconds.
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses one thread.

    On agent-sized problems more threads are 5-50 times slower if the machine is shared. On large
    problems numpy and scipy use a pool of threads each, and the two disturb each other: a fit that
    took 70 ms with one thread took 60-300 ms with two.
    """
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited


def map_agents(compute: Callable[[int], Computed], agents: int, numbers: int) -> list[Computed]:
    """Return compute(k) of each hosted agent k. If there is much to compute, use all cores.

    BLAS should have one thread (`one_blas_thread`). The bits do not depend on the number of cores,
    because each agent is computed by one thread.

    numbers: how many numbers all agents read together.
    """
    threads = min(agents, _cores())
    if threads < 2 or numbers < MUCH:
        return [compute(k) for k in range(agents)]
    with ThreadPoolExecutor(threads) as pool:
        # Threads do not inherit settings such as np.errstate by themselves.
        jobs = [pool.submit(copy_context().run, compute, k) for k in range(agents)]
        return [job.result() for job in jobs]


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
