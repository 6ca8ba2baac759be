"""Which rows cross from process to process in a round, and what is done with them where they arrive.

A process hosts some agents; the rows of others that its agents hear in a round are its halo. A row
that several agents of one process need crosses once. Where all agents send to all neighbors the
route is the same in every round; a tree has one route per level and direction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from peerlearn.arrays import Array, Indices


@dataclass(frozen=True, eq=False)
class Route:
    """The links of one round, as one process sees them.

    Local rows are numbered: first the agents hosted here, then the halo, by process and then by
    agent.
    """

    sent: dict[int, Indices]  # to each process, the local rows that go there, by ascending agent
    heard: dict[int, Indices]  # from each process, the agents whose rows arrive, ascending
    messages: int  # from agents hosted here, one per link
    receivers: Indices  # local rows of the agents here that hear somebody, ascending
    indptr: Indices  # for each receiver, where in `indices` its senders stand
    indices: Indices  # local rows of the senders, by ascending agent
    hosted: int  # agents here
    _sums: dict[np.dtype[Any], Any] = field(default_factory=dict, repr=False)

    @property
    def halo(self) -> int:
        """How many rows arrive from elsewhere."""
        return sum(map(len, self.heard.values()))

    @cached_property
    def senders(self) -> Indices:
        """Local rows of the agents here that send to somebody, ascending."""
        heard_here = self.indices[self.indices < self.hosted]
        return np.unique(np.concatenate([heard_here, *self.sent.values()]))

    @cached_property
    def all_send(self) -> bool:
        """Whether every agent here sends to somebody."""
        return len(self.senders) == self.hosted

    def sums(self, dtype: np.dtype[Any]) -> Any:
        """The matrix that adds up what each receiver hears: rows are receivers, columns local rows.

        It has the type of what is added: scipy would turn integers into float64.
        """
        if dtype not in self._sums:
            ones, shape = (
                np.ones(len(self.indices), dtype),
                (len(self.receivers), self.hosted + self.halo),
            )
            self._sums[dtype] = sp.csr_array((ones, self.indices, self.indptr), shape=shape)
        return self._sums[dtype]


def route(
    senders: Indices, receivers: Indices, place: Indices, here: int, hosted: tuple[int, ...]
) -> Route:
    """The route along links senders[i] -> receivers[i]; place[k] is the process of agent k."""
    local = {agent: row for row, agent in enumerate(hosted)}
    leaving = (place[senders] == here) & (place[receivers] != here)
    arriving = (place[senders] != here) & (place[receivers] == here)
    sent = _by_process(place[receivers[leaving]], senders[leaving])
    heard = _by_process(place[senders[arriving]], senders[arriving])
    for agents in heard.values():
        for agent in agents.tolist():
            local[agent] = len(local)
    mine = np.flatnonzero(place[receivers] == here)
    mine = mine[np.lexsort((senders[mine], receivers[mine]))]
    unique, starts = np.unique(receivers[mine], return_index=True)
    return Route(
        sent={process: _rows(agents, local) for process, agents in sent.items()},
        heard=heard,
        messages=int((place[senders] == here).sum()),
        receivers=_rows(unique, local),
        indptr=np.append(starts, len(mine)).astype(np.intp),
        indices=_rows(senders[mine], local),
        hosted=len(hosted),
    )


def mixing_rows(C: Any, links: Route, hosted: tuple[int, ...]) -> tuple[Indices, Indices, Array]:
    """indptr, indices and values of C for the agents here; columns are local rows, in the order of agent numbers."""
    order = list(hosted) + [agent for agents in links.heard.values() for agent in agents.tolist()]
    local = {agent: row for row, agent in enumerate(order)}
    spans = [slice(C.indptr[agent], C.indptr[agent + 1]) for agent in hosted]
    indptr = np.cumsum([0, *(span.stop - span.start for span in spans)]).astype(np.intp)
    columns = np.concatenate([C.indices[span] for span in spans])
    return indptr, _rows(columns, local), np.concatenate([C.data[span] for span in spans])


def _by_process(processes: Indices, agents: Indices) -> dict[int, Indices]:
    """For each process, ascending, its agents, ascending and once each."""
    return {
        int(process): np.unique(agents[processes == process]) for process in np.unique(processes)
    }


def _rows(agents: Indices, local: dict[int, int]) -> Indices:
    return np.array([local[agent] for agent in agents.tolist()], dtype=np.intp)
