"""The rows of all agents in one order: whose rows are where in an N x N matrix of distances.

    N_k  how many rows agent k has           summed over the network, one number per agent; rounded
    N    their sum                           agent k's rows: N_1 + .. + N_{k-1} to N_1 + .. + N_k

Thesis, section 7.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peerlearn.algorithms.all_gather import all_gather
from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.unexpected import LIKELY_CAUSE
from peerlearn.arrays import Array
from peerlearn.errors import DataError, WireError
from peerlearn.network.base import Network

# Rows of all agents: the six N x N matrices of a model then take 20 GB, and N^2 is below 2^31.
MOST_ROWS = 20_000


@dataclass(frozen=True)
class Places:
    """The places of all agents' rows among all rows.

    counts: how many rows each agent has, by its number.

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
                f"all agents together have {self.N:,} rows, and every agent would hold the "
                f"distances between all of them, which is for {MOST_ROWS:,} rows at most: "
                "give fewer rows, or use AnchorLapClassifier, which needs no distances"
            )

    @cached_property
    def N(self) -> int:
        """Number of rows of all agents."""
        return sum(self.counts)

    def of(self, agent: int) -> slice:
        """Return the places of one agent's rows."""
        start = sum(self.counts[:agent])
        return slice(start, start + self.counts[agent])

    @classmethod
    def agree(cls, network: Network, counts: Sequence[int]) -> Places:
        """Return the places of all rows, from the row counts of the hosted agents."""
        own = np.zeros((len(network.hosted), network.size))
        own[np.arange(len(own)), network.hosted] = counts
        heard = total(network, own)[0]  # the first hosted agent knows what all know
        whole = np.rint(np.where(np.isfinite(heard), heard, -1.0))
        wrong = (whole < 0) | (whole >= 2**53) | (np.abs(heard - whole) > 0.25)
        if np.count_nonzero(wrong):
            bad = int(np.argmax(wrong))
            raise WireError(f"agent {bad} announced {heard[bad]:g} rows: {LIKELY_CAUSE}")
        return cls(tuple(int(count) for count in whole))

    def all_gather(self, network: Network, tables: Sequence[Array], width: int) -> Array:
        """Return one row of `width` distances for each row of all agents, sent over a tree.

        tables: those of the hosted agents.
        """
        heard = all_gather(network, tables, width)
        for agent, (table, count) in enumerate(zip(heard, self.counts, strict=True)):
            if len(table) != count or np.count_nonzero(table < 0):
                raise WireError(
                    f"{len(table)} rows of distances arrived from agent {agent} "
                    f"(expected {count}, none below 0): {LIKELY_CAUSE}"
                )
        return np.vstack(heard)
