"""Routes: the rows that travel between processes in a round, and who receives them.

A process hosts some agents. Its halo is the rows of agents in other processes that its agents hear
in a round. A row that several agents of one process need is sent once. If all agents send to all
neighbors, the route is the same in every round; a tree has one route per level and direction.
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
    """Links of one round, as one process sees them.

    Local rows are numbered: first the agents hosted here, then the halo, by process and then by
    agent.
    """

    sent: dict[int, Indices]  # local rows that go to each process, by ascending agent
    heard: dict[int, Indices]  # agents whose rows arrive from each process, ascending
    messages: int  # messages of the agents hosted here, one per link
    receivers: Indices  # local rows of the agents here that receive something, ascending
    indptr: Indices  # receiver i has the senders indices[indptr[i] : indptr[i + 1]]
    indices: Indices  # local rows of the senders, by ascending agent
    hosted: int  # number of agents here
    _sums: dict[np.dtype[Any], Any] = field(default_factory=dict, repr=False)

    @property
    def halo(self) -> int:
        """Number of rows that arrive from other processes."""
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
        """Return the matrix that sums the rows for each receiver (receivers x local rows).

        It has the type of the rows, because scipy would turn integers into float64.
        """
        if dtype not in self._sums:
            ones = np.ones(len(self.indices), dtype)
            shape = (len(self.receivers), self.hosted + self.halo)
            self._sums[dtype] = sp.csr_array((ones, self.indices, self.indptr), shape=shape)
        return self._sums[dtype]


def route(
    senders: Indices, receivers: Indices, place: Indices, here: int, hosted: tuple[int, ...]
) -> Route:
    """Return the route along links senders[i] -> receivers[i]; place[k] is agent k's process."""
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
    """Return indptr, indices and values of C for the agents here.

    Columns are local rows, in the order of agent numbers.
    """
    order = list(hosted) + [agent for agents in links.heard.values() for agent in agents.tolist()]
    local = {agent: row for row, agent in enumerate(order)}
    spans = [slice(C.indptr[agent], C.indptr[agent + 1]) for agent in hosted]
    indptr = np.cumsum([0, *(span.stop - span.start for span in spans)]).astype(np.intp)
    columns = np.concatenate([C.indices[span] for span in spans])
    return indptr, _rows(columns, local), np.concatenate([C.data[span] for span in spans])


def _by_process(processes: Indices, agents: Indices) -> dict[int, Indices]:
    """Group agents by process, both ascending, each agent once."""
    return {
        int(process): np.unique(agents[processes == process]) for process in np.unique(processes)
    }


def _rows(agents: Indices, local: dict[int, int]) -> Indices:
    return np.array([local[agent] for agent in agents.tolist()], dtype=np.intp)
