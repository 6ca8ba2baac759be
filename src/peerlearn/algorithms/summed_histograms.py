"""Quantiles of columns over the rows of all agents, by histograms that are summed and refined.

    key(x)      a whole number of 64 bits; it grows with x
    h = sum_k histogram of agent k's keys by their first 8 bits               over the network
    p           the bin that has the value of the wanted rank                 alone
    h = sum_k histogram of the keys that begin with p, by the next 8 bits     over the network
    ...         until p has as many bits as the accuracy needs

The first 12 bits of a key are the sign and the exponent of x. So the first histograms find the
range of a column, and no largest or smallest value is sent. Each further bit halves the relative
error. A histogram has 256 counts. After 8 of them the value is exact, and belongs to one row;
a coarser accuracy shows less and sends less.

The values of two ranks are interpolated as numpy.quantile does it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.secret_sums import one_session, session_of
from peerlearn.algorithms.sums import sum_alike
from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.network.base import Network

__all__ = ["quantiles"]

Keys = NDArray[np.uint64]
Counts = NDArray[np.int64]
DIGIT = 8  # bits of a key that one histogram finds
BINS = 2**DIGIT
RANGE = 12  # bits of sign and exponent
WHOLE = 64  # bits of a key
SIGN = np.uint64(2**63)
EXACT = Averaging(tolerance=1e-12)  # for sums by gossip; those over a tree are exact


def quantiles(
    network: Network, inputs: Sequence[Array], at: Sequence[float], accuracy: float = 1e-6
) -> Array:
    """Return quantiles of each column over the rows of all agents. Gaps (NaN) are left out.

    Parameters
    ----------
    network : Network
        The network of the agents.
    inputs : sequence of ndarray of shape (n_k, n_columns)
        The rows of each hosted agent; n_k may be 0.
    at : sequence of float
        Which quantiles, from 0 (the smallest value) to 1 (the largest).
    accuracy : float, default 1e-6
        Largest relative error of a value. 0 asks for the exact values.

    Returns
    -------
    ndarray of shape (n_quantiles, n_columns)
        The quantiles, with the same bits at all agents; NaN for columns without values.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import SimulatedNetwork, graphs, quantiles
    >>> network = SimulatedNetwork(graphs.ring(3))
    >>> shares = [np.array([[1.0], [9.0]]), np.array([[5.0], [np.nan]]), np.zeros((0, 1))]
    >>> quantiles(network, shares, [0.25, 0.5])
    array([[3.],
           [5.]])
    """
    ranks_wanted = np.array(at, dtype=np.float64)
    if not ((ranks_wanted >= 0) & (ranks_wanted <= 1)).all():
        raise InputError(f"quantiles at {list(at)!r:.60} are asked for: give numbers from 0 to 1")
    with one_session(network):
        return _quantiles(network, inputs, ranks_wanted, accuracy)


def _quantiles(
    network: Network, inputs: Sequence[Array], ranks_wanted: Array, accuracy: float
) -> Array:
    keys = [[np.sort(_keys(x[~np.isnan(x)])) for x in X.T] for X in inputs]
    counts = np.array([[len(own) for own in columns] for columns in keys], dtype=np.int64)
    n = add_counts(network, counts, "number of values of each column")
    place = np.outer(ranks_wanted, np.maximum(n - 1, 0))  # quantiles x columns
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(n - 1, 0))
    ranks = np.stack([low, high])
    columns = np.broadcast_to(np.arange(len(n)), ranks.shape)
    found = _values_of(network, keys, columns.ravel(), ranks.ravel(), _bits(accuracy))
    lower, upper = found.reshape(ranks.shape)
    between: Array = lower + (place - low) * (upper - lower)
    return np.where(n == 0, np.nan, between)


def add_counts(network: Network, counts: Counts, quantity: str | None) -> Counts:
    """Return the sum of all agents' counts, without the axis of agents; the same at all of them.

    quantity: what is counted, as a total that agents may learn under secrecy; None if it shows
    counts of single agents, which is refused then.
    """
    if network.secrecy is not None and quantity is not None:
        total: Counts = session_of(network).count(quantity, counts)[0]
        return total
    sums = sum_alike(network, cast(Array, counts), EXACT)[0]
    rounded: Counts = np.rint(sums).astype(np.int64)
    return rounded


def _bits(accuracy: float) -> int:
    """Return how many bits of a key have to be known."""
    if not accuracy >= 0:
        raise InputError(f"accuracy is {accuracy}: give a relative error, 0 or more")
    if accuracy == 0:
        return WHOLE
    return min(WHOLE, RANGE + max(0, math.ceil(-math.log2(accuracy))))


def _values_of(
    network: Network, keys: list[list[Keys]], columns: Counts, ranks: Counts, bits: int
) -> Array:
    """Return the value with each rank (counted from 0) among those of its column."""
    wanted = np.column_stack([columns, ranks])
    pairs, back = np.unique(wanted, axis=0, return_inverse=True)
    column, rank = pairs.T
    begin = np.zeros(len(pairs), dtype=np.uint64)  # the bits known so far
    known = 0
    while known < bits:
        bins, which = np.unique(
            np.column_stack([column.astype(np.uint64), begin]), axis=0, return_inverse=True
        )
        own = [[_histogram(columns[j], p, known) for j, p in bins] for columns in keys]
        h = add_counts(network, np.array(own, dtype=np.int64), "histograms")[which.ravel()]
        up_to = np.cumsum(h, axis=1)
        digit = np.argmax(up_to > rank[:, None], axis=1)
        below = (up_to - h)[np.arange(len(rank)), digit]
        rank = rank - below
        begin = begin * np.uint64(BINS) + digit.astype(np.uint64)
        known += DIGIT
    return _numbers(begin, known)[back.ravel()]


def _histogram(keys: Keys, begin: np.uint64, known: int) -> Counts:
    """Return how many of the sorted keys that begin with these bits have each next digit."""
    step = np.uint64(WHOLE - known - DIGIT)
    digits = np.arange(BINS, dtype=np.uint64)
    first = (begin * np.uint64(BINS) + digits) << step
    last = first | ((np.uint64(1) << step) - np.uint64(1))
    return np.searchsorted(keys, last, side="right") - np.searchsorted(keys, first, side="left")


def _keys(x: Array) -> Keys:
    """Return whole numbers in the order of the numbers x. Both zeros have the same key."""
    bits = np.ascontiguousarray(x + 0.0).view(np.uint64)
    return np.where(bits >= SIGN, ~bits, bits | SIGN)


def _numbers(begin: Keys, known: int) -> Array:
    """Return numbers whose keys begin with these bits: those with the fewest digits.

    So whole numbers that are not too large are exact, and no value is further from 0 than its own.
    """
    step = np.uint64(WHOLE - known)
    positive = begin >= np.uint64(2 ** (known - 1))
    # The number nearest to 0 has the smallest key of a positive bin, the largest of a negative one.
    rest = np.where(positive, np.uint64(0), _ones(WHOLE - known))
    keys = (begin << step if step else begin) | rest
    bits = np.where(positive, keys & ~SIGN, ~keys)
    return bits.view(np.float64)


def _ones(count: int) -> np.uint64:
    return np.uint64(2**count - 1)
