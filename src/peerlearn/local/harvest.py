"""Least-squares problems of agents that have sequences, summed while the reservoir runs.

    G_k = sum of r r',   P_k = sum of r d'     r = [1, x[n], h[n]], over agent k's sequences,
                                               without the washout

An agent with fewer samples than columns keeps its rows, as in `least_squares`. Of other agents only
a few rows are in memory at any time: the BLAS routine that adds H'H needs MANY rows to be quick, so
rows that come in small blocks wait in a buffer until they are that many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np
from scipy.linalg.blas import dsyrk

from peerlearn.arrays import Array, Indices, product
from peerlearn.local.centred import FewRows, ManyRows, UncentredProblems, group_problems
from peerlearn.local.least_squares import LeastSquares, mirror
from peerlearn.local.normal_equations import sum_of_squares

# Which sequence, which times, and the rows that the readout sees.
Blocks = Iterable[tuple[int, slice, Array]]
MANY = 100  # rows that are worth a product of their own


class RowStore:
    """All rows of one agent."""

    def __init__(
        self,
        rows: int,
        B: int,
        M: int,
    ) -> None:
        self.H = np.empty((rows, B))
        self.Y = np.empty((rows, M))
        self.count = 0  # rows that are stored

    def add(self, H: Array, Y: Array) -> None:
        """Append rows."""
        end = self.count + len(H)
        self.H[self.count : end] = H
        self.Y[self.count : end] = Y
        self.count = end


class RowSums(RowStore):
    """H'H and H'Y of one agent. Rows that come few at a time wait until they are many."""

    def __init__(self, B: int, M: int) -> None:
        super().__init__(MANY, B, M)
        self.upper = np.zeros((B, B), order="F")
        self.HY = np.zeros((B, M))

    def add(self, H: Array, Y: Array) -> None:
        """Add rows to the sums, now or later."""
        if len(H) >= MANY:
            self._sum(H, Y)
            return
        if self.count + len(H) > MANY:
            self._flush()
        super().add(H, Y)

    def sums(self) -> tuple[Array, Array]:
        """Return H'H and H'Y of all rows."""
        self._flush()
        return mirror(self.upper), self.HY

    def _flush(self) -> None:
        self._sum(self.H[: self.count], self.Y[: self.count])
        self.count = 0

    def _sum(self, H: Array, Y: Array) -> None:
        self.upper = dsyrk(
            1.0,
            H.T,
            beta=1.0,
            c=self.upper,
            overwrite_c=1,
        )
        self.HY += product(H.T, Y)


class CentredRowSums(RowSums):
    """H'H and H'Y of one agent, about a pivot until the means of the network are known."""

    def __init__(self, B: int, M: int) -> None:
        super().__init__(B, M)
        self.about_pivot = ManyRows(B, M)

    def _sum(self, H: Array, Y: Array) -> None:
        self.about_pivot.add(H, Y)

    def finish(self) -> ManyRows:
        """Return the sums of all rows."""
        self._flush()
        return self.about_pivot


def harvest_problems(
    blocks: Callable[[], Blocks],
    targets: Sequence[Array],
    owners: Sequence[int],
    *,
    washout: int,
    width: int,
) -> tuple[LeastSquares, list[Array]]:
    """Return the problems of all agents, and the last row of every sequence.

    blocks: returns them from the beginning, whenever it is called. owners: the agent, 0, 1, ..., of
    each sequence.
    """
    agents, rows, ends = _harvest(blocks, targets, owners, washout, width, RowSums)
    tall = {k: agent.sums() for k, agent in enumerate(agents) if isinstance(agent, RowSums)}
    wide = {k: (agent.H, agent.Y) for k, agent in enumerate(agents) if k not in tall}
    shape = (width, targets[0].shape[1])
    squares = np.bincount(owners, [sum_of_squares(d[washout:]) for d in targets])
    read_again = partial(_read, blocks, targets, owners, washout)
    groups = group_problems(tall, wide)
    return LeastSquares(groups, rows, shape, squares.astype(np.float64), read_again), ends


def harvest_uncentred(
    blocks: Callable[[], Blocks],
    targets: Sequence[Array],
    owners: Sequence[int],
    *,
    washout: int,
    width: int,
) -> tuple[UncentredProblems, list[Array]]:
    """Return the same as `harvest_problems`, for problems about means that are not known yet."""
    agents, rows, ends = _harvest(blocks, targets, owners, washout, width, CentredRowSums)
    parts: list[FewRows | ManyRows] = []
    for agent in agents:
        if isinstance(agent, CentredRowSums):
            parts.append(agent.finish())
        else:
            parts.append(FewRows(agent.H, agent.Y))

    def read() -> Iterable[tuple[int, Array, None]]:
        for k, HY in _read(blocks, targets, owners, washout):
            yield k, HY, None

    return UncentredProblems(parts, rows.tolist(), (width, targets[0].shape[1]), read), ends


def _read(
    blocks: Callable[[], Blocks], targets: Sequence[Array], owners: Sequence[int], washout: int
) -> Iterable[tuple[int, Array]]:
    """Yield agents and their rows [H Y] after the washout, block by block."""
    for j, times, H in blocks():
        first = max(times.start, washout)
        if first < times.stop:
            new = H[first - times.start :]
            yield owners[j], np.hstack([new, targets[j][first : times.stop]])


def _harvest(
    blocks: Callable[[], Blocks],
    targets: Sequence[Array],
    owners: Sequence[int],
    washout: int,
    width: int,
    kind: type[RowSums],
) -> tuple[list[RowStore], Indices, list[Array]]:
    """Return the rows or sums of each agent, its number of rows, and the last rows of sequences.

    kind: the class of sums of an agent with many rows.
    """
    M = targets[0].shape[1]
    samples = [max(len(d) - washout, 0) for d in targets]
    rows = np.bincount(owners, samples).astype(np.intp)
    agents: list[RowStore] = []
    for n in rows.tolist():
        agents.append(kind(width, M) if n >= width else RowStore(n, width, M))
    ends = [np.empty(0)] * len(targets)
    for j, times, H in blocks():
        first = max(times.start, washout)
        if first < times.stop:
            agent = agents[owners[j]]
            agent.add(H[first - times.start :], targets[j][first : times.stop])
        if times.stop == len(targets[j]):
            ends[j] = H[-1].copy()
    return agents, rows, ends
