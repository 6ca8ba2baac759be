"""Secret sums over the network: a session of keys, masked sums, and what the root sends back.

    keys, nonces, certificates     to all agents, over the tree                      public
    session id                     SHA-256 of all of them and of the network's description
    signatures of the session id   to all agents, and checked by all                 public
    vote                           nobody goes on unless all signatures are right    public
    x_k + m_k                      up the tree, modulo 2^(64 w)                      masked
    answer of the root             down the tree                                     to all agents

m_k: masks that cancel in the sum of all agents (`peerlearn.secret.masks`). A parent sees the
masked sums of its children's subtrees, which are uniform random numbers. The root learns the total.

Every masked sum has a constant 1 of each agent, whose total must be L. If an agent was left out,
has another key, another scale or another history, masks do not cancel, and the total is not L
except with a probability of 2^-64. The root then sends a code, and all agents stop. The keys of
a sum depend on everything that the root sent before (`SumContext.history`). So a root that tells
different agents different things learns nothing from the next sum. After the last one, agents
compare what they were told (`SecretSession.confirm`).

An agent whose numbers do not fit the scales that the root sent does not stop at once: the root
would see whose they are. It takes part with masks that do not cancel, and stops with all others.

What it does not do: an agent that adds a wrong number changes the total, and nobody can tell. All
agents hosted in one process are in one memory, and have no secrets from whoever runs it.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from peerlearn.algorithms.contributor_check import check_contributors
from peerlearn.algorithms.sums import (
    broadcast_from_root,
    maximum,
    merge_to_root,
)
from peerlearn.algorithms.unexpected import unexpected_message
from peerlearn.arrays import Array
from peerlearn.errors import DataError, NetworkError, PeerlearnError, WireError
from peerlearn.network.base import MASKED, Message, Network, describe
from peerlearn.secret import wide
from peerlearn.secret.contributors import TotalRecord
from peerlearn.secret.fixed_point import (
    Exponents,
    decode_wide,
    encode_counts,
    encode_entries,
    encode_wide,
)
from peerlearn.secret.keys import (
    KEY_BYTES,
    LABEL,
    SessionKey,
    SumContext,
    Words,
    derive_pair_key,
    digest,
)
from peerlearn.secret.masks import mask, mask_graph
from peerlearn.secret.signing import Signer
from peerlearn.secret.statement import Claim, SecrecyStatement

Counts = NDArray[np.int64]

EPOCH = 0  # the list of agents does not change yet
NONCE_BYTES = 32
# Bytes of messages, as in `PublicBytes`.
MEMBER_BYTES = (512, 288)
SIGNATURE_BYTES = (32, 80)
MOST_BYTES = 1 << 16  # of one agent
_ENTRY = struct.Struct("<II")  # number of an agent, and of bytes
# Codes, the first number that the root sends.
FINE = 0.0
MASKS_LEFT = 1.0
# Codes that agents find themselves.
DIFFERENT_ANSWERS = 2
REFUSED = "refused: "  # the quantity of a sum in which an agent does not take part


@dataclass(frozen=True)
class Member:
    """What all agents know of one of them."""

    name: str
    certificate: bytes
    key: bytes
    nonce: bytes

    @classmethod
    def of_content(cls, name: str, content: bytes) -> Member:
        """Return the member whose `content` this is."""
        fixed = KEY_BYTES + NONCE_BYTES
        return cls(name, content[fixed:], content[:KEY_BYTES], content[KEY_BYTES:fixed])

    def content(self) -> bytes:
        """Return what is sent of this member: all but its name."""
        return self.key + self.nonce + self.certificate


@dataclass(frozen=True)
class MaskedSum:
    """Masked numbers of a subtree: numbers x limbs."""

    words: Words
    empty = False  # shapes do not depend on data

    def pack(self) -> dict[str, Words]:
        """Return what is sent."""
        return {"masked": self.words}

    def plus(self, others: Sequence[MaskedSum]) -> MaskedSum:
        """Return the sum of these and other masked numbers."""
        total = self.words
        for other in others:
            total = wide.add(total, other.words)
        return MaskedSum(total)


@dataclass(frozen=True)
class PublicBytes:
    """Bytes of some agents that all agents may see, by agent number.

    Certificates of one authority have much in common, so they are compressed. The size of a message
    does not depend on what compression achieves, so that all engines send as much.

    usual: bytes of a message beside those per agent, and bytes per agent. A message that does not
    fit has twice as many, or three times, and so on.
    """

    contents: dict[int, bytes]
    usual: tuple[int, int]
    empty = False

    def pack(self) -> dict[str, NDArray[np.uint8]]:
        """Return what is sent."""
        parts = [
            _ENTRY.pack(agent, len(content)) + content
            for agent, content in sorted(self.contents.items())
        ]
        packed = zlib.compress(b"".join(parts), 9)
        size = self.usual[0] + self.usual[1] * len(parts)
        padded = packed.ljust(-(-len(packed) // size) * size, b"\0")
        return {"public": np.frombuffer(padded, dtype=np.uint8)}

    def plus(self, others: Sequence[PublicBytes]) -> PublicBytes:
        """Return the bytes of these and other agents."""
        contents = dict(self.contents)
        for other in others:
            contents |= other.contents
        return PublicBytes(contents, self.usual)

    @classmethod
    def unpack(
        cls, message: Message, sender: int, usual: tuple[int, int], agents: int
    ) -> PublicBytes:
        """Return what a message has, or raise WireError."""
        try:
            contents = _split_entries(message["public"].tobytes(), agents)
        except (KeyError, zlib.error, struct.error):
            raise unexpected_message(sender, "public keys or signatures") from None
        return cls(contents, usual)


def _split_entries(packed: bytes, agents: int) -> dict[int, bytes]:
    """Return bytes by agent number. What is not of one of the agents is left out."""
    content = zlib.decompressobj().decompress(packed, agents * MOST_BYTES)
    found = {}
    start = 0
    while start < len(content):
        agent, size = _ENTRY.unpack_from(content, start)
        start += _ENTRY.size + size
        if agent < agents:
            found[agent] = content[start - size : start]
    return found


class SecretSession:
    """Keys of the hosted agents for one training, and the masked sums that are made with them.

    Use `session_of`. All agents make the same calls in the same order. `total` and `count` are
    enough for most algorithms: all agents learn the total. `compute` shows them only what the root
    computes from it. `sum_to_root` and `answer` are for numbers with units of their own.

    Attributes
    ----------
    id: 32 bytes, the same at all agents.
    quantities: what was summed so far.
    known_to_all: those whose totals all agents know, not the root alone.
    """

    def __init__(
        self,
        network: Network,
        session: bytes,
        pair_keys: Sequence[dict[int, bytes]],
        record: TotalRecord,
        *,
        history: bool,
    ) -> None:
        self.id = session
        self._record: TotalRecord | None = record  # until the first sum
        self._history = history  # whether any agent took part in an earlier session
        self.quantities: list[str] = []
        self.known_to_all: set[str] = set()
        self._network = network
        self._pair_keys = pair_keys
        self._histories = [session] * len(network.hosted)
        self._is_intact = True  # whether masks cancelled in the last total, if the root is hosted
        self._refusals: dict[int, DataError] = {}

    def encode(self, numbers: Array, exponents: Exponents) -> Words:
        """Return the hosted agents' numbers as words, one agent per row.

        An agent with numbers beyond the bounds spoils the sum. `answer` raises its error.

        exponents: of the bounds, which the root sent.
        """
        words = np.zeros(numbers.shape, dtype=np.uint64)
        for k, own in enumerate(numbers):
            try:
                words[k] = encode_entries(own, exponents)
            except DataError as error:
                self._refusals[k] = error
        return words

    def total(self, quantity: str, values: Array, scales: bytes = b"") -> Array:
        """Return the total of all agents' numbers, at all agents.

        Each number is exact to its last place, whole numbers are exact, and the total is rounded to
        float64. NaN, infinity and numbers whose total could overflow are refused at home.

        quantity: what is summed. values: of each hosted agent, agents x any shape. The result has
        the same shape. scales: public scales of the numbers, if there are any.
        """
        flat = values.reshape(len(values), -1)
        total = self._sum_wide(quantity, flat, scales)
        self.known_to_all.add(quantity)
        return self.answer(total, flat.shape[1], decode_wide).reshape(values.shape)

    def compute(
        self, quantity: str, values: Array, size: int, compute: Callable[[Array], Array]
    ) -> Array:
        """Return what the root computes from the total of all agents' numbers: agents x size.

        values: of each hosted agent, agents x numbers. compute: returns `size` numbers.
        """
        total = self._sum_wide(quantity, values)
        return self.answer(total, size, lambda found: compute(decode_wide(found)))

    def sum_rows(self, quantity: str, values: Array) -> Array:
        """Return the total of all agents' numbers in the row of the root, and zeros elsewhere.

        The root must `broadcast` something before the next sum. If the masks did not cancel, its
        row is zero as well, and all agents stop then.

        values: of each hosted agent, agents x numbers.
        """
        total = self._sum_wide(quantity, values)
        rows = np.zeros_like(values)
        for k, agent in enumerate(self._network.hosted):
            if agent == self._network.tree.root:
                self._is_intact = total is not None
                if total is not None:
                    rows[k] = decode_wide(total)
        return rows

    def _sum_wide(self, quantity: str, values: Array, scales: bytes = b"") -> Words | None:
        agents = self._network.size
        words = np.stack([encode_wide(own, agents, f"the {quantity}") for own in values])
        return self.sum_to_root(quantity, words, scales)

    def count(self, quantity: str, counts: Counts) -> Counts:
        """Return the total of all agents' whole numbers, 0 or more, at all agents.

        quantity: what is counted. counts: of each hosted agent, agents x any shape. The result has
        the same shape.
        """
        words = encode_counts(counts.reshape(len(counts), -1), self._network.size)
        self.known_to_all.add(quantity)
        total = self.sum_to_root(quantity, words[:, :, None])
        answers = self.answer(total, words.shape[1], lambda found: found[:, 0].astype(np.float64))
        return answers.astype(np.int64).reshape(counts.shape)

    def describe(self, claim: Claim) -> SecrecyStatement:
        """Return what was promised and learned so far."""
        network = self._network
        root = network.names[network.tree.root]
        return SecrecyStatement(
            claim,
            network.colluders,
            network.size,
            root,
            tuple(self.quantities),
            known_to_all=tuple(sorted(self.known_to_all)),
        )

    def sum_to_root(self, quantity: str, words: Words, scales: bytes = b"") -> Words | None:
        """Return the total of all agents' numbers at the root, and None elsewhere.

        The total is None at the root too if the masks did not cancel; `answer` then stops all
        agents.

        quantity: what is summed. words: of each hosted agent, agents x numbers x limbs. scales:
        the public scales of the numbers.
        """
        network = self._network
        self._check_history(words)
        number = len(self.quantities)
        self.quantities.append(quantity)
        agents, numbers, limbs = words.shape
        ones = wide.of_whole([1] * agents, limbs)[:, None, :]
        contents = np.concatenate([words, ones], axis=1)
        masked = []
        for k, agent in enumerate(network.hosted):
            named = REFUSED + quantity if k in self._refusals else quantity
            context = SumContext(
                EPOCH, number, named, (numbers + 1,), limbs, scales, self._histories[k]
            )
            covered = digest(context.encode(), contents[k].tobytes())
            network.commit_secret(f"{self.id.hex()} {number} {agent}", covered)
            own = wide.add(contents[k], mask(agent, self._pair_keys[k], context))
            masked.append(MaskedSum(own))

        def unpack(message: Message, sender: int) -> MaskedSum:
            return _unpack(message, sender, (numbers + 1, limbs))

        with network.allow_messages(quantity, MASKED):
            sums = merge_to_root(network, masked, unpack)
        for agent, found in zip(network.hosted, sums, strict=True):
            if agent == network.tree.root:
                whole = wide.to_whole(found.words[-1:])[0]
                return found.words[:-1] if whole == network.size else None
        return None

    def expect_new_rows(self) -> None:
        """Say that these sums are of rows in no earlier total, so that no history is needed."""
        self._record = None

    def _check_history(self, words: Words) -> None:
        """Check earlier totals and record this session, before its first sum.

        words: the first numbers to be summed. They stand for an agent's data if the engine does not
        know a digest of these.
        """
        record = self._record
        if record is None:
            return
        self._record = None
        version = self._network.data_version or digest(words.tobytes()).hex()
        record = replace(record, data=version)
        if self._history:
            check_contributors(self._network, record, self.count)
        self._network.record_total(record)

    def answer(self, total: Words | None, size: int, compute: Callable[[Words], Array]) -> Array:
        """Return what the root computes from a total, at all agents: agents x size.

        Raises NetworkError at all agents if the masks did not cancel in the total.

        total: what `sum_to_root` returned. compute: returns `size` numbers.
        """
        rows = np.zeros((len(self._network.hosted), size))
        for k, agent in enumerate(self._network.hosted):
            if agent == self._network.tree.root:
                self._is_intact = total is not None
                if total is not None:
                    rows[k] = compute(total)
        return self.broadcast(rows)

    def broadcast(self, values: Array) -> Array:
        """Return the root's row at all agents.

        Raises NetworkError at all agents if the masks did not cancel in the last total.
        """
        network = self._network
        codes = np.full((len(values), 1), FINE if self._is_intact else MASKS_LEFT)
        about = self.quantities[-1] if self.quantities else "a search that begins"
        with network.allow_messages(f"answer of the root to {about}"):
            rows = broadcast_from_root(network, np.hstack([codes, values]))
        self._histories = [
            digest(before, row.tobytes()) for before, row in zip(self._histories, rows, strict=True)
        ]
        if self._refusals:
            raise next(iter(self._refusals.values()))
        if np.count_nonzero(rows[:, 0] != FINE):
            raise NetworkError(
                f"the secret sum of {self.quantities[-1]} failed with code {rows[0, 0]:.0f}: the "
                "masks of the agents did not cancel, so an agent was left out, or has other "
                "settings, keys or scales; nothing of the total is known: start all agents again"
            )
        answers: Array = rows[:, 1:]
        return answers

    def confirm(self) -> None:
        """Raise NetworkError at all agents unless the root sent the same to all of them.

        Call it after the last answer. Before, the next sum shows it.
        """
        network = self._network
        own = np.array([np.frombuffer(history, "<u4") for history in self._histories], dtype=float)
        with network.allow_messages("digest of what the root sent"):
            largest, smallest = np.split(maximum(network, np.hstack([own, -own])), 2, axis=1)
        if np.count_nonzero(largest != -smallest):
            raise NetworkError(
                f"the secret sum of {self.quantities[-1]} failed with code {DIFFERENT_ANSWERS}: "
                "agents received different answers, so somebody changed them on the way: find out "
                "who before you start again"
            )


class _Sessions:
    """The session of a block, opened when it is first needed."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._session: SecretSession | None = None

    @property
    def is_open(self) -> bool:
        """Whether the session was needed so far."""
        return self._session is not None

    def current(self) -> SecretSession:
        """Return the session."""
        if self._session is None:
            self._session = open_session(self._network)
        return self._session


