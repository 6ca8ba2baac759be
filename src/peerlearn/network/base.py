"""The contract between the mathematics and whatever carries the messages.

A network hosts some of its agents in this process: all of them in simulation, some per rank on a
cluster, one on a real
site. Everything exchanged has a leading axis: the agents hosted here. One round is

    x = network.mix(x)          x_k <- sum_j C_kj x_j         (thesis, appendix A.2; agents are rows)

Nothing else may look across that axis. Rounds are synchronous and numbered: all processes make the
same calls in the same order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import networkx as nx
import numpy as np
import scipy.sparse as sp

from peerlearn import graphs
from peerlearn import weights as weightings
from peerlearn.arrays import ADDENDS, Addends, Array, Indices, all_finite, per_agent
from peerlearn.errors import InputError, NetworkError, WireError

__all__ = ["Network"]

Message = Mapping[
    str, np.ndarray[Any, Any]
]  # what one agent sends in `exchange`: named arrays of any shape


@dataclass(frozen=True)
class Counts:
    """What the hosted agents sent: payload bytes, without the framing an engine adds."""

    rounds: int = 0
    messages: int = 0
    bytes: int = 0
    lost: int = 0  # of the messages, those on a link that failed in their round

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.rounds + other.rounds,
            self.messages + other.messages,
            self.bytes + other.bytes,
            self.lost + other.lost,
        )

    def __sub__(self, other: Counts) -> Counts:
        return Counts(
            self.rounds - other.rounds,
            self.messages - other.messages,
            self.bytes - other.bytes,
            self.lost - other.lost,
        )

    @property
    def megabytes(self) -> float:
        return self.bytes / 1e6

    def __str__(self) -> str:
        lost = f", {self.lost:,} lost" if self.lost else ""
        return f"{self.rounds:,} rounds, {self.messages:,} messages, {self.megabytes:,.3g} MB{lost}"


class Ledger:
    """Counts every round, message and byte that the hosted agents sent since the network was made.

    >>> ledger = Ledger()
    >>> ledger.count(rounds=1, messages=4, bytes=320)
    >>> before = ledger.mark()
    >>> ledger.count(rounds=1, messages=4, bytes=320)
    >>> print(ledger.since(before))
    1 rounds, 4 messages, 0.00032 MB
    >>> ledger.rounds
    2
    """

    def __init__(self) -> None:
        self.rounds = self.messages = self.bytes = self.lost = 0

    def count(self, *, rounds: int, messages: int, bytes: int, lost: int = 0) -> None:
        self.rounds += rounds
        self.messages += messages
        self.bytes += bytes
        self.lost += lost

    def mark(self) -> Counts:
        """The counts so far, to be given to `since` later."""
        return Counts(self.rounds, self.messages, self.bytes, self.lost)

    def since(self, mark: Counts | None = None) -> Counts:
        """What was sent after `mark`, or since the network was made."""
        return self.mark() - (mark or Counts())

    def __repr__(self) -> str:
        return f"<Ledger: {self.mark()}>"


@dataclass(frozen=True)
class Tree:
    """A breadth-first spanning tree of the graph: every agent can compute it from the network's description."""

    parent: Indices
    depth: Indices

    @property
    def root(self) -> int:
        return int(np.argmin(self.depth))

    @property
    def height(self) -> int:
        return int(self.depth.max())

    @cached_property
    def levels(self) -> tuple[Indices, ...]:
        """The agents at depth 1, 2, .., height, each in ascending order."""
        return tuple(np.flatnonzero(self.depth == d) for d in range(1, self.height + 1))


