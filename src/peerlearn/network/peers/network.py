"""One agent per process, neighbor to neighbor, no server anywhere.

A round sends one row to each neighbor and waits for theirs. An agent that is killed and started
again with the same command goes on from its checkpoint; the others wait for it. What crosses a link
is in frame.py, how a conversation survives broken connections in link.py, and how a run survives a
kill in memory.py.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from peerlearn import graphs
from peerlearn.arrays import Array, all_finite
from peerlearn.errors import InputError, NetworkError, PeerlearnError, Stopped, WireError
from peerlearn.network import codec
from peerlearn.network.base import Network, not_finite
from peerlearn.network.distributed import Arrays, DistributedNetwork, Letter
from peerlearn.network.peers.addresses import checked_address, only_loopback
from peerlearn.network.peers.frame import MOST_BYTES, MOST_TEXT, Kind
from peerlearn.network.peers.identity import Identity
from peerlearn.network.peers.journal import Journal
from peerlearn.network.peers.link import Left, Link, Refused, Speaker
from peerlearn.network.peers.mailbox import Parcel
from peerlearn.network.peers.replay import NoReplay, Replay
from peerlearn.network.peers.rounds import RoundExchange, Take, Waiting
from peerlearn.network.peers.timeouts import Timeouts
from peerlearn.network.routes import Route
from peerlearn.numerics import NUMERICS

__all__ = ["PeerNetwork"]

LONGEST_SETTING = 1 << 17  # bytes that are sent as they are
MOST_SETTINGS = MOST_TEXT - (1 << 16)  # bytes of all of them: a hello has other things to say too

log = logging.getLogger("peerlearn.peers")


class Interrupted(Stopped):
    """Somebody asked this agent to stop; its neighbors wait for it."""


class PeerNetwork(DistributedNetwork):
    """One agent of a graph, in this process; its neighbors are reached over mutual TLS.

    agent: the number of this agent. listen: "host:port" for neighbors with lower numbers, who call.
    addresses: where
    neighbors with higher numbers listen, whom this agent calls. identity: the agent's certificate
    and key, see `Identity.load`; without one only insecure_loopback=True will do, which listens on
    this machine alone. names: of all agents, as in their certificates. run, settings: compared with
    every neighbor before the first round. checkpoints: a folder, or None to keep none.
    own_settings: what must be the same when this agent is started again, such as a checksum of its
    data.

    Use it in a `with` block: where that ends well, agents stay until their neighbors are done too;
    an error ends the run for the neighbors as well.
    """

    checks_every_round = True  # in `_swap`
    compiled = False

    def __init__(
        self,
        graph: nx.Graph,
        agent: int,
        weights: Any = "metropolis",
        *,
        listen: str,
        addresses: Mapping[int, str],
        identity: Identity | None = None,
        insecure_loopback: bool = False,
        names: Sequence[str] | None = None,
        run: str = "run",
        settings: Mapping[str, Any] | None = None,
        checkpoints: Path | None = None,
        own_settings: Mapping[str, Any] | None = None,
        patience: Timeouts | None = None,
    ) -> None:
        graph, patience = graphs.checked(graph), patience or Timeouts()
        size = len(graph)
        if not 0 <= agent < size:
            raise InputError(
                f"agent {agent} is not one of the {size} agents of the graph, 0 to {size - 1}"
            )
        super().__init__(graph, weights, np.arange(size), agent)
        self.names = tuple(names) if names is not None else tuple(f"agent-{k}" for k in range(size))
        self._check(listen, addresses, identity, insecure_loopback)
        compared = {**description_of(self, self.names), **(settings or {})}
        self._me = Speaker(run, agent, self.names[agent], in_words(compared))
        horizon = 4 * (
            self.tree.height + 2
        )  # rounds that an agent can be ahead of a neighbor: two sums over the tree
        links = {k: Link(self._me, k, self.names[k], horizon) for k in sorted(self.graph[agent])}
        self._exchange = RoundExchange(
            self._me,
            links,
            patience,
            listen=listen,
            addresses=addresses,
            identity=None if insecure_loopback else identity,
        )
        self._replay: NoReplay = NoReplay(self._me, links)
        if checkpoints is not None:
            self._replay = Replay(
                self._me,
                links,
                Journal(Path(checkpoints)),
                lock=self._exchange.driving,
                own_settings=in_words(own_settings or {}),
                save_every=patience.save_every,
                bytes_sent=lambda: self._exchange.bytes_sent,
            )
        self._exchange.bytes_sent = self._replay.bytes_before
        try:
            self._exchange.start(meet=not self._replay.restored)
        except BaseException as error:
            self._end(
                error, save=False
            )  # there is nothing new, and the folder may be another process's
            raise

    @property
    def finished(self) -> bool:
        """Whether this run was already finished when this process started: nothing is left but to say so."""
        return self._replay.finished

    @property
    def port(self) -> int:
        """Where this agent listens: of interest when it was asked to listen on port 0."""
        return self._exchange.port

    @property
    def round(self) -> int:
        """Rounds behind this agent."""
        return self._me.done

    @property
    def bytes_sent(self) -> int:
        """With headers, and with what was sent again after a restart; the ledger counts what the algorithm sent."""
        return self._exchange.bytes_sent

    @property
    def state(self) -> str:
        """In a few words, for people: connecting, running, waiting for somebody, done."""
        return self._exchange.state

    @property
    def waiting(self) -> Waiting | None:
        """Whom this agent has been waiting for, and since when; None unless it has waited for long."""
        return self._exchange.waiting

    def interrupt(self, reason: str) -> None:
        """Stop at the next round, with a checkpoint: for handlers of signals and other threads."""
        self._exchange.fail(Interrupted(reason))

    def finish(self) -> None:
        """All work is done and saved: stay until every neighbor has what it needs of us, then forget the run."""
        if not self.finished:
            self._replay.save(finished=True)
        self._me.finished = True
        try:
            if self._exchange.farewell():
                self._replay.forget()
        except PeerlearnError as error:
            log.warning(
                "our work is done, but not that of all neighbors (%s): start again if they need us",
                error,
            )
        finally:
            self._exchange.close()

    def leave(self, reason: str) -> None:
        """End the run for the neighbors too, and say why; a checkpoint is kept."""
        self._exchange.leave(reason)
        self.close()

    def close(self) -> None:
        """Save where we are and close the connections; neighbors wait for this agent to come back."""
        self._replay.save()
        self._exchange.close()

    def __exit__(self, *raised: Any) -> None:
        error = raised[1]
        if error is None:
            self.finish()
        else:
            self._end(error)

    def _end(self, error: BaseException, *, save: bool = True) -> None:
        """Close everything. Neighbors wait for an agent that was interrupted or refused; of any other end they hear."""
        if isinstance(error, Left) and not isinstance(error, Refused):
            self._exchange.leave(str(error))
        elif not isinstance(error, Interrupted | Refused | KeyboardInterrupt | SystemExit):
            why = " ".join(str(error).split()) or type(error).__name__
            self._exchange.leave(f"agent {self._me.name} ended the run: {why}")
        if save:
            self._replay.save()
        self._exchange.close()

    # What the engine provides
    # ----------------------------------------------------------------------------------------

    def _new_halo(self, links: Route, width: int, dtype: np.dtype[Any]) -> _PeerHalo:
        return _PeerHalo(self, links, width, dtype)

    def _swap(
        self, rows: Any, receivers: Sequence[int], senders: Sequence[int], take: Take
    ) -> None:
        """One round: our row to the receivers, and one of each sender, which `take` puts in its place."""
        outgoing: dict[int, list[bytes]] = {}
        if receivers:
            if rows[0].nbytes > MOST_BYTES:
                raise NetworkError(
                    f"an entry of {rows[0].nbytes} bytes is too large: {MOST_BYTES} at most in a message"
                )
            if not all_finite(rows[0]):
                raise not_finite(self._me.name)
            frames = self._me.frames(Kind.ROW, rows[0], self._me.done + 1)
            outgoing = dict.fromkeys(receivers, frames)
        self._exchange.round(outgoing, senders, take)

    def _post(self, letters: dict[int, list[Letter]]) -> list[Letter]:
        """Every neighbor gets a letter, if only an empty one: how else should it know that none will come?"""
        contents = {
            neighbor: letters[neighbor][0][2] if neighbor in letters else b""
            for neighbor in self._neighbors
        }
        if not all(_finite(content) for content in contents.values() if content):
            raise not_finite(self._me.name)
        if any(len(content) > MOST_BYTES for content in contents.values()):
            raise NetworkError(f"a message is too large: {MOST_BYTES} bytes at most")
        number, arrived = self._me.done + 1, []
        outgoing = {
            neighbor: self._me.frames(Kind.LETTER, np.frombuffer(content, np.uint8), number)
            for neighbor, content in contents.items()
        }

        def take(neighbor: int, parcel: Parcel) -> None:
            if content := parcel.letter(self.names[neighbor]):
                if not _finite(content):
                    raise WireError(
                        f"agent {self.names[neighbor]} sent numbers that are not finite"
                    )
                arrived.append((neighbor, self._here, content))

        self._exchange.round(outgoing, list(self._neighbors), take)
        return arrived

    def _call(self, what: str, rounds: int, compute: Callable[[], Arrays]) -> Arrays:
        return self._replay.call(what, rounds, compute)

    def _resumed(self, rounds: int, shape: tuple[int, ...]) -> tuple[int, Array, Array] | None:
        return self._replay.resumed(rounds, shape)

    def _reached(self, done: int, now: Array, before: Array) -> None:
        self._replay.reached(done, now, before)

    # -----------------------------------------------------------------------------------------------------------------

    @property
    def _neighbors(self) -> Mapping[int, Link]:
        return self._exchange.links

    def _check(
        self,
        listen: str,
        addresses: Mapping[int, str],
        identity: Identity | None,
        insecure_loopback: bool,
    ) -> None:
        """Refuse what could not work, before anything is opened."""
        if len(self.names) != self.size or len(set(self.names)) != self.size:
            raise InputError(
                f"{self.size} agents need {self.size} different names, not {', '.join(self.names)}"
            )
        me = self.names[self._here]
        checked_address(listen, me)
        for neighbor in sorted(self.graph[self._here]):
            if neighbor > self._here and neighbor not in addresses:
                raise InputError(
                    f"agent {me} calls its neighbor {self.names[neighbor]} and has no address of it"
                )
            if neighbor in addresses:
                checked_address(addresses[neighbor], self.names[neighbor])
        if insecure_loopback:
            only_loopback([listen, *addresses.values()])
        elif identity is None:
            raise InputError(
                f"agent {me} has no identity, and neighbors could not tell it from strangers: load certificate and key "
                "with Identity.load, or make them with peerlearn certs"
            )
        elif identity.name != me:
            raise InputError(
                f"agent {me} was given the identity of {identity.name}: give it its own"
            )


class _PeerHalo:
    """The row of one agent and those of its neighbors."""

    def __init__(
        self, network: PeerNetwork, links: Route, width: int, dtype: np.dtype[Any]
    ) -> None:
        self.rows = np.zeros((1 + links.halo, width), dtype)
        self._network, self._receivers, self._senders = network, list(links.sent), list(links.heard)
        self._place = {
            neighbor: self.rows[row] for row, neighbor in enumerate(links.heard, start=1)
        }

    def swap(self) -> None:
        self._network._swap(self.rows, self._receivers, self._senders, self._take)

    def _take(self, neighbor: int, parcel: Parcel) -> None:
        parcel.row(self._place[neighbor], self._network.names[neighbor])

    def free(self) -> None:
        pass


def _finite(letter: bytes) -> bool:
    """Whether all numbers of a letter are; WireError if it is no letter."""
    return all(all_finite(array) for array in codec.unpack(letter).values())


def description_of(network: Network, names: Sequence[str]) -> dict[str, Any]:
    """What must be the same at all agents, whatever they learn."""
    C = network.mixing
    return {
        "the numerics version of peerlearn": NUMERICS,
        "the agents": list(names),
        "the graph": sorted(sorted(link) for link in network.graph.edges),
        "the weights": sha256(
            C.indptr.tobytes() + C.indices.tobytes() + C.data.tobytes()
        ).hexdigest()[:16],
    }


def in_words(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings as text, the same text for the same values, so that they can be compared and named."""
    texts = {
        key: said if isinstance(said, str) else json.dumps(said, sort_keys=True)
        for key, said in settings.items()
    }
    words = {
        key: text if len(json.dumps(text)) <= LONGEST_SETTING else _digest(text)
        for key, text in texts.items()
    }
    if len(json.dumps(words)) > MOST_SETTINGS:
        raise InputError(
            f"{len(words)} settings are too many to compare with neighbors: give fewer or shorter ones"
        )
    return words


def _digest(text: str) -> str:
    """A text that is too long for a hello, so that it can at least be compared."""
    return f"{len(text)} letters with the checksum {sha256(text.encode()).hexdigest()[:16]}"
