"""Contract between the algorithms and the engine that carries their messages.

A network hosts some of its agents in this process: all of them in simulation, some per rank on a
cluster, one at a real site. The leading axis of every array that is exchanged is the agents hosted
here. One round is

    x = network.mix(x)          x_k <- sum_j C_kj x_j        (thesis, appendix A.2; agents are rows)

Only the network may combine entries of that axis. Rounds are synchronous and numbered: all
processes make the same calls in the same order.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from typing import Any, Literal, Self

import networkx as nx
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from peerlearn import graphs
from peerlearn import weights as weightings
from peerlearn.arrays import ADDENDS, Addends, Array, Indices, all_finite, per_agent
from peerlearn.errors import InputError, NetworkError, WireError
from peerlearn.numerics import NUMERICS
from peerlearn.secret.contributors import TotalRecord
from peerlearn.secret.keys import KEY_BYTES, digest
from peerlearn.secret.masks import check_colluders
from peerlearn.secret.privacy_statement import Payment
from peerlearn.secret.signing import SessionSigner, Signer

__all__ = ["Network"]

# What one agent sends in `exchange`: named arrays of any shape.
Message = Mapping[str, np.ndarray[Any, Any]]
Secrecy = Literal["sums"]
PLAIN = "plain"
MASKED = "masked sum"


@dataclass(frozen=True)
class Counts:
    """Rounds, messages and bytes that the hosted agents sent.

    Parameters
    ----------
    rounds : int, default 0
        Rounds in which all agents took part.
    messages : int, default 0
        Messages that the hosted agents sent, one per link and round.
    bytes : int, default 0
        Payload of these messages, without the headers that an engine adds.
    lost : int, default 0
        Messages on a link that failed in their round. They are also counted in `messages`.

    Examples
    --------
    >>> from peerlearn.network import Counts
    >>> print(Counts(rounds=1, messages=8, bytes=64) + Counts(rounds=2, messages=16, bytes=128))
    3 rounds, 24 messages, 0.000192 MB
    """

    rounds: int = 0
    messages: int = 0
    bytes: int = 0
    lost: int = 0

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
        """Bytes in units of 10^6."""
        return self.bytes / 1e6

    def __str__(self) -> str:
        lost = f", {self.lost:,} lost" if self.lost else ""
        return f"{self.rounds:,} rounds, {self.messages:,} messages, {self.megabytes:,.3g} MB{lost}"


class Ledger:
    """Running count of everything that the hosted agents sent since the network was made.

    Attributes
    ----------
    rounds, messages, bytes, lost : int
        As in `Counts`.

    Examples
    --------
    >>> from peerlearn.network import Ledger
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
        self.rounds = 0
        self.messages = 0
        self.bytes = 0
        self.lost = 0

    def count(self, *, rounds: int, messages: int, bytes: int, lost: int = 0) -> None:
        """Add to the counts."""
        self.rounds += rounds
        self.messages += messages
        self.bytes += bytes
        self.lost += lost

    def mark(self) -> Counts:
        """Return the counts so far. Pass them to `since` later."""
        return Counts(self.rounds, self.messages, self.bytes, self.lost)

    def since(self, mark: Counts | None = None) -> Counts:
        """Return what was sent after `mark`, or since the network was made."""
        return self.mark() - (mark or Counts())

    def __repr__(self) -> str:
        return f"<Ledger: {self.mark()}>"


@dataclass(frozen=True)
class Tree:
    """Breadth-first spanning tree of the graph.

    Every agent knows the graph, so every agent can compute the whole tree.

    Parameters
    ----------
    parent : array of int
        Number of the parent of each agent.
    depth : array of int
        Distance of each agent from the root.

    Examples
    --------
    >>> from peerlearn import SimulatedNetwork, graphs
    >>> tree = SimulatedNetwork(graphs.linear(5)).tree
    >>> tree.root, tree.height
    (2, 2)
    """

    parent: Indices
    depth: Indices

    @property
    def root(self) -> int:
        """Number of the agent at the root."""
        return int(np.argmin(self.depth))

    @property
    def height(self) -> int:
        """Largest distance of an agent from the root."""
        return int(self.depth.max())

    @cached_property
    def levels(self) -> tuple[Indices, ...]:
        """Agents at depth 1, 2, .., height, each level in ascending order."""
        return tuple(np.flatnonzero(self.depth == d) for d in range(1, self.height + 1))