@contextmanager
def one_session(network: Network) -> Iterator[None]:
    """Return a block in which all secret sums have one session, so keys are exchanged once.

    The first `session_of` in the block opens it. The outermost of nested blocks owns the session.
    """
    if network.sessions is not None:
        yield
        return
    network.sessions = _Sessions(network)
    try:
        yield
        if network.sessions.is_open:
            network.sessions.current().confirm()
    finally:
        network.sessions = None


def session_of(network: Network) -> SecretSession:
    """Return the session of the block that this is called in (`one_session`); else a new one."""
    if network.sessions is None:
        return open_session(network)
    session: SecretSession = network.sessions.current()
    return session


def sum_in_secret(
    network: Network, quantity: str, x: Array, otherwise: Callable[[Array], Array]
) -> Array:
    """Return a secret total of x at all agents; without secrecy, what `otherwise` returns."""
    if network.secrecy is None:
        return otherwise(x)
    return session_of(network).total(quantity, x)


def open_session(network: Network) -> SecretSession:
    """Exchange keys and check all signatures, and return the session.

    Raises the same kind of error at all agents if any of them finds something wrong. No masked
    number has been sent then.
    """
    with network.allow_messages("session keys and signatures"):
        return _open(network)


def _open(network: Network) -> SecretSession:
    hosted = network.hosted
    keys: list[SessionKey] = []
    signers: list[Signer] = []
    own: list[Member] = []
    for agent in hosted:
        drawn = network.keep_secret("key", partial(os.urandom, 2 * KEY_BYTES + NONCE_BYTES))
        key = SessionKey(drawn[:KEY_BYTES])
        signer = network.signer(drawn[KEY_BYTES : 2 * KEY_BYTES])
        nonce = drawn[2 * KEY_BYTES :]
        keys.append(key)
        signers.append(signer)
        own.append(Member(network.names[agent], signer.certificate, key.public, nonce))
    contents = _gather(network, [member.content() for member in own], MEMBER_BYTES)
    members = [
        Member.of_content(name, content)
        for name, content in zip(network.names, contents[0], strict=True)
    ]
    session = _session_id(network, members)
    signatures = _gather(
        network,
        [
            network.keep_secret(
                f"signature {session.hex()}", partial(signer.sign, _statement(session, agent))
            )
            for agent, signer in zip(hosted, signers, strict=True)
        ],
        SIGNATURE_BYTES,
    )
    pair_keys: list[dict[int, bytes]] = []
    problem: PeerlearnError | None = None
    try:
        for k, agent in enumerate(hosted):
            # All hosted agents see the same, so one of them checks the signatures for all.
            _check_same(contents[k], contents[0], signatures[k], signatures[0])
            _check_own(own[k], members[agent])
        _check_members(signers[0], members, session, signatures[0])
        graph = mask_graph(network.size, network.colluders)
        for agent, key in zip(hosted, keys, strict=True):
            pair_keys.append(
                {
                    partner: derive_pair_key(
                        key.agree(members[partner].key, members[partner].name),
                        session,
                        agent,
                        partner,
                    )
                    for partner in sorted(graph[agent])
                }
            )
    except PeerlearnError as error:
        problem = error
    earlier = bool(network.earlier_totals(own[0].nonce.hex()))
    votes = [[problem is not None, earlier]] * len(hosted)
    refused, history = maximum(network, np.array(votes, dtype=np.float64))[0].tolist()
    if problem is not None:
        raise problem
    if refused:
        raise NetworkError(
            "another agent found a wrong key or signature, and no secret sum is made: its own log "
            "says which"
        )
    contributors = {member.name: digest(member.certificate).hex()[:32] for member in members}
    record = TotalRecord(session.hex()[:32], own[0].nonce.hex(), contributors, data="")
    return SecretSession(network, session, pair_keys, record, history=bool(history))


