"""One agent's side of the conversation with one neighbor. Pure code: no I/O and no clock.

Whenever a connection comes up, both ends say hello: who they are, which settings must agree, and
how many rounds are
behind them. Each then sends again all that the other may lack, and repeated frames are ignored; so
a connection may break at any moment, and an agent may come back with less than it had, without a
message being lost or counted twice.

Two claims of a neighbor let this agent delete something: that it saved a round, and that its work
is done. Both count
only with the receipt of all that this agent sent up to that round (frame.py). All other claims are
forgotten with the connection they came on: the next hello replaces them.
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
MOST_DISPUTED = 20  # false claims of a neighbor after which an agent that came back doubts itself


class Refusal(NetworkError):
    """This neighbor cannot take part as it is now; others go on, and it is told why."""


class Left(Stopped):
    """A neighbor ended the run; the sentence is the one of whoever ended it first."""


class Refused(Left):
    """A neighbor goes on without this agent until it comes back as it should be; the others need not hear of it."""


@dataclass
class Speaker:
    """What an agent says of itself on all of its links."""

    run: str
    number: int
    name: str
    settings: Mapping[str, str]  # what must agree, in words
    done: int = 0  # rounds behind it
    finished: bool = False  # its work is done
    waits_for: str = ""  # the agent that holds it up, if it has waited for long
    restored: bool = False  # it came back from a checkpoint
    instance: str = field(
        default_factory=lambda: secrets.token_hex(16)
    )  # of this process, to tell two apart

    def __post_init__(self) -> None:
        self._run = run_identity(self.run)

    def frames(self, kind: Kind, array: AnyArray, round: int) -> list[bytes]:
        """Return the frames of a row or letter: the same bytes whenever they are made."""
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
        """Return a frame with nothing but its kind and where the sender stands."""
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
        return decode(data, run=self._run)


class Link:
    """The conversation with one neighbor, over however many connections."""

    def __init__(self, me: Speaker, neighbor: int, name: str, horizon: int) -> None:
        self.me, self.neighbor, self.name = me, neighbor, name
        self.inbox, self.outbox = Inbox(horizon), Outbox()
        self.up = False  # greeted on the present connection
        self.greetings = 0  # connections that came up since this process started
        self.instance = ""  # of the neighbor's process at the other end
        self.done = 0  # rounds behind the neighbor, as far as we know
        self.waits_for = ""  # the agent that holds the neighbor up, as far as it says
        self.receipt = 0  # of all that we took from the neighbor
        self.saved = (
            0,
            0,
        )  # the last round that we would not need again if we were killed now, and its receipt
        self.seen = False  # the neighbor knows that our work is done
        self._ended: tuple[int, int] | None = (
            None  # its last round and receipt, if it said that its work is done
        )
        self._answered = False  # it heard on this connection that we know it
        self._disputed = (
            0  # claims of the neighbor that do not fit what we have sent since we came back
        )

    def closed(self) -> None:
        self.up = False

    @property
    def finished(self) -> bool:
        """Whether the neighbor's work is done: it has taken all that we sent up to its last round, and we are there."""
        return self._ended == (self.me.done, self.outbox.receipt)

    @property
    def ended_early(self) -> bool:
        """Whether the neighbor's work is done, and it will take no part in our next round."""
        ended = self._ended
        return (
            self.up and ended is not None and ended[0] <= self.me.done and self.outbox.taken(*ended)
        )

    def hello(self) -> bytes:
        return self.me.hello(*self._claim())

    def word(self, kind: Kind) -> bytes:
        return self.me.text(kind, self.me.waits_for if kind is Kind.ALIVE else "", *self._claim())

    @property
    def late(self) -> str:
        """The neighbor, as somebody that is waited for: it may itself wait for another agent, as far as it says."""
        other = self.waits_for not in ("", self.name, self.me.name)
        return f"{self.name} (which waits for {self.waits_for})" if other else self.name

    def _claim(self) -> tuple[int, int]:
        """The last round that the neighbor need not keep for us, and the receipt that shows it."""
        return (self.me.done, self.receipt) if self.me.finished else self.saved

    def send(self, round: int, frames: Sequence[bytes]) -> Sequence[bytes]:
        """Keep the frames of a round, and say which to write now: none while there is no connection."""
        self.outbox.add(round, frames)
        return frames if self.up and round > self.done else []

    def heard(self, data: bytes) -> list[bytes]:
        """Take in one frame; gives the frames to write in answer."""
        frame = self._read(data)
        if not self.up:
            return self._greeted(frame)
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
        self._ended, self._answered = (frame.round, frame.receipt), True
        return [self.word(Kind.SEEN)]

    def caller(self, data: bytes) -> str:
        """Return which process of the neighbor says this hello, without believing any of it yet."""
        frame = self._read(data)
        if frame.kind is not Kind.HELLO:
            raise WireError(f"agent {self.name} spoke before it said hello")
        return str(self._told(frame).get("instance"))

    def _read(self, data: bytes) -> Frame:
        """Return the frame, if its numbers can be true."""
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
        if frame.kind in ROUNDS:  # the inbox knows which rounds can come
            return frame
        if frame.saved > frame.round or (frame.kind is Kind.DONE and frame.saved != frame.round):
            raise WireError(
                f"agent {self.name} says that it saved round {frame.saved}, with {frame.round} rounds behind it"
            )
        return frame

    def _believe(self, frame: Frame) -> None:
        """Delete what the neighbor saved, if its receipt is right; beyond our own rounds it cannot be judged yet."""
        if self.outbox.saved(frame.saved, frame.receipt) or frame.saved > self.me.done:
            return
        self._disputed += self.me.restored
        if self._disputed == MOST_DISPUTED:
            raise Refused(
                f"agents {self.me.name} and {self.name} disagree on what {self.me.name} sent up to round "
                f"{frame.saved}: since it came back from its checkpoint its program has computed other numbers; make "
                "the program and its data as they were, or start all agents anew with empty checkpoint folders"
            )
        raise WireError(
            f"agent {self.name} says that it saved round {frame.saved}, and did not take what was sent up to there"
        )

    def _greeted(self, frame: Frame) -> list[bytes]:
        if frame.kind is not Kind.HELLO:
            raise WireError(f"agent {self.name} spoke before it said hello")
        told = self._told(frame)
        self._must_agree("the run", self.me.run, told.get("run"))
        self._must_agree("its name", self.name, told.get("agent"))
        settings = told.get("settings")
        theirs = settings if isinstance(settings, dict) else {}
        for key in sorted({*self.me.settings, *theirs}):
            self._must_agree(key, self.me.settings.get(key), theirs.get(key))
        if frame.round < self.outbox.dropped:
            raise Refusal(
                f"agent {self.name} is back in round {frame.round + 1}, and agent {self.me.name} has nothing left of "
                f"rounds up to {self.outbox.dropped}: give agent {self.name} its checkpoint back, or start all agents "
                "anew with empty checkpoint folders"
            )
        self._believe(frame)
        self.inbox.greet(frame.round)
        self.up, self.greetings = True, self.greetings + 1
        self.seen = self._answered = False
        self.instance = str(told.get("instance"))
        ended = told.get("finished") is True and frame.saved == frame.round
        self._ended = (frame.round, frame.receipt) if ended else None
        self.done = (
            frame.round
        )  # whatever was believed before: who comes back may have less than it had
        return self.outbox.after(frame.round)

    def _told(self, frame: Frame) -> dict[str, object]:
        try:
            told = json.loads(str(frame.data, "utf-8"))
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, dict):
            raise WireError(f"agent {self.name} said a hello that cannot be read")
        return told

    def _must_agree(
        self, key: str, mine: object, theirs: object, way_out: str = "give all agents the same"
    ) -> None:
        if mine == theirs:
            return
        here, there = _short(mine, theirs)
        sentence = (
            f"agents {self.me.name} and {self.name} disagree on {_printable(key)[:LONG]}: {here} at {self.me.name}, "
            f"{there} at {self.name}; {way_out}"
        )
        # Before the first round nothing is lost by ending, and somebody has to look. Later only the
        # newcomer is wrong.
        raise Refusal(sentence) if self.me.done or self.greetings else Mismatch(sentence)


def _short(mine: object, theirs: object) -> tuple[str, str]:
    """Two values in words; of long ones, the part where they begin to differ."""
    one, other = (
        _printable("nothing" if value is None else str(value)) for value in (mine, theirs)
    )
    if max(len(one), len(other)) <= LONG:
        return one, other
    same = next(
        (k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    part = slice(max(same - LONG // 4, 0), max(same - LONG // 4, 0) + LONG)
    return f"..{one[part]}..", f"..{other[part]}.."


def _printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())