class Network(ABC):
    """Agents that can only talk to their neighbors in a graph: the base class of all engines.

    Use `SimulatedNetwork`, `MPINetwork` or `PeerNetwork`. An engine of your own is a subclass that
    defines `hosted` and the abstract methods. `peerlearn.testing` has checks for it.

    Parameters
    ----------
    graph : networkx.Graph
        Connected graph of the agents, numbered from 0; see `peerlearn.graphs`.
    weights : str or matrix, default "metropolis"
        Mixing matrix C: "metropolis", "max-degree", "laplacian", "fastest", or an array with one
        row and one column per agent.

    Attributes
    ----------
    graph : networkx.Graph
        The graph, as checked.
    size : int
        Number of agents, L in the formulas.
    weights : sparse array
        Mixing matrix C.
    names : tuple of str
        Names of the agents, as they occur in error messages.
    ledger : Ledger
        Everything that the hosted agents sent.
    reliable : bool
        Whether every message arrives. Only plain averaging is right where messages are lost.
    residual : float or None
        Last residual that an algorithm reported, for programs that show progress. No algorithm
        reads it.
    secrecy : {"sums"} or None
        "sums" if agents send each other masked sums and public values only; see `SimulatedNetwork`.
    colluders : int
        Number of agents that may put together what they see, and still learn nothing but totals.
    noise_seed : int or None
        Seed of the noise of differential privacy, for tests. None, the default, draws it from the
        system; with a seed that others know, nothing is private.

    Examples
    --------
    >>> from peerlearn import Network, SimulatedNetwork, graphs
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> isinstance(network, Network)
    True
    >>> network.size, network.diameter, network.hosted
    (5, 2, (0, 1, 2, 3, 4))
    """

    reliable: bool = True
    residual: float | None = None
    secrecy: Secrecy | None = None
    colluders: int = 0
    noise_seed: int | None = None
    consent: bool = False  # whether differences of totals may show the hosted agent's data
    data_version: str = ""  # digest of the hosted agent's data, if the engine knows it
    sessions: Any = None  # of secret sums, in a block of `algorithms.secret_sums.one_session`
    _messages_allowed: bool = False
    # Name and protection of what is sent now, for the ledger of what left a site.
    _quantity: str = ""
    _protection: str = PLAIN

    def __init__(self, graph: nx.Graph, weights: npt.ArrayLike | sp.sparray = "metropolis") -> None:
        self.graph = graphs.checked(graph)
        self.size: int = self.graph.number_of_nodes()
        self.weights = weightings.named(weights, self.graph)
        self.names: tuple[str, ...] = tuple(map(str, range(self.size)))
        self.ledger = Ledger()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # A network is a resource, like a connection: an estimator cloned by scikit-learn talks over
        # the same one.
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size} agents, {self.graph.number_of_edges()} links)"

    # Secrecy
    # ---------------------------------------------------------------------------------

    def keep_secrets(self, secrecy: Secrecy | None, colluders: int) -> None:
        """Refuse from now on to send anything but masked sums and public values.

        Constructors of engines call it. It does nothing if `secrecy` is None.
        """
        if secrecy is None:
            return
        if secrecy != "sums":
            raise InputError(f"secrecy is {secrecy!r:.60}: give 'sums' or None")
        check_colluders(colluders, self.size)
        if not self.reliable:
            raise InputError(
                "secrecy needs every message to arrive, because masks cancel only in the sum of "
                "all agents: leave faults out"
            )
        self.secrecy = secrecy
        self.colluders = colluders
        self.signer(bytes(32))  # raises MissingExtra now if there is no cryptography

    def signer(self, seed: bytes) -> Signer:
        """Return what signs for an agent hosted here: by default, a key that is made of a seed.

        seed: 32 random bytes.
        """
        return SessionSigner(seed)

    def keep_secret(self, what: str, make: Callable[[], bytes]) -> bytes:
        """Return what `make` returns. An engine that resumes returns the same bytes then."""
        return make()

    def noise_key(self, agent: int) -> bytes:
        """Return the key of a hosted agent's noise, the same one when a run is resumed.

        Noise that was drawn anew after a restart would be added to the same rows, and both sums
        together would have less of it.
        """
        if self.noise_seed is not None:
            return digest(b"%d" % self.noise_seed, b"noise of agent %d" % agent)
        return self.keep_secret("noise", partial(os.urandom, KEY_BYTES))

    def pay_for_privacy(self, payment: Payment) -> None:
        """Note what a release costs; an engine with a budget refuses what is too much."""

    def commit_secret(self, what: str, digest: bytes) -> None:
        """Note the digest of what will be masked; an engine that resumes refuses another one."""

    def earlier_totals(self, own: str) -> Sequence[TotalRecord]:
        """Return the sessions of secret sums that the hosted agent recorded before this one.

        own: random bytes of the agent in this session, which a restarted agent may have recorded.
        """
        return ()

    def record_total(self, record: TotalRecord) -> None:
        """Record a session before its first masked sum is sent, if the engine keeps records."""

    @contextmanager
    def allow_messages(self, quantity: str = "", protection: str = PLAIN) -> Iterator[None]:
        """Return a block in which messages are sent under secrecy too.

        It is for masked sums, and for what does not depend on the data of a single agent.

        quantity: name of what is sent, for the ledger of what left a site; by default, the name
        that belongs to the code that sends. protection: how it is protected.
        """
        before = (self._messages_allowed, self._quantity, self._protection)
        self._messages_allowed = True
        self._quantity = quantity
        self._protection = protection
        try:
            yield
        finally:
            self._messages_allowed, self._quantity, self._protection = before

    @property
    def hides_sums(self) -> bool:
        """Whether sums are secret totals here: see algorithms/sums.py."""
        hidden = self.secrecy is not None and not self._messages_allowed
        return hidden and self.sessions is not None

    def check_allowed(self, call: str) -> None:
        """Raise InputError if this call would show the numbers of single agents under secrecy."""
        if self.secrecy is None or self._messages_allowed:
            return
        raise InputError(
            f"this network keeps sums secret, and {call} would show numbers of single agents to "
            "their neighbors; nothing was sent. Train RVFLClassifier, RVFLRegressor or "
            "ESNRegressor with solver='gram', which sends masked sums only, or make the network "
            "without secrecy"
        )

    # Every agent knows the graph and the weights, and therefore all of the following
    # ---------------------------------------------------------------------------------

    @cached_property
    def spectrum(self) -> tuple[float, float]:
        """Largest and smallest eigenvalue of the weights, without the 1 of the average."""
        return weightings.spectrum(self.weights)

    @property
    def contraction(self) -> float:
        """Largest factor by which one round of mixing multiplies the distance to the average."""
        return max(abs(value) for value in self.spectrum)

    @cached_property
    def mixing(self) -> Any:
        """Weights with a stored entry for every link and agent.

        Entries of weight zero are stored too, because messages travel on these links as well.
        """
        agents = range(self.size)
        links = nx.to_scipy_sparse_array(
            self.graph, nodelist=agents, weight=None, format="csr", dtype=np.float64
        )
        pattern = sp.coo_array(links + sp.eye_array(self.size))
        C = self.weights
        values = np.asarray(C[pattern.row, pattern.col]).ravel()
        full = sp.csr_array((values, (pattern.row, pattern.col)), C.shape)
        full.sort_indices()
        return full

    @cached_property
    def diameter(self) -> int:
        """Largest distance between two agents (an upper bound of it beyond 2000 agents)."""
        return graphs.diameter(self.graph)

    @cached_property
    def flood_rounds(self) -> int:
        """Rounds of flooding after which every agent has heard of every value.

        It is the diameter, and more where messages get lost.
        """
        return self.diameter

    @cached_property
    def tree(self) -> Tree:
        """Spanning tree of the graph."""
        return Tree(*graphs.spanning_tree(self.graph))

    @cached_property
    def rings(self) -> tuple[tuple[Indices, Indices], ...]:
        """Links that lead away from the root of the tree, as (senders, receivers) per distance."""
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

    # An engine defines these
    # ---------------------------------------------------------------------------------

    @property
    @abstractmethod
    def hosted(self) -> tuple[int, ...]:
        """Agents in this process, ascending: the leading axis of every exchanged array."""

    @abstractmethod
    def mix(self, x: Array) -> Array:
        """Do one round x_k <- sum_j C_kj x_j, summed in ascending agent number.

        The sum runs over the neighbors of k and k itself.
        """

    @abstractmethod
    def recur(self, x: Array, steps: Array) -> Array:
        """Do one round per row (a, b, c) of `steps`: x <- a C x + b x + c (x one round before).

        There is no x before the first round, so the first c is taken as zero.
        """

    @abstractmethod
    def mix_and_flood(self, x: Array, largest: Array) -> tuple[Array, Array]:
        """Do one round of `mix` and one of `flood` with the same messages."""

    @abstractmethod
    def flood(self, largest: Array) -> Array:
        """Do one round in which each agent keeps the largest of its own and its neighbors' values.

        Arrays are compared entry by entry.
        """

    @abstractmethod
    def pass_on(self, x: Addends, senders: Indices, receivers: Indices, *, add: bool) -> None:
        """Do one round along some links: senders[i] sends its row of x to receivers[i].

        The receiver adds the row to its own, or replaces its own by it. Changes x in place. Several
        rows for one receiver are first summed in ascending order of their senders. x is float64,
        int64 or uint64; integers are added modulo 2^64.
        """

    @abstractmethod
    def exchange(
        self, outbox: Sequence[Message], to: Sequence[Sequence[int]] | None = None
    ) -> list[dict[int, Message]]:
        """Do one round in which messages may differ in size.

        The named arrays of agent k reach its neighbors, or those of them in to[k]. An agent with an
        empty dict sends no message. Returns, per hosted agent, what each neighbor sent.
        """

    def mix_speaking(self, x: Array, speaking: npt.ArrayLike) -> Array:
        """Do one round of `mix` in which some agents are silent.

        x_k <- sum of C_kj x_j over the agents j that speak. Silent agents send nothing, and the
        ledger counts nothing for them.
        """
        self.must_hear_everybody()
        x = per_agent(x, len(self.hosted))
        speaks = np.asarray(speaking, dtype=bool)
        flat = x.reshape(len(x), -1)
        inbox = self.exchange(
            [{"x": row} if now else {} for row, now in zip(flat, speaks, strict=True)]
        )
        C = self.mixing
        mixed = np.zeros_like(flat)
        for k, (agent, heard) in enumerate(zip(self.hosted, inbox, strict=True)):
            rows = {sender: _row(message, flat[k], sender) for sender, message in heard.items()}
            if speaks[k]:
                rows[agent] = flat[k]
            for sender in sorted(rows):
                mixed[k] += C[agent, sender] * rows[sender]
        return mixed.reshape(x.shape)

    def must_hear_everybody(self, way_out: str = "let all agents speak") -> None:
        """Raise NetworkError if messages can get lost: a lost message looks like silence."""
        if not self.reliable:
            raise NetworkError(
                "agents cannot tell silence from a lost message, and this network loses some: "
                f"{way_out}"
            )

    def _must_be_finite(self, rows: Addends, agents: Sequence[int] | Indices | None = None) -> None:
        """Raise an error that names the agent if a number to be sent is not finite.

        One such number would spread to all agents. agents: whose rows these are; None for the
        hosted agents.
        """
        if all_finite(rows) or self.size == 1:
            return
        for agent, row in zip(self.hosted if agents is None else agents, rows, strict=True):
            if not all_finite(row):
                raise not_finite(self.names[agent])

    @property
    def mixing_here(self) -> Any:
        """`mixing` if a compiled loop may do rounds of `mix` by itself, else None.

        That needs all agents in this process, no lost messages and a free order of sums. The loop
        then reports its rounds with `count_mixed`.
        """
        return None

    def count_mixed(self, rounds: int, numbers: int) -> None:
        """Count rounds of `mix` done by a compiled loop, with `numbers` per message."""
        messages = rounds * (self.mixing.nnz - self.size)
        self.ledger.count(rounds=rounds, messages=messages, bytes=8 * messages * numbers)

    def gather(self, x: Array) -> Array | None:
        """Return every agent's entry, by agent number.

        It is for results and figures; an algorithm must not call it. If there are several
        processes, one of them gets the array and the others get None.
        """
        raise NetworkError(
            f"{type(self).__name__} has no place that may see every agent's entry: "
            "save each agent's own"
        )

    def close(self) -> None:
        """Close connections, if the engine has any."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: Any) -> None:
        self.close()


def _row(message: Message, like: Array, sender: int) -> Array:
    """Return the row in a message, or raise WireError if there is none of this shape."""
    row = message.get("x")
    if row is None or row.shape != like.shape or row.dtype != like.dtype:
        raise WireError(
            f"agent {sender} sent an unexpected message (expected a row of {like.size} numbers): "
            "it probably runs another version or configuration"
        )
    return row


def describe(network: Network, names: Sequence[str]) -> dict[str, Any]:
    """Return the settings that must be the same at all agents, whatever they learn."""
    C = network.mixing
    return {
        "the numerics version of peerlearn": NUMERICS,
        "the agents": list(names),
        "the graph": sorted(sorted(link) for link in network.graph.edges),
        "the weights": sha256(
            C.indptr.tobytes() + C.indices.tobytes() + C.data.tobytes()
        ).hexdigest()[:16],
    }


def not_finite(agent: str) -> NetworkError:
    """Return the error about an agent that would send NaN or infinite numbers.

    All engines raise the same one.
    """
    return NetworkError(
        f"agent {agent} computed numbers that are not finite, and those are never sent: "
        "check its rows, or choose other settings"
    )


def check_addends(x: Addends) -> None:
    """Raise InputError for rows of a type that no engine adds."""
    if x.dtype not in ADDENDS:
        known = ", ".join(each.name for each in ADDENDS)
        raise InputError(f"rows of type {x.dtype} are not passed on: give an array of {known}")


def row_bytes(x: Addends) -> int:
    """Return the bytes of one agent's entry of x in a message."""
    return x.nbytes // len(x)