class Network(ABC):
    """Agents that can only talk to their neighbors in a graph."""

    reliable: bool = True  # False: messages may be lost, so that only plain averaging stays right
    residual: float | None = (
        None  # the last one an algorithm told of, for whoever watches a run; never read by one
    )

    def __init__(self, graph: nx.Graph, weights: Any = "metropolis") -> None:
        self.graph = graphs.checked(graph)
        self.size: int = self.graph.number_of_nodes()
        self.weights = weightings.named(weights, self.graph)
        self.names: tuple[str, ...] = tuple(
            map(str, range(self.size))
        )  # what sentences call the agents
        self.ledger = Ledger()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # A network is a resource, like a connection: an estimator cloned by scikit-learn talks over
        # the same one.
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size} agents, {self.graph.number_of_edges()} links)"

    # What the description of a network says, and every agent therefore knows
    # -----------------------------------------

    @cached_property
    def spectrum(self) -> tuple[float, float]:
        """The largest and smallest eigenvalue of the weights, apart from the one that belongs to the average."""
        return weightings.spectrum(self.weights)

    @property
    def contraction(self) -> float:
        """The factor by which one round of mixing shrinks the distance to the average, at least."""
        return max(abs(value) for value in self.spectrum)

    @cached_property
    def mixing(self) -> Any:
        """The weights with an entry for every link and agent, also where zero: messages travel on all links."""
        agents = range(self.size)
        links = nx.to_scipy_sparse_array(
            self.graph, nodelist=agents, weight=None, format="csr", dtype=np.float64
        )
        pattern, C = sp.coo_array(links + sp.eye_array(self.size)), self.weights
        values = np.asarray(C[pattern.row, pattern.col]).ravel()
        full = sp.csr_array((values, (pattern.row, pattern.col)), C.shape)
        full.sort_indices()
        return full

    @cached_property
    def diameter(self) -> int:
        """The longest of the shortest ways between two agents (an upper bound of it beyond 2000 agents)."""
        return graphs.diameter(self.graph)

    @cached_property
    def flood_rounds(self) -> int:
        """Rounds to flood for, so that everybody has heard: more than the diameter where messages get lost."""
        return self.diameter

    @cached_property
    def tree(self) -> Tree:
        return Tree(*graphs.spanning_tree(self.graph))

    @cached_property
    def rings(self) -> tuple[tuple[Indices, Indices], ...]:
        """For each distance from the tree's root: the links (senders, receivers) that lead one step further out."""
        depth = self.tree.depth
        links = np.array(self.graph.edges, dtype=np.intp).reshape(-1, 2)
        links = np.vstack([links, links[:, ::-1]])
        outward = links[depth[links[:, 0]] + 1 == depth[links[:, 1]]]
        outward = outward[np.lexsort((outward[:, 0], outward[:, 1]))]
        levels = depth[outward[:, 1]]
        return tuple(
            (outward[levels == d, 0], outward[levels == d, 1])
            for d in range(1, self.tree.height + 1)
        )

    # What an engine provides
    # -----------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def hosted(self) -> tuple[int, ...]:
        """The agents living in this process, in ascending order: the leading axis of everything exchanged."""

    @abstractmethod
    def mix(self, x: Array) -> Array:
        """One round: x_k <- sum_j C_kj x_j, summed over the neighbors and k itself in ascending agent number."""

    @abstractmethod
    def recur(self, x: Array, steps: Array) -> Array:
        """Rounds known beforehand, one per row (a, b, c) of steps: x <- a C x + b x + c (x one round before).

        Before the first round there was nothing: its c counts for zero.
        """

    @abstractmethod
    def mix_and_flood(self, x: Array, largest: Array) -> tuple[Array, Array]:
        """One round of `mix` whose messages also carry `largest`: each agent keeps the largest it has heard of."""

    @abstractmethod
    def flood(self, largest: Array) -> Array:
        """One round in which each agent keeps, entry by entry, the largest of its own and its neighbors' values."""

    @abstractmethod
    def pass_on(self, x: Addends, senders: Indices, receivers: Indices, *, add: bool) -> None:
        """One round along some links: senders[i] sends its row of x to receivers[i], who adds it or takes it over.

        Changes x in place. Several rows for one receiver are first summed in ascending order of
        their senders. x is float64, int64 or uint64; integers are added modulo 2^64.
        """

    @abstractmethod
    def exchange(
        self, outbox: Sequence[Message], to: Sequence[Sequence[int]] | None = None
    ) -> list[dict[int, Message]]:
        """One round of unequal messages: agent k's named arrays reach its neighbors, or those of them in to[k].

        An agent with nothing to say gives an empty dict and sends no message. Returns, per hosted
        agent, what each neighbor sent.
        """

    def mix_speaking(self, x: Array, speaking: Any) -> Array:
        """One round of `mix` in which some agents keep silent: x_k <- sum of C_kj x_j over those j that speak.

        Silent agents send nothing, and the ledger counts nothing for them.
        """
        self.must_hear_everybody()
        x, speaks = per_agent(x, len(self.hosted)), np.asarray(speaking, dtype=bool)
        flat = x.reshape(len(x), -1)
        inbox = self.exchange(
            [{"x": row} if now else {} for row, now in zip(flat, speaks, strict=True)]
        )
        C, mixed = self.mixing, np.zeros_like(flat)
        for k, (agent, heard) in enumerate(zip(self.hosted, inbox, strict=True)):
            rows = {sender: _row(message, flat[k], sender) for sender, message in heard.items()}
            if speaks[k]:
                rows[agent] = flat[k]
            for sender in sorted(rows):
                mixed[k] += C[agent, sender] * rows[sender]
        return mixed.reshape(x.shape)

    def must_hear_everybody(self, way_out: str = "let all agents speak") -> None:
        """Refuse where messages get lost, and with them the difference between silence and news."""
        if not self.reliable:
            raise NetworkError(
                f"agents cannot tell silence from a lost message, and this network loses some: {way_out}"
            )

    def _must_be_finite(self, rows: Addends, agents: Sequence[int] | Indices | None = None) -> None:
        """Refuse to send numbers that are not finite, and name the agent: mixed, they would spoil everybody's.

        agents: whose rows these are, if not those of the hosted agents.
        """
        if all_finite(rows) or self.size == 1:
            return
        for agent, row in zip(self.hosted if agents is None else agents, rows, strict=True):
            if not all_finite(row):
                raise not_finite(self.names[agent])

    @property
    def mixing_here(self) -> Any:
        """`mixing`, where a compiled loop may do its rounds of `mix` by itself: all agents live here, no message is
        lost, and the order of sums is free. None elsewhere. Whoever uses it tells the ledger with
        `count_mixed`.
        """
        return None

    def count_mixed(self, rounds: int, numbers: int) -> None:
        """Enter rounds of `mix` that a compiled loop has done: every agent sent so many numbers to every neighbor."""
        messages = rounds * (self.mixing.nnz - self.size)
        self.ledger.count(rounds=rounds, messages=messages, bytes=8 * messages * numbers)

    def gather(self, x: Array) -> Array | None:
        """Every agent's entry in one place, by agent number, for results and figures: an algorithm never calls it.

        Where agents live apart only one process gets it, the others get None.
        """
        raise NetworkError(
            f"{type(self).__name__} has no place that may see every agent's entry: save each agent's own"
        )

    def close(self) -> None:
        """Let go of connections; needed only where there are some."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: Any) -> None:
        self.close()


def _row(message: Message, like: Array, sender: int) -> Array:
    """The row of a message, if it is one."""
    row = message.get("x")
    if row is None or row.shape != like.shape or row.dtype != like.dtype:
        raise WireError(
            f"agent {sender} sent no row of {like.size} numbers where one was due: it runs something else"
        )
    return row


def not_finite(agent: str) -> NetworkError:
    """The error about an agent that would send NaN or infinite numbers, the same on every engine."""
    return NetworkError(
        f"agent {agent} computed numbers that are not finite, and those are never sent: check its rows, or choose "
        "other settings"
    )


def check_addends(x: Addends) -> None:
    """Refuse rows that no engine adds."""
    if x.dtype not in ADDENDS:
        known = ", ".join(each.name for each in ADDENDS)
        raise InputError(f"rows of type {x.dtype} are not passed on: give an array of {known}")


def row_bytes(x: Addends) -> int:
    """What one agent's entry of x weighs in a message."""
    return x.nbytes // len(x)
