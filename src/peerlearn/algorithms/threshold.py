"""A quantile of all agents' values, found without sending the values.

    low, high   the least and the largest of all values             over the network: a flood
    n_j         how many values are up to place j of 128 between    over the network: a sum
                low and high
    low, high   the places around the one where n passes the        alone
                number asked for

The last two lines are repeated until at most one value is between low and high. No value is sent
except the least, the largest, and those beside the gap.

Under secrecy not even these are sent. Counts alone are summed, first between powers of two, and the
result is the end of a bin that has the value of this rank and no other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.sums import maximum, sum_alike
from peerlearn.arrays import Array
from peerlearn.network.base import Network

BINS = 128
POWERS = np.ldexp(1.0, np.arange(-60, 101))  # where bins end at first, under secrecy
NARROW = 1e-9  # relative width of a bin that is not divided any more
LEVELS = 300  # 128^300 is more than the ratio of any two numbers
NONE = np.finfo(np.float64).max  # stands for "no value": the network refuses infinite numbers
SUMS = Averaging(tolerance=1e-9)  # for counts; exact unless messages get lost


def threshold(network: Network, values: Sequence[Array], below: float, count: int) -> float:
    """Return the middle of the gap that has most nearly `below` of all agents' values under it.

    count: how many values all agents have. If all values are the same there is no gap, and the
    result is that value.
    """
    rank = min(max(round(below), 1), count - 1)
    ordered = [np.sort(own) for own in values]
    if network.secrecy is not None:
        return _threshold_in_secret(network, ordered, rank)
    high, low = _extremes(network, ordered, ordered)
    before = 0  # values up to low; at first low is a value itself, which is not counted
    for _ in range(LEVELS):
        places = np.linspace(low, high, BINS + 1)
        up_to = np.rint(_count_up_to(network, ordered, places[1:]))
        here = int(np.argmax(up_to >= rank))
        before = int(up_to[here - 1]) if here else before
        low = places[here]
        high = places[here + 1]
        if up_to[here] - before <= 1 or not low < (low + high) / 2 < high:
            break
    # v, the value of this rank, is the largest up to high; many rows may have it.
    v, above = _extremes(
        network, [own[own <= high] for own in ordered], [own[own > high] for own in ordered]
    )
    under, _ = _extremes(network, [own[own < v] for own in ordered], ordered)
    fewer, more = np.rint(_count_up_to(network, ordered, np.array([under, v])))
    if above == NONE and under == -NONE:
        return v
    lower = above == NONE or (under > -NONE and rank - fewer < more - rank)
    return under / 2 + v / 2 if lower else v / 2 + above / 2


def _threshold_in_secret(network: Network, ordered: Sequence[Array], rank: int) -> float:
    """Return a number with `rank` of all values up to it, or as nearly as values allow."""
    places = np.concatenate([-POWERS[::-1], [0.0], POWERS])
    below = 0
    while True:
        up_to = np.rint(_count_up_to(network, ordered, places))
        here = max(int(np.argmax(up_to >= rank)), 1)
        below = max(below, int(up_to[here - 1]))
        low, high = places[here - 1 : here + 1].tolist()
        if up_to[here] - below <= 1 or high - low <= NARROW * max(abs(low), abs(high)):
            break
        places = np.linspace(low, high, BINS + 1)
    is_nearer = rank - below < up_to[here] - rank
    return float(low if is_nearer else high)


def _count_up_to(network: Network, ordered: Sequence[Array], places: Array) -> Array:
    """Return how many of all agents' values are up to each place."""
    own = [np.searchsorted(values, places, side="right").astype(np.float64) for values in ordered]
    counts: Array = sum_alike(network, np.stack(own), SUMS, "rows up to places")[0]  # alike
    return counts


def _extremes(
    network: Network, of_largest: Sequence[Array], of_least: Sequence[Array]
) -> tuple[float, float]:
    """Return the largest of all agents' first values and the least of their second ones.

    NONE stands for a missing value.
    """
    own = [
        [a.max(initial=-NONE), -b.min(initial=NONE)]
        for a, b in zip(of_largest, of_least, strict=True)
    ]
    largest, least = maximum(network, own)[0]  # the same at all agents
    return float(largest), -float(least)
