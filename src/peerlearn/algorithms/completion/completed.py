"""The contract of completions of distances, their result, and what they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.distances.partial_matrix import Known, Mask
from peerlearn.algorithms.iteration import Report
from peerlearn.algorithms.registry import Family
from peerlearn.arrays import Array
from peerlearn.errors import DataError, InputError, NetworkError
from peerlearn.network.base import Network

WAY_OUT = "raise iterations or tolerance, or share more distances"


@dataclass(frozen=True)
class Completed:
    """All distances, as each hosted agent has them in the end, and how they were found.

    D: N x N for each agent, symmetric, 0 or more, 0 on the diagonal; agents with the same distances
    share one array. report: its residuals are the largest misfit at any agent, one per window of
    rounds. misfits: iterations x hosted agents, |M o (D~ - D^)| / |D^| over what an agent knows.
    errors: iterations x hosted agents, |D~ - D| / |D|; without the truth 0 x hosted agents.
    """

    D: list[Array]
    report: Report
    misfits: Array
    errors: Array


class Completion(Protocol):
    """The contract of a completion: any object with `complete` can be a model's `completion`.

    name: what `completion="..."` calls it.
    """

    name: ClassVar[str]

    def complete(
        self, network: Network, known: Known, seed: int, truth: Array | None = None
    ) -> Completed:
        """Return all distances, from the known ones.

        truth: D itself, for a history of the error; the distances do not depend on it.
        """
        ...


COMPLETION: Family[Completion] = Family("peerlearn.algorithms.completion", "complete", "completion")
completion_of = COMPLETION.of


def nothing_to_do(network: Network, known: Known, solver: str) -> Completed:
    """Return the known distances as they are, if all are known."""
    none = np.zeros((0, len(network.hosted)))
    return Completed(
        list(known.D), Report(solver, True, 0, (), note="all distances were known"), none, none
    )


def masks(network: Network, known: Known, truth: Array | None, solver: str) -> list[Mask] | None:
    """Return where the hosted agents know distances, or None if they know all.

    Refuse networks and inputs from which agents cannot go on together.
    """
    N = known.places.N
    hosted = len(network.hosted)
    if not network.reliable:
        raise NetworkError(
            f"{solver}: agents cannot agree on a round to stop in while messages get lost: "
            "use a network that delivers all of them, or distances='landmarks' on one"
        )
    if len(known.D) != hosted or len(known.places.counts) != network.size:
        raise InputError(
            f"there are distances of {len(known.D)} agents of {len(known.places.counts)}, but "
            f"this network has {network.size} and hosts {hosted} of them: "
            "share and complete over the same network"
        )
    if truth is not None and truth.shape != (N, N):
        raise InputError(
            f"truth has shape {truth.shape}, but there are {N} rows: give all distances, {N} x {N}"
        )
    return known.mask


def rank_of(rank: int | None, known: Known, more: int, most: int, solver: str) -> int:
    """Return the given rank, or the number of the rows' columns plus `more`, at most `most`."""
    if rank is None and known.columns is None:
        raise InputError(
            f"{solver} needs to know how many columns the rows have: "
            "give it rank, or Known its columns"
        )
    if rank is None:
        return min((known.columns or 0) + more, most)
    if rank > most:
        raise DataError(
            f"rank is {rank}, but distances between {known.places.N} rows need {most} at most: "
            f"give {solver} a smaller rank, or None for that of the rows' columns"
        )
    return rank


def mean_distance(network: Network, known: Known) -> float:
    """Return the mean of all known distances between different rows, the same at every agent.

    Completions compute in this unit, so that squares do not overflow whatever the unit of the
    columns. It is 0 if all rows are the same; then the starting point of completions is 0 too.
    """
    masks = known.mask or []
    sums = [
        [np.add.reduce(D, axis=None), np.count_nonzero(mask)]
        for D, mask in zip(known.D, masks, strict=True)
    ]
    distances, count = total(network, np.array(sums))[0]
    pairs = count - network.size * known.places.N  # everybody knows the diagonal
    if not pairs > 0:
        raise DataError(
            "no agent knows the distance between two rows, so that there is nothing to complete "
            "from: exchange more patterns, or use distances='landmarks'"
        )
    return float(distances / pairs)