def _gather(network: Network, own: Sequence[bytes], usual: tuple[int, int]) -> list[list[bytes]]:
    """Return the public bytes of all agents, by agent number, as each hosted agent received them.

    usual: as in `PublicBytes`. Nothing is checked here: bytes that are lacking or wrong are not
    signed.
    """
    tree = network.tree
    parts = [
        PublicBytes({agent: content}, usual)
        for agent, content in zip(network.hosted, own, strict=True)
    ]

    def unpack(message: Message, sender: int) -> PublicBytes:
        return PublicBytes.unpack(message, sender, usual, network.size)

    known = merge_to_root(network, parts, unpack)
    children = [np.flatnonzero(tree.parent == agent).tolist() for agent in network.hosted]
    to = [[k for k in ks if tree.depth[k]] for ks in children]  # the root may be its own parent
    for level in range(tree.height):
        outbox = [
            all_of.pack() if tree.depth[agent] == level else {}
            for agent, all_of in zip(network.hosted, known, strict=True)
        ]
        inbox = network.exchange(outbox, to)
        for k, agent in enumerate(network.hosted):
            if tree.depth[agent] == level + 1:
                parent = int(tree.parent[agent])
                known[k] = unpack(inbox[k].get(parent, {}), parent)
    return [[all_of.contents.get(agent, b"") for agent in range(network.size)] for all_of in known]


