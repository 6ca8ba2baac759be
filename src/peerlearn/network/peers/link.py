"""One agent's side of the conversation with one neighbor. Pure code: no I/O and no clock.

Whenever a connection comes up, both ends say hello: who they are, which settings must agree, and how many rounds are
behind them. Each then sends again all that the other may lack, and repeated frames are ignored; so a connection may
break at any moment, and an agent may come back with less than it had, without a message being lost or counted twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from peerlearn.errors import Mismatch, NetworkError, Stopped, WireError
from peerlearn.network.codec import AnyArray
from peerlearn.network.peers.frame import ROUNDS, Frame, Kind, decode, encode, encode_text, text_of
from peerlearn.network.peers.mailbox import Inbox, Outbox

LONG = 160  # letters of a value in a sentence


class Refusal(NetworkError):
    """This neighbor cannot take part as it is now; others go on, and it is told why."""


class Left(Stopped):
    """A neighbor ended the run; the sentence is the one of whoever ended it first."""


@dataclass
class Speaker:
    """What an agent says of itself on all of its links."""

    run: str
    number: int
    name: str
    settings: Mapping[str, str]  # what must agree, in words
    done: int = 0  # rounds behind it
    saved: int = 0  # of these, those that it would not need again if it were killed now
    finished: bool = False  # its work is done

    def __post_init__(self) -> None:
        self._run = crc32(self.run.encode())

    def frames(self, kind: Kind, array: AnyArray, round: int) -> list[bytes]:
        return encode(kind, array, run=self._run, sender=self.number, round=round, saved=self.saved)

    def text(self, kind: Kind, text: str) -> bytes:
        return encode_text(kind, text, run=self._run, sender=self.number, round=self.done, saved=self.saved)

    def word(self, kind: Kind) -> bytes:
        """A frame that says no more than its kind and where the sender stands."""
        return self.frames(kind, np.empty(0, np.uint8), self.done)[0]

    def hello(self) -> bytes:
        told = {"run": self.run, "agent": self.name, "settings": dict(self.settings), "finished": self.finished}
        return self.text(Kind.HELLO, json.dumps(told))

    def read(self, data: bytes) -> Frame:
        return decode(data, run=self._run)


class Link:
    """The conversation with one neighbor, over however many connections."""

    def __init__(self, me: Speaker, neighbor: int, name: str, horizon: int) -> None:
        self.me, self.neighbor, self.name = me, neighbor, name
        self.inbox, self.outbox = Inbox(horizon), Outbox()
        self.up = False  # greeted on the present connection
        self.greetings = 0  # connections that came up since this process started
        self.done = 0  # rounds behind the neighbor, as far as we know
        self.finished = False  # its work is done
        self.seen = False  # it knows that ours is

    def closed(self) -> None:
        self.up = False

    def send(self, round: int, frames: list[bytes]) -> list[bytes]:
        """Keep the frames of a round, and say which to write now: none while there is no connection."""
        self.outbox.add(round, frames)
        return frames if self.up and round > self.done else []

    def heard(self, data: bytes) -> list[bytes]:
        """Take in one frame; gives the frames to write in answer."""
        frame = self.me.read(data)
        if frame.sender != self.neighbor:
            raise WireError(f"a frame of agent number {frame.sender} came on the link of agent {self.name}")
        if frame.saved > frame.round - (frame.kind in ROUNDS):
            raise WireError(f"agent {self.name} says that it saved round {frame.saved}, and is not there yet")
        if frame.kind is Kind.LEAVE:
            raise Left(text_of(frame))
        if not self.up:
            return self._greeted(frame)
        if frame.kind in ROUNDS:
            self.inbox.put(frame)
        elif frame.kind is Kind.HELLO:
            raise WireError(f"agent {self.name} said hello twice")
        self.outbox.saved(frame.saved)
        self.done = max(self.done, frame.round - (frame.kind in ROUNDS))
        self.finished |= frame.kind is Kind.DONE
        self.seen |= frame.kind is Kind.SEEN
        return [self.me.word(Kind.SEEN)] if frame.kind is Kind.DONE else []

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
        self.outbox.saved(frame.saved)
        self.up, self.greetings = True, self.greetings + 1
        self.finished |= told.get("finished") is True
        self.done = frame.round  # whatever was believed before: who comes back may have less than it had
        return self.outbox.after(frame.round)

    def _told(self, frame: Frame) -> dict[str, object]:
        try:
            told = json.loads(str(frame.data, "utf-8"))
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, dict):
            raise WireError(f"agent {self.name} said a hello that cannot be read")
        return told

    def _must_agree(self, key: str, mine: object, theirs: object) -> None:
        if mine == theirs:
            return
        here, there = _short(mine, theirs)
        sentence = (
            f"agents {self.me.name} and {self.name} disagree on {_printable(key)[:LONG]}: {here} at {self.me.name}, "
            f"{there} at {self.name}; give all agents the same"
        )
        # Before the first round nothing is lost by ending, and somebody has to look. Later only the newcomer is wrong.
        raise Refusal(sentence) if self.me.done or self.greetings else Mismatch(sentence)


def _short(mine: object, theirs: object) -> tuple[str, str]:
    """Two values in words; of long ones, the part where they begin to differ."""
    one, other = (_printable("nothing" if value is None else str(value)) for value in (mine, theirs))
    if max(len(one), len(other)) <= LONG:
        return one, other
    same = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    part = slice(max(same - LONG // 4, 0), max(same - LONG // 4, 0) + LONG)
    return f"..{one[part]}..", f"..{other[part]}.."


def _printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())
