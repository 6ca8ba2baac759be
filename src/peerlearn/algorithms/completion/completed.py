"""What a completion of distances is asked, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.distances.partial_matrix import Known, Mask
from peerlearn.algorithms.registry import Family
from peerlearn.algorithms.report import Report
from peerlearn.arrays import Array
from peerlearn.errors import DataError, InputError, NetworkError
from peerlearn.network.base import Network

WAY_OUT = "raise iterations or tolerance, or share more distances"


@dataclass(frozen=True)
class Completed:
    """All distances, as each hosted agent has them in the end, and how they came to be."""

    D: list[
        Array
    ]  # N x N: symmetric, 0 or more, 0 on the diagonal; agents that hold the same share one array
    report: Report  # its residuals: of every window of rounds the largest misfit at any agent
    misfits: Array  # iterations x hosted agents: |M o (D~ - D^)| / |D^| over what an agent knows
    errors: Array  # iterations x hosted agents: |D~ - D| / |D|, if the truth was given; else 0 x hosted agents


class Completion(Protocol):
    """Anything with `complete` can be a model's `completion`; one with a name is found by it."""

    name: ClassVar[str]  # what completion="..." calls it

    def complete(
        self, network: Network, known: Known, seed: int, truth: Array | None = None
    ) -> Completed:
        """All distances from the known ones. truth: D itself, for a history of the error; no answer depends on it."""
        ...


COMPLETION: Family[Completion] = Family("peerlearn.algorithms.completion", "complete", "completion")
completion_of = COMPLETION.of


def nothing_to_do(network: Network, known: Known, solver: str) -> Completed:
    """All is known already."""
    none = np.zeros((0, len(network.hosted)))
    return Completed(
        list(known.D), Report(solver, True, 0, (), note="all distances were known"), none, none
    )


def masks(network: Network, known: Known, truth: Array | None, solver: str) -> list[Mask] | None:
    """Where the hosted agents know something, if agents can go on from it together; None if they know all."""
    N, hosted = known.places.N, len(network.hosted)
    if not network.reliable:
        raise NetworkError(
            f"{solver}: agents cannot agree on a round to stop in while messages get lost: use a network that delivers "
            "all of them, or distances='landmarks' on one"
        )
    if len(known.D) != hosted or len(known.places.counts) != network.size:
        raise InputError(
            f"{len(known.D)} agents of {len(known.places.counts)} tell what they know, but this network has "
            f"{network.size} and hosts {hosted} of them: share and complete over the same network"
        )
    if truth is not None and truth.shape != (N, N):
        raise InputError(
            f"truth has shape {truth.shape}, but there are {N} rows: give all distances, {N} x {N}"
        )
    return known.mask


def rank_of(rank: int | None, known: Known, more: int, most: int, solver: str) -> int:
    """The rank asked for, or that of the rows' columns and `more`; of so many rows `most` at most."""
    if rank is None and known.columns is None:
        raise InputError(
            f"{solver} needs to know how many columns the rows have: give it rank, or Known its columns"
        )
    if rank is None:
        return min((known.columns or 0) + more, most)
    if rank > most:
        raise DataError(
            f"rank is {rank}, but distances between {known.places.N} rows need {most} at most: give {solver} a smaller "
            "rank, or leave it to the columns of the rows"
        )
    return rank


def mean_distance(network: Network, known: Known) -> float:
    """Of all that agents know between different rows, the same at every agent; over the network.

    Completions compute in this unit, so that their squares are numbers whatever the unit of the
    columns. It is 0 where all rows are the same, and so is then all that they start from.
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
            "no agent knows the distance between two rows, so that there is nothing to complete from: exchange more "
            "patterns, or use distances='landmarks'"
        )
    return float(distances / pairs)