def _session_id(network: Network, members: Sequence[Member]) -> bytes:
    about = json.dumps(describe(network, network.names), sort_keys=True).encode()
    settings = f"epoch {EPOCH}, colluders {network.colluders}".encode()
    parts = [LABEL, about, settings]
    for member in members:
        parts += [member.name.encode(), digest(member.certificate), member.key, member.nonce]
    return digest(*parts)


def _statement(session: bytes, agent: int) -> bytes:
    """Return what an agent signs."""
    return LABEL + b": agent %d takes part in session " % agent + session


def _check_same(*pairs: list[bytes]) -> None:
    contents, first_contents, signatures, first_signatures = pairs
    if contents != first_contents or signatures != first_signatures:
        raise WireError("agents of one process received different keys: start all agents again")


def _check_own(own: Member, received: Member) -> None:
    if own != received:
        raise WireError(
            f"the session key of agent {own.name} was replaced on its way, or this run was resumed "
            "after its keys were lost: start all agents again, from the beginning"
        )


def _check_members(
    signer: Signer, members: Sequence[Member], session: bytes, signatures: Sequence[bytes]
) -> None:
    keys = {member.key for member in members}
    nonces = {member.nonce for member in members}
    if len(keys) < len(members) or len(nonces) < len(members):
        raise WireError("two agents sent the same session key: one of them copies the other")
    for agent, (member, signature) in enumerate(zip(members, signatures, strict=True)):
        statement = _statement(session, agent)
        signer.check(member.name, member.certificate, statement, signature)


def _unpack(message: Message, sender: int, shape: tuple[int, int]) -> MaskedSum:
    words = message.get("masked")
    if words is None or len(message) > 1 or words.shape != shape or words.dtype != np.uint64:
        raise unexpected_message(sender, f"{shape[0]} masked numbers")
    return MaskedSum(words)
