"""Peer engine: one agent per process, connected to its neighbors, without a server.

A round sends one row to each neighbor and waits for theirs. An agent that is killed and started
again with the same command resumes from its checkpoint; the others wait for it. frame.py defines
the messages, link.py how a conversation survives broken connections, and replay.py how a run
survives a kill. docs/peer-engine.md follows one call through all files.
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
import numpy.typing as npt
import scipy.sparse as sp

from peerlearn import graphs
from peerlearn.arrays import Array, all_finite
from peerlearn.errors import InputError, NetworkError, PeerlearnError, Stopped, WireError
from peerlearn.network import codec
from peerlearn.network.base import Secrecy, describe, not_finite
from peerlearn.network.distributed import Arrays, DistributedNetwork, Letter, Sending
from peerlearn.network.peers.frame import MOST_BYTES, MOST_TEXT, Kind
from peerlearn.network.peers.identity import Identity
from peerlearn.network.peers.journal import Journal
from peerlearn.network.peers.left_ledger import LeftLedger
from peerlearn.network.peers.link import Left, Link, Refused, Speaker
from peerlearn.network.peers.mailbox import Parcel
from peerlearn.network.peers.replay import NoReplay, Replay
from peerlearn.network.peers.rounds import RoundExchange, Take, Waiting
from peerlearn.network.peers.session_file import SessionFile
from peerlearn.network.peers.signing import CertificateSigner
from peerlearn.network.peers.streams import check_address, only_loopback
from peerlearn.network.peers.timeouts import Timeouts
from peerlearn.network.routes import Route
from peerlearn.secret.signing import Signer

__all__ = ["PeerNetwork"]

LONGEST_SETTING = 1 << 17  # bytes; of longer settings only a digest is sent
MOST_SETTINGS = MOST_TEXT - (1 << 16)  # bytes of all settings: a hello has other fields too

log = logging.getLogger("peerlearn.peers")


class Interrupted(Stopped):
    """Stop of this agent by a request, such as Ctrl-C. Its neighbors wait for it."""


class PeerNetwork(DistributedNetwork):
    """Network with one agent in this process. Its neighbors are reached over mutual TLS.

    Use it in a `with` block. At the end of the block, an agent stays until its neighbors are done
    too. An error in the block ends the run for the neighbors as well. The constructor returns when
    all neighbors are connected and agree on the settings, or at once if it resumes from a
    checkpoint.

    Parameters
    ----------
    graph : networkx.Graph
        Graph of all agents, the same at every agent.
    agent : int
        Number of this agent in the graph.
    weights : str or matrix, default "metropolis"
        Mixing matrix, as for `SimulatedNetwork`, the same at every agent.
    listen : str
        "host:port" where this agent accepts connections of neighbors with lower numbers.
    addresses : mapping of int to str
        "host:port" of the neighbors with higher numbers. This agent connects to them.
    identity : Identity, default None
        Certificate and key of this agent; see `Identity.load`. It is required unless
        `insecure_loopback` is set.
    insecure_loopback : bool, default False
        Use no certificates and no encryption. All addresses must then be of this machine.
    names : sequence of str, default None
        Names of all agents, as in their certificates. None names them agent-0, agent-1, ..
    run : str, default "run"
        Name of the run. Agents of different runs refuse each other.
    settings : mapping, default None
        Further settings that must be the same at all agents. They are compared with every neighbor
        before the first round.
    checkpoints : Path, default None
        Folder for checkpoints. None keeps none; an agent that is killed then cannot come back.
    own_settings : mapping, default None
        Settings that must be the same when this agent is started again, such as a checksum of its
        data. They are not sent.
    patience : Timeouts, default None
        How long to wait for neighbors, and how often to save. None takes the defaults of
        `Timeouts`.
    secrecy : {"sums"} or None, default None
        "sums" lets agents send masked sums only, from which nobody learns more than totals.
        What would show numbers of single agents is refused before it is sent. Session
        keys are signed with the keys of the agents' certificates; without certificates
        (`insecure_loopback`) nobody knows whose they are. An agent that was killed resumes if it
        has checkpoints and computes the same numbers. Neighbors learn that an agent failed, but
        not why.
    colluders : int, default 1
        Under secrecy, the number of agents that may put together what they see and still learn
        nothing but totals. At most the number of agents less 2.
    records : Path, default None
        Folder for the ledger of what left this agent, `left.jsonl`. It is kept for all runs; do
        not delete it with the checkpoints. None keeps no ledger.

    Attributes
    ----------
    names : tuple of str
        Names of all agents.
    ledger : Ledger
        Messages of the algorithm, without headers. All other attributes are those of `Network`.

    Examples
    --------
    A network of one agent needs no other process:

    >>> import numpy as np
    >>> from peerlearn import PeerNetwork, graphs
    >>> network = PeerNetwork(
    ...     graphs.complete(1), 0, listen="127.0.0.1:0", addresses={}, insecure_loopback=True
    ... )
    >>> with network:
    ...     network.mix(np.array([[2.0, 3.0]]))
    array([[2., 3.]])
    """

    checks_every_round = True  # `_swap` does
    compiled = False

    def __init__(
        self,
        graph: nx.Graph,
        agent: int,
        weights: npt.ArrayLike | sp.sparray = "metropolis",
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
        secrecy: Secrecy | None = None,
        colluders: int = 1,
        records: Path | None = None,
    ) -> None:
        graph = graphs.checked(graph)
        patience = patience or Timeouts()
        size = len(graph)
        if not 0 <= agent < size:
            raise InputError(
                f"agent {agent} is not one of the {size} agents of the graph, 0 to {size - 1}"
            )
        super().__init__(graph, weights, np.arange(size), agent)
        self.names = tuple(names) if names is not None else tuple(f"agent-{k}" for k in range(size))
        self._check(listen, addresses, identity, insecure_loopback)
        self._identity = None if insecure_loopback else identity
        self.keep_secrets(secrecy, colluders)
        common_settings = {**describe(self, self.names), **(settings or {})}
        if self.secrecy is not None:
            common_settings["secrecy"] = f"{self.secrecy} against {self.colluders} colluders"
        self._me = Speaker(run, agent, self.names[agent], settings_as_text(common_settings))
        # Rounds that an agent can be ahead of a neighbor: two sums over the tree.
        horizon = 4 * (self.tree.height + 2)
        links = {k: Link(self._me, k, self.names[k], horizon) for k in sorted(self.graph[agent])}
        self._exchange = RoundExchange(
            self._me,
            links,
            patience,
            listen=listen,
            addresses=addresses,
            identity=self._identity,
        )
        self._replay: NoReplay = NoReplay(self._me, links)
        if checkpoints is not None:
            self._replay = Replay(
                self._me,
                links,
                Journal(Path(checkpoints)),
                lock=self._exchange.driving,
                own_settings=settings_as_text(own_settings or {}),
                save_every=patience.save_every,
                bytes_sent=lambda: self._exchange.bytes_sent,
            )
        self._session_file = None if checkpoints is None else SessionFile(Path(checkpoints))
        self._exchange.bytes_sent = self._replay.bytes_before
        self._left: LeftLedger | None = None
        if records is not None and not self.finished:
            self._left = LeftLedger(
                Path(records),
                run,
                self._me.name,
                self.names,
                links,
                resumed=self._replay.restored,
                greeting=self._me.settings,
            )
        try:
            self._exchange.start(meet=not self._replay.restored)
        except BaseException as error:
            # There is nothing new to save, and another process may be using the folder.
            self._end(error, save=False)
            raise

    @property
    def finished(self) -> bool:
        """Whether the run was finished before this process started, so that no work is left."""
        return self._replay.finished

    @property
    def port(self) -> int:
        """Port on which this agent listens. The system chooses it if `listen` has port 0."""
        return self._exchange.port

    @property
    def round(self) -> int:
        """Number of rounds that this agent has done."""
        return self._me.done

    @property
    def bytes_sent(self) -> int:
        """Bytes sent with headers, also before a restart. The ledger counts without headers."""
        return self._exchange.bytes_sent

    @property
    def state(self) -> str:
        """State in a few words for people: connecting, running, waiting for somebody, done."""
        return self._exchange.state

    @property
    def waiting(self) -> Waiting | None:
        """Agents that this agent has been waiting for; None unless it has waited for long."""
        return self._exchange.waiting

    def signer(self, seed: bytes) -> Signer:
        if self._identity is None:
            return super().signer(seed)
        return CertificateSigner(self._identity)

    def keep_secret(self, what: str, make: Callable[[], bytes]) -> bytes:
        if self._session_file is None:
            return make()
        return self._session_file.keep(what, make)

    def commit_secret(self, what: str, digest: bytes) -> None:
        if self._session_file is not None:
            self._session_file.commit(what, digest)

    def interrupt(self, reason: str) -> None:
        """Stop at the next round, with a checkpoint. Signal handlers and threads may call it."""
        self._exchange.fail(Interrupted(reason))

    def record_left(self) -> str | None:
        """Write to the ledger how much was sent so far, and return its head.

        The head is the digest of the last line. None if no ledger is kept.
        """
        return None if self._left is None else self._left.record_counts()

    def finish(self) -> None:
        """Save, stay until every neighbor has what it needs, and delete what resuming would need.

        Call it when all work is done. The end of a `with` block does.
        """
        if not self.finished:
            self._replay.save(finished=True)
        self._me.finished = True
        self._close_ledger()
        try:
            if self._exchange.farewell():
                self._replay.forget()
                if self._session_file is not None:
                    self._session_file.forget()
        except PeerlearnError as error:
            log.warning(
                "our work is done, but not that of all neighbors (%s): start again if they need us",
                error,
            )
        finally:
            self._exchange.close()

    def leave(self, reason: str) -> None:
        """End the run for the neighbors too, and tell them why. A checkpoint is kept."""
        self._leave(reason)
        self.close()

    def close(self) -> None:
        """Save and close the connections. Neighbors wait for this agent to come back."""
        self._replay.save()
        self._close_ledger()
        self._exchange.close()

    def __exit__(self, *raised: Any) -> None:
        error = raised[1]
        if error is None:
            self.finish()
        else:
            self._end(error)

    def _end(self, error: BaseException, *, save: bool = True) -> None:
        """Close everything after an error, and tell the neighbors that the run is over.

        They are not told if this agent was interrupted or refused: then they wait for it.
        """
        if isinstance(error, Left) and not isinstance(error, Refused):
            self._tell_reason(str(error))
        elif not isinstance(error, Interrupted | Refused | KeyboardInterrupt | SystemExit):
            why = " ".join(str(error).split()) or type(error).__name__
            self._leave(f"agent {self._me.name} ended the run: {why}")
        if save:
            self._replay.save()
        self._close_ledger()
        self._exchange.close()

    def _leave(self, reason: str) -> None:
        """Tell neighbors why the run is over. Under secrecy without details: they may be data."""
        if self.secrecy is not None:
            log.warning("neighbors are told that this agent ended the run, but not why: %s", reason)
            reason = self._code
        self._tell_reason(reason)

    @property
    def _code(self) -> str:
        """What neighbors are told in place of a reason that they must not know."""
        return f"agent {self._me.name} ended the run (code 9: its own log says why)"

    def _tell_reason(self, reason: str) -> None:
        try:
            if self._left is not None:
                self._left.record_reason(reason)
        except NetworkError as error:
            log.warning("neighbors are not told why this agent ended the run: %s", error)
            reason = self._code
        self._exchange.leave(reason)

    def _close_ledger(self) -> None:
        """Write the last counts to the ledger. What was sent is recorded without them, too."""
        try:
            self.record_left()
        except NetworkError as error:
            log.warning("what left this agent was not counted: %s", error)

    # Methods that DistributedNetwork calls
    # ---------------------------------------------------------------------------------

    def _new_halo(self, links: Route, width: int, dtype: np.dtype[Any]) -> _PeerHalo:
        return _PeerHalo(self, links, width, dtype)

    def _swap(
        self, rows: Any, receivers: Sequence[int], senders: Sequence[int], take: Take
    ) -> None:
        """Do one round: send our row to the receivers, and give each sender's row to `take`."""
        outgoing: dict[int, list[bytes]] = {}
        if receivers:
            if rows[0].nbytes > MOST_BYTES:
                raise NetworkError(
                    f"an entry of {rows[0].nbytes} bytes is too large: "
                    f"{MOST_BYTES} at most in a message"
                )
            if not all_finite(rows[0]):
                raise not_finite(self._me.name)
            frames = self._me.frames(Kind.ROW, rows[0], self._me.done + 1)
            outgoing = dict.fromkeys(receivers, frames)
        self._exchange.round(outgoing, senders, take)

    def _post(self, letters: dict[int, list[Letter]]) -> list[Letter]:
        """Do one round of letters; return those that are not empty.

        Every neighbor gets a letter, because it could not know otherwise that none will come.
        """
        contents = {
            neighbor: letters[neighbor][0][2] if neighbor in letters else b""
            for neighbor in self._neighbors
        }
        if not all(_finite(content) for content in contents.values() if content):
            raise not_finite(self._me.name)
        if any(len(content) > MOST_BYTES for content in contents.values()):
            raise NetworkError(f"a message is too large: {MOST_BYTES} bytes at most")
        number = self._me.done + 1
        arrived = []
        outgoing = {
            neighbor: self._me.frames(Kind.LETTER, np.frombuffer(content, np.uint8), number)
            for neighbor, content in contents.items()
        }

        def take(neighbor: int, parcel: Parcel) -> None:
            content = parcel.letter(self.names[neighbor])
            if not content:
                return
            if not _finite(content):
                raise WireError(f"agent {self.names[neighbor]} sent numbers that are not finite")
            arrived.append((neighbor, self._here, content))

        self._exchange.round(outgoing, list(self._neighbors), take)
        return arrived

    def _call(
        self, what: str, rounds: int, compute: Callable[[], Arrays], sending: Sending
    ) -> Arrays:
        receivers, message = sending
        if self._left is None or not receivers:
            return self._replay.call(what, rounds, compute)
        quantity, size = self._left.announce(receivers, message, self._quantity, self._protection)
        arrays = self._replay.call(what, rounds, compute)
        quantity.count(rounds, size)
        return arrays

    def _resume(self, rounds: int, shape: tuple[int, ...]) -> tuple[int, Array, Array] | None:
        return self._replay.resume(rounds, shape)

    def _record_progress(self, done: int, now: Array, before: Array) -> None:
        self._replay.record_progress(done, now, before)

    # ---------------------------------------------------------------------------------

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
        """Raise InputError for arguments that cannot work, before anything is opened."""
        if len(self.names) != self.size or len(set(self.names)) != self.size:
            raise InputError(
                f"{self.size} agents need {self.size} different names, not {', '.join(self.names)}"
            )
        me = self.names[self._here]
        check_address(listen, me)
        for neighbor in sorted(self.graph[self._here]):
            if neighbor > self._here and neighbor not in addresses:
                raise InputError(
                    f"agent {me} connects to its neighbor {self.names[neighbor]} and has no "
                    "address of it: add one to addresses"
                )
            if neighbor in addresses:
                check_address(addresses[neighbor], self.names[neighbor])
        if insecure_loopback:
            only_loopback([listen, *addresses.values()])
        elif identity is None:
            raise InputError(
                f"agent {me} has no identity, and neighbors could not tell it from strangers: "
                "load certificate and key with Identity.load, or make them with peerlearn certs"
            )
        elif identity.name != me:
            raise InputError(
                f"agent {me} was given the identity of {identity.name}: give it its own"
            )


class _PeerHalo:
    """Row of one agent and rows of its neighbors."""

    def __init__(
        self, network: PeerNetwork, links: Route, width: int, dtype: np.dtype[Any]
    ) -> None:
        self.rows = np.zeros((1 + links.halo, width), dtype)
        self._network = network
        self._receivers = list(links.sent)
        self._senders = list(links.heard)
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
    """Return whether all numbers of a letter are finite; raise WireError if it is damaged."""
    return all(all_finite(array) for array in codec.unpack(letter).values())


def settings_as_text(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return settings as text, the same text for the same values, to compare them."""
    texts: dict[str, str] = {}
    for key, value in settings.items():
        text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        texts[key] = text if len(json.dumps(text)) <= LONGEST_SETTING else _digest(text)
    if len(json.dumps(texts)) > MOST_SETTINGS:
        raise InputError(
            f"{len(texts)} settings are too many to compare with neighbors: "
            "give fewer or shorter ones"
        )
    return texts


def _digest(text: str) -> str:
    """Return length and checksum of a text that is too long for a hello."""
    return f"{len(text)} letters with the checksum {sha256(text.encode()).hexdigest()[:16]}"
