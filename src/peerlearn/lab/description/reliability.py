"""Reliability of probabilities: how often what has the probability p does happen.

    mean of p, share of events that happened, number of events    of each run, in 20 bins of 0 .. 1
    the same of several runs together                             for a figure

An event is that a row has a class. With two classes only those of the second one count, because
those of the first say the same. For a figure, neighboring bins with few events are put together:
shares of some events say nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from peerlearn.arrays import Array, Indices
from peerlearn.lab.description.metrics import ClassProbabilities

BINS = 20
FEWEST = 20  # events of a point in a figure
SHARES = "reliability"  # name of the curve: share of events that happened, at the mean of p
EVENTS = "reliability_events"  # name of the curve: number of events, at the mean of p
Curve = tuple[Sequence[float], Sequence[float]]


def reliability_curves(probabilities: ClassProbabilities) -> dict[str, Curve]:
    """Return the two curves of a run, from the probabilities of all its agents."""
    p = probabilities.of_agents
    classes = p.shape[2]
    happened = np.broadcast_to(np.eye(classes)[probabilities.codes], p.shape)
    if classes == 2:
        p = p[:, :, 1:]
        happened = happened[:, :, 1:]
    bins = np.minimum((p.ravel() * BINS).astype(np.intp), BINS - 1)
    # Agents see the same rows.
    events = np.full(p.size, 1.0 / len(p))
    means, shares, events = _by_bin(bins, p.ravel(), happened.ravel(), events)
    at = means.tolist()
    return {SHARES: (at, shares.tolist()), EVENTS: (at, events.tolist())}


def merge_runs(runs: Iterable[tuple[Array, Array, Array]]) -> tuple[Array, Array, Array]:
    """Return means of p, shares and numbers of events of several runs together."""
    p, happened, events = (np.concatenate(one) for one in zip(*runs, strict=True))
    bins = np.minimum((p * BINS).astype(np.intp), BINS - 1)
    of_bins: Array = np.bincount(bins, events, BINS).astype(np.float64)
    return _by_bin(_join(of_bins)[bins], p, happened, events)


def _join(events: Array) -> Indices:
    """Return a new number for each bin, such that every number has enough events if all have.

    events: of each bin. Bins are joined from the left; what is left over joins the last.
    """
    numbers = np.zeros(len(events), dtype=np.intp)
    number = 0
    so_far = 0.0
    for bin_, own in enumerate(events):
        numbers[bin_] = number
        so_far += own
        if so_far >= FEWEST and events[bin_ + 1 :].sum() >= FEWEST:
            number += 1
            so_far = 0.0
    return numbers


def _by_bin(bins: Indices, p: Array, happened: Array, events: Array) -> tuple[Array, Array, Array]:
    """Return means of p, shares and numbers of events of all bins that have events."""
    number: Array = np.bincount(bins, events).astype(np.float64)
    used = number > 0
    means = np.bincount(bins, events * p)[used] / number[used]
    shares = np.bincount(bins, events * happened)[used] / number[used]
    return means, shares, number[used]
