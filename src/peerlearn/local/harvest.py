"""The least-squares problems of agents that have sequences: states are added up while the reservoir runs.

    G_k = sum of r r',   P_k = sum of r d'         r = [1, x[n], h[n]], over agent k's sequences, without the washout

An agent with fewer samples than columns keeps its rows, as in `least_squares`; of others only few
rows are ever held.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg.blas import dsyrk

from peerlearn.arrays import Array
from peerlearn.local.least_squares import LeastSquares, Tall, Wide, mirrored

Blocks = Iterable[
    tuple[int, slice, Array]
]  # which sequence, which times, and the rows that the readout sees
MANY = 100  # rows that are worth a product of their own


class Kept:
    """All rows of one agent."""

    def __init__(self, rows: int, B: int, M: int) -> None:
        self.H, self.Y, self.held = np.empty((rows, B)), np.empty((rows, M)), 0

    def add(self, H: Array, Y: Array) -> None:
        self.H[self.held : self.held + len(H)], self.Y[self.held : self.held + len(H)] = H, Y
        self.held += len(H)


class Summed(Kept):
    """H'H and H'Y of one agent; rows that come few at a time wait until they are many."""

    def __init__(self, B: int, M: int) -> None:
        super().__init__(MANY, B, M)
        self.upper, self.HY = np.zeros((B, B), order="F"), np.zeros((B, M))

    def add(self, H: Array, Y: Array) -> None:
        if len(H) >= MANY:
            self._sum(H, Y)
            return
        if self.held + len(H) > MANY:
            self._sum_held()
        super().add(H, Y)

    def sums(self) -> tuple[Array, Array]:
        self._sum_held()
        return mirrored(self.upper), self.HY

    def _sum_held(self) -> None:
        self._sum(self.H[: self.held], self.Y[: self.held])
        self.held = 0

    def _sum(self, H: Array, Y: Array) -> None:
        self.upper = dsyrk(1.0, H.T, beta=1.0, c=self.upper, overwrite_c=1)
        self.HY += H.T @ Y


def harvest_problems(
    blocks: Blocks, targets: Sequence[Array], owners: Sequence[int], *, washout: int, width: int
) -> tuple[LeastSquares, list[Array]]:
    """The problems of agents 0, 1, ..., who own these sequences, and the last row of every sequence."""
    M = targets[0].shape[1]
    rows = np.bincount(owners, [max(len(d) - washout, 0) for d in targets]).astype(np.intp)
    agents: list[Kept] = [Summed(width, M) if n >= width else Kept(int(n), width, M) for n in rows]
    ends = [np.empty(0)] * len(targets)
    for j, times, H in blocks:
        learned = max(times.start, washout)
        if learned < times.stop:
            agents[owners[j]].add(H[learned - times.start :], targets[j][learned : times.stop])
        if times.stop == len(targets[j]):
            ends[j] = H[-1].copy()
    return LeastSquares(_groups(agents), rows, (width, M)), ends


def _groups(agents: Sequence[Kept]) -> list[Wide | Tall]:
    tall = [k for k, agent in enumerate(agents) if isinstance(agent, Summed)]
    wide = [k for k, agent in enumerate(agents) if not isinstance(agent, Summed)]
    groups: list[Wide | Tall] = []
    sums = [agent.sums() for agent in agents if isinstance(agent, Summed)]
    if sums:
        groups.append(
            Tall(np.array(tall), np.stack([G for G, _ in sums]), np.stack([HY for _, HY in sums]))
        )
    if wide:
        stacked = LeastSquares.of_rows(
            [agents[k].H for k in wide], [agents[k].Y for k in wide]
        ).groups
        groups += [replace(group, agents=np.array(wide)[group.agents]) for group in stacked]
    return groups
