"""One agent's side of the conversation with one neighbor. No I/O and no clock.

Theory of operation:

A `Link` lives as long as the agent; connections come and go. Bytes that arrive are given to
`receive`, which returns the frames to write in answer. `send` keeps the frames of a round in the
outbox and returns those to write now. service.py does the reading and writing.

Every connection begins with a hello from both ends: who they are, which settings must agree, and
how many rounds they have done. Each end then sends again all later rounds that the other may lack,
and ignores repeated frames. So a connection may break at any moment, and an agent may return from
a checkpoint with less than it had, and still no message is lost or counted twice.

    down --hello--> up --rows, letters, alive--> up --done, seen--> both know that both are done
                    up --leave--> the run ends     up --refuse--> this agent ends, others go on

Two claims of a neighbor let this agent delete something: that it saved a round, and that its work
is done. Both count only with the receipt of all that this agent sent up to that round (frame.py).
All other claims are forgotten with the connection they came on: the next hello replaces them.

An error that `receive` raises says what has to end. WireError: the connection, because what came
cannot be right. Refusal: the part of that neighbor, until it comes back as it should be. Left,
Refused or Mismatch: the run of this agent.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from peerlearn.errors import Mismatch, NetworkError, Stopped, WireError
from peerlearn.network.codec import AnyArray
from peerlearn.network.peers.frame import (
    ROUNDS,
    VERSION,
    Frame,
    Kind,
    OtherRelease,
    decode,
    encode,
    encode_text,
    run_identity,
    text_of,
)
from peerlearn.network.peers.mailbox import Inbox, Outbox

LONG = 160  # letters of a value in a sentence
MOST_DISPUTED = 20  # disputed claims after which a restored agent gives up


class Refusal(NetworkError):
    """Error about a neighbor that cannot take part as it is now. The others go on."""


class Left(Stopped):
    """End of the run by a neighbor, with the message of the agent that ended it first."""


class Refused(Left):
    """Refusal of this agent by a neighbor, which goes on without it.

    The agent may come back when it has been put right. Other neighbors are not told.
    """


@dataclass
class Speaker:
    """State of this agent that it reports on all of its links."""

    run: str
    number: int
    name: str
    settings: Mapping[str, str]  # settings that must agree, as text
    done: int = 0  # number of rounds done
    finished: bool = False  # whether its work is done
    waits_for: str = ""  # name of the agent that delays it, if it has waited for long
    restored: bool = False  # whether it resumed from a checkpoint
    instance: str = field(default_factory=lambda: secrets.token_hex(16))  # identifies this process

    def __post_init__(self) -> None:
        self._run = run_identity(self.run)

    def frames(self, kind: Kind, array: AnyArray, round: int) -> list[bytes]:
        """Return the frames of a row or letter. They always have the same bytes."""
        return encode(kind, array, run=self._run, sender=self.number, round=round)

    def text(self, kind: Kind, text: str, saved: int = 0, receipt: int = 0) -> bytes:
        """Return a frame of text."""
        return encode_text(
            kind,
            text,
            run=self._run,
            sender=self.number,
            round=self.done,
            saved=saved,
            receipt=receipt,
        )

    def word(self, kind: Kind, saved: int = 0, receipt: int = 0) -> bytes:
        """Return a frame without text."""
        return self.text(kind, "", saved, receipt)

    def hello(self, saved: int = 0, receipt: int = 0) -> bytes:
        """Return the first frame of a connection."""
        about = {
            "run": self.run,
            "agent": self.name,
            "settings": dict(self.settings),
            "finished": self.finished,
            "instance": self.instance,
        }
        return self.text(Kind.HELLO, json.dumps(about), saved, receipt)

    def read(self, data: bytes) -> Frame:
        """Decode a frame of this run."""
        return decode(data, run=self._run)


class Link:
    """Conversation with one neighbor, over any number of connections.

    me: this agent.
    neighbor: number of the neighbor.
    name: name of the neighbor.
    horizon: rounds that the neighbor can be ahead of this agent.
    """

    def __init__(self, me: Speaker, neighbor: int, name: str, horizon: int) -> None:
        self.me = me
        self.neighbor = neighbor
        self.name = name
        self.inbox = Inbox(horizon)
        self.outbox = Outbox()
        self.up = False  # whether the neighbor said hello on the present connection
        self.greetings = 0  # number of hellos since this process started
        self.instance = ""  # identifies the neighbor's process
        self.done = 0  # rounds done by the neighbor, as far as we know
        self.waits_for = ""  # name of the agent that delays the neighbor, as it reports
        self.receipt = 0  # of all that we took from the neighbor
        self.saved = (0, 0)  # last round that we never need again, and its receipt
        self.seen = False  # whether the neighbor knows that our work is done
        # Its last round and receipt, if it reported that its work is done.
        self._ended: tuple[int, int] | None = None
        self._answered = False  # whether we answered that report on this connection
        self._disputed = 0  # claims that do not fit what we sent since we were restored

    def mark_down(self) -> None:
        """Note that the connection has ended."""
        self.up = False

    @property
    def finished(self) -> bool:
        """Whether the neighbor's work is done, and ours has reached the same round.

        The neighbor must have taken all that we sent.
        """
        return self._ended == (self.me.done, self.outbox.receipt)

    @property
    def ended_early(self) -> bool:
        """Whether the neighbor's work is done, so that it takes no part in our next round."""
        ended = self._ended
        if not self.up or ended is None:
            return False
        return ended[0] <= self.me.done and self.outbox.matches(*ended)

    def hello(self) -> bytes:
        """Return the first frame of a connection."""
        return self.me.hello(*self._claim())

    def word(self, kind: Kind) -> bytes:
        """Return a frame of this kind. A sign of life also names the agent we wait for."""
        return self.me.text(kind, self.me.waits_for if kind is Kind.ALIVE else "", *self._claim())

    @property
    def late(self) -> str:
        """Name of the neighbor for a sentence about waiting, with the agent it waits for itself."""
        other = self.waits_for not in ("", self.name, self.me.name)
        return f"{self.name} (which waits for {self.waits_for})" if other else self.name

    def _claim(self) -> tuple[int, int]:
        """Return the last round that the neighbor need not keep for us, and its receipt."""
        return (self.me.done, self.receipt) if self.me.finished else self.saved

    def send(self, round: int, frames: Sequence[bytes]) -> Sequence[bytes]:
        """Keep the frames of a round, and return those to write now.

        There are none to write while there is no connection.
        """
        self.outbox.add(round, frames)
        return frames if self.up and round > self.done else []

    def receive(self, data: bytes) -> list[bytes]:
        """Handle one frame, and return the frames to write in answer."""
        frame = self._read(data)
        if not self.up:
            return self._greet(frame)
        if frame.kind is Kind.HELLO:
            raise WireError(f"agent {self.name} said hello twice")
        if frame.kind is Kind.LEAVE:
            raise Left(text_of(frame))
        if frame.kind is Kind.REFUSE:
            raise Refused(text_of(frame))
        if frame.kind in ROUNDS:
            self.inbox.put(frame)
            self.done = max(self.done, frame.round - 1)
            return []
        self._believe(frame)
        self.waits_for = text_of(frame)[:LONG]
        self.done = max(self.done, frame.round)
        self.seen |= frame.kind is Kind.SEEN
        if frame.kind is not Kind.DONE or self._answered:
            return []
        self._ended = (frame.round, frame.receipt)
        self._answered = True
        return [self.word(Kind.SEEN)]

    def caller_instance(self, data: bytes) -> str:
        """Return which process of the neighbor says this hello, and change nothing."""
        frame = self._read(data)
        if frame.kind is not Kind.HELLO:
            raise WireError(f"agent {self.name} spoke before it said hello")
        return str(self._parse_hello(frame).get("instance"))

    def _read(self, data: bytes) -> Frame:
        """Decode a frame, or raise an error if its numbers cannot be true."""
        try:
            frame = self.me.read(data)
        except OtherRelease as error:
            way_out = "install the same release at all agents"
            self._must_agree("the wire format of peerlearn", VERSION, error.version, way_out)
            raise
        if frame.sender != self.neighbor:
            raise WireError(
                f"a frame of agent number {frame.sender} came on the link of agent {self.name}"
            )
        if frame.kind in ROUNDS:  # the inbox checks their rounds
            return frame
        if frame.saved > frame.round or (frame.kind is Kind.DONE and frame.saved != frame.round):
            raise WireError(
                f"agent {self.name} says that it saved round {frame.saved}, with {frame.round} "
                "rounds behind it"
            )
        return frame

    def _believe(self, frame: Frame) -> None:
        """Delete the rounds that the neighbor saved, if its receipt is right.

        A claim beyond our own rounds cannot be judged yet, and is ignored.
        """
        if self.outbox.drop_saved(frame.saved, frame.receipt) or frame.saved > self.me.done:
            return
        self._disputed += self.me.restored
        if self._disputed == MOST_DISPUTED:
            raise Refused(
                f"agents {self.me.name} and {self.name} disagree on what {self.me.name} sent up to "
                f"round {frame.saved}: since it came back from its checkpoint its program has "
                "computed other numbers; make the program and its data as they were, or start all "
                "agents anew with empty checkpoint folders"
            )
        raise WireError(
            f"agent {self.name} says that it saved round {frame.saved}, and did not take what was "
            "sent up to there"
        )

    def _greet(self, frame: Frame) -> list[bytes]:
        """Handle the first frame of a connection, and return the frames that the neighbor lacks."""
        if frame.kind is not Kind.HELLO:
            raise WireError(f"agent {self.name} spoke before it said hello")
        hello = self._parse_hello(frame)
        self._must_agree("the run", self.me.run, hello.get("run"))
        self._must_agree("its name", self.name, hello.get("agent"))
        settings = hello.get("settings")
        theirs = settings if isinstance(settings, dict) else {}
        for key in sorted({*self.me.settings, *theirs}):
            self._must_agree(key, self.me.settings.get(key), theirs.get(key))
        if frame.round < self.outbox.dropped:
            raise Refusal(
                f"agent {self.name} is back in round {frame.round + 1}, and agent {self.me.name} "
                f"has nothing left of rounds up to {self.outbox.dropped}: give agent {self.name} "
                "its checkpoint back, or start all agents anew with empty checkpoint folders"
            )
        self._believe(frame)
        self.inbox.greet(frame.round)
        self.up = True
        self.greetings += 1
        self.seen = False
        self._answered = False
        self.instance = str(hello.get("instance"))
        ended = hello.get("finished") is True and frame.saved == frame.round
        self._ended = (frame.round, frame.receipt) if ended else None
        # An agent that comes back may have done fewer rounds than before.
        self.done = frame.round
        return self.outbox.after(frame.round)

    def _parse_hello(self, frame: Frame) -> dict[str, object]:
        try:
            hello = json.loads(str(frame.data, "utf-8"))
        except (ValueError, RecursionError):
            hello = None
        if not isinstance(hello, dict):
            raise WireError(f"agent {self.name} sent a hello that cannot be read")
        return hello

    def _must_agree(
        self, key: str, mine: object, theirs: object, way_out: str = "give all agents the same"
    ) -> None:
        """Raise Mismatch or Refusal if a setting differs between the two agents."""
        if mine == theirs:
            return
        here, there = _short(mine, theirs)
        sentence = (
            f"agents {self.me.name} and {self.name} disagree on {_printable(key)[:LONG]}: "
            f"{here} at {self.me.name}, {there} at {self.name}; {way_out}"
        )
        # Before the first round nothing is lost by ending the run, and a person has to look at it.
        # Later, the neighbor that has just come back is wrong, and the others can go on.
        if self.me.done or self.greetings:
            raise Refusal(sentence)
        raise Mismatch(sentence)


def _short(mine: object, theirs: object) -> tuple[str, str]:
    """Return two values as text; of long ones, only the part where they begin to differ."""
    one = _printable("nothing" if mine is None else str(mine))
    other = _printable("nothing" if theirs is None else str(theirs))
    if max(len(one), len(other)) <= LONG:
        return one, other
    pairs = enumerate(zip(one, other, strict=False))
    same = next((k for k, (a, b) in pairs if a != b), min(len(one), len(other)))
    start = max(same - LONG // 4, 0)
    part = slice(start, start + LONG)
    return f"..{one[part]}..", f"..{other[part]}.."


def _printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())
