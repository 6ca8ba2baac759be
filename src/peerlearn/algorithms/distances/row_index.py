"""The rows of all agents in one order, agent by agent: where in an N x N matrix of distances whose rows stand.

    N_k  how many rows agent k has           one number per agent, summed over the network; whole, hence rounded
    N    their sum                           agent k's rows are N_1 + .. + N_{k-1} up to N_1 + .. + N_k

Thesis, section 7.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peerlearn.algorithms.all_gather import all_gather
from peerlearn.algorithms.averaging import total
from peerlearn.arrays import Array
from peerlearn.errors import DataError, WireError
from peerlearn.network.base import Network

MOST_ROWS = 20_000  # of all agents: six N x N matrices, what a model holds, are then 20 GB; N^2 is below 2^31


@dataclass(frozen=True)
class Places:
    """counts: how many rows each agent has, by its number.

    >>> Places((2, 1, 3)).of(2)
    slice(3, 6, None)
    """

    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(count < 0 for count in self.counts):
            raise DataError(f"agents have {self.counts} rows: a number of rows is 0 or more")
        if self.N < 2:
            raise DataError(
                f"all agents together have {self.N} row, and a distance needs two: give more rows"
            )
        if self.N > MOST_ROWS:
            raise DataError(
                f"all agents together have {self.N:,} rows, and every agent would hold the distances between all of "
                f"them, which is for {MOST_ROWS:,} rows at most: give fewer rows, or use AnchorLapClassifier, which "
                "needs no distances"
            )

    @cached_property
    def N(self) -> int:
        return sum(self.counts)

    def of(self, agent: int) -> slice:
        """The rows of one agent."""
        start = sum(self.counts[:agent])
        return slice(start, start + self.counts[agent])

    @classmethod
    def agree(cls, network: Network, counts: Sequence[int]) -> Places:
        """From how many rows each hosted agent has; the same at every agent."""
        own = np.zeros((len(network.hosted), network.size))
        own[np.arange(len(own)), network.hosted] = counts
        heard = total(network, own)[0]  # the first hosted agent knows what all know
        whole = np.rint(np.where(np.isfinite(heard), heard, -1.0))
        wrong = (whole < 0) | (whole >= 2**53) | (np.abs(heard - whole) > 0.25)
        if np.count_nonzero(wrong):
            bad = int(np.argmax(wrong))
            raise WireError(f"agent {bad} says to have {heard[bad]:g} rows: it runs something else")
        return cls(tuple(int(count) for count in whole))

    def all_gather(self, network: Network, tables: Sequence[Array], width: int) -> Array:
        """One row of `width` distances for each row there is, from those of the hosted agents; over a tree."""
        heard = all_gather(network, tables, width)
        for agent, (table, count) in enumerate(zip(heard, self.counts, strict=True)):
            if len(table) != count or np.count_nonzero(table < 0):
                raise WireError(
                    f"{len(table)} rows of distances arrived from agent {agent}, where {count} were due and none below "
                    "0: it runs something else"
                )
        return np.vstack(heard)
