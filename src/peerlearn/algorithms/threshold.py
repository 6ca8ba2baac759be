"""The value that as many of all agents' values are below as asked for, without telling them.

    low, high   the least and the largest of all values                                       over the network: a flood
    n_j         how many values are up to place j of 128 between low and high                 over the network: a sum
    low, high   the places around the one where n passes the number asked for                 alone; then again, twice

128^3 parts of the range tell values apart. No value is sent but the least, the largest, and the two beside the gap.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peerlearn.algorithms.consensus import Averaging, maximum
from peerlearn.algorithms.krylov import summed
from peerlearn.arrays import Array
from peerlearn.network.base import Network

BINS, LEVELS = 128, 3
NONE = np.finfo(np.float64).max  # an infinite number would be refused on its way
SUMS = Averaging(tolerance=1e-9)  # of counts; exact, but where messages get lost


def threshold(network: Network, values: Sequence[Array], below: float, count: int) -> float:
    """The middle of the gap that has `below` of all agents' values, to the nearest whole number, under it.

    `count` is how many values all agents have.
    """
    rank, ordered = min(max(round(below), 1), count - 1), [np.sort(own) for own in values]
    high, low = _extremes(network, ordered, ordered)
    for _ in range(LEVELS):
        places = np.linspace(low, high, BINS + 1)
        up_to = summed(network, np.stack([np.searchsorted(own, places[1:], side="right") for own in ordered]), SUMS)[0]
        here = int(np.argmax(up_to > rank - 0.5))
        low, high = places[here], places[here + 1]
    under, over = _extremes(network, [own[own <= high] for own in ordered], [own[own > high] for own in ordered])
    return (under + over) / 2 if over < NONE else under  # or the largest value is that of many rows


def _extremes(network: Network, of_largest: Sequence[Array], of_least: Sequence[Array]) -> tuple[float, float]:
    """The largest of all agents' values of the first kind, and the least of the second: NONE where there are none."""
    own = [[a.max(initial=-NONE), -b.min(initial=NONE)] for a, b in zip(of_largest, of_least, strict=True)]
    largest, least = maximum(network, own)[0]  # alike at all agents
    return float(largest), -float(least)
