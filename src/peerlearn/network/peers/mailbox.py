"""Exactly-once delivery by round numbers. Pure code, no I/O.

of a round that is behind          stale: dropped
of this round, or one of the next  kept until it is asked for (a neighbor may be ahead), a second copy ignored
of a round far ahead               refused: no neighbor can be there

What came on a connection is dropped when the next one is greeted: the neighbor then sends again all
that we lack. So
nothing that somebody else sent in its name, or half of a message, stands in its way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from peerlearn.arrays import Addends, all_finite
from peerlearn.errors import WireError
from peerlearn.network.peers.frame import MOST_BYTES, Frame, Kind, checksum_of, receipt_of

MOST_EARLY = 2 * MOST_BYTES  # bytes that one neighbor may make us keep for later
OVERHEAD = 1024  # bytes that a frame takes here beside its numbers, about


@dataclass(slots=True)
class Parcel:
    """One array, as much of it as has arrived. Memory is taken for bytes that are there, never for announced ones."""

    kind: Kind
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    size: int
    parts: dict[int, memoryview] = field(default_factory=dict)
    checksums: dict[int, int] = field(default_factory=dict)  # of the frames, by offset
    arrived: int = 0

    @property
    def complete(self) -> bool:
        return self.arrived == self.size and bool(self.parts)

    def receipt(self, before: int) -> int:
        """Return the receipt of all messages up to this one, from that of all before."""
        return receipt_of((self.checksums[offset] for offset in sorted(self.checksums)), before)

    def row(self, out: Addends, sender: str) -> None:
        """Put the numbers into `out`, which has as many as are expected, or say why they cannot be what was sent."""
        if self.kind is not Kind.ROW or self.dtype != out.dtype or self.shape != out.shape:
            raise WireError(
                f"agent {sender} sent a {self.kind.name.lower()} of {self.dtype} {self.shape} where {out.size} numbers "
                f"of {out.dtype} were due"
            )
        for offset, part in self.parts.items():
            out[offset // 8 : (offset + len(part)) // 8] = np.frombuffer(part, out.dtype)
        if not all_finite(out):
            raise WireError(f"agent {sender} sent numbers that are not finite")

    def letter(self, sender: str) -> bytes:
        if self.kind is not Kind.LETTER or self.dtype != np.uint8:
            raise WireError(
                f"agent {sender} sent a {self.kind.name.lower()} of {self.dtype} where a letter was due"
            )
        return b"".join(self.parts[offset] for offset in sorted(self.parts))


class Inbox:
    """What one neighbor sent and has not been asked for yet."""

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon  # rounds that a neighbor can be ahead
        self.done = 0  # rounds that are behind us
        self.theirs = (
            0  # rounds behind the neighbor at its last hello: more than ours if we were killed
        )
        self._parcels: dict[int, Parcel] = {}
        self.bytes = 0  # of all parcels

    def put(self, frame: Frame) -> str:
        """What became of a frame: "stale", "repeated", "part" or "kept" when its array is complete."""
        if frame.round <= self.done:
            return "stale"
        if frame.round > max(self.done, self.theirs) + self.horizon:
            raise WireError(
                f"a message of round {frame.round} came in round {self.done + 1}: nobody is so far ahead"
            )
        parcel = self._parcels.get(frame.round)
        if parcel is None:
            parcel = self._parcels[frame.round] = Parcel(
                frame.kind, frame.dtype, frame.shape, frame.size
            )
        elif (parcel.kind, parcel.dtype, parcel.shape) != (frame.kind, frame.dtype, frame.shape):
            raise WireError(f"two different messages came for round {frame.round}")
        if frame.offset in parcel.parts:
            return "repeated"
        if self.bytes + len(frame.data) + OVERHEAD > MOST_EARLY:
            raise WireError(f"more than {MOST_EARLY} bytes came for rounds ahead")
        parcel.parts[frame.offset] = frame.data
        parcel.checksums[frame.offset] = frame.checksum
        parcel.arrived += len(frame.data)
        self.bytes += len(frame.data) + OVERHEAD
        return "kept" if parcel.complete else "part"

    def has(self, round: int) -> bool:
        parcel = self._parcels.get(round)
        return parcel is not None and parcel.complete

    def take(self, round: int) -> Parcel:
        """What came for this round, complete; it is gone from here."""
        parcel = self._parcels.pop(round)
        self.bytes -= parcel.arrived + OVERHEAD * len(parcel.parts)
        return parcel

    def greet(self, theirs: int) -> None:
        """Begin anew with a neighbor that has so many rounds behind it."""
        self._parcels.clear()
        self.bytes, self.theirs = 0, theirs

    def finish(self, round: int) -> None:
        """This round and all before are behind us."""
        self.done = round
        for old in [each for each in self._parcels if each <= round]:
            self.take(old)


@dataclass(slots=True)
class Sent:
    """The frames of one round, and the receipt of a neighbor that has taken them and all before."""

    round: int
    frames: Sequence[bytes]
    receipt: int


class Outbox:
    """What was sent to one neighbor and may be asked for again: until it has saved what it made of it."""

    def __init__(self) -> None:
        self._sent: deque[Sent] = deque()
        self.bytes = 0
        self.dropped = 0  # the last round of which we can no longer send anything
        self.dropped_receipt = 0  # of a neighbor that has taken everything up to that round

    @property
    def last(self) -> int:
        """The last round in which something was sent."""
        return self._sent[-1].round if self._sent else self.dropped

    @property
    def receipt(self) -> int:
        """The receipt of a neighbor that has taken everything."""
        return self._sent[-1].receipt if self._sent else self.dropped_receipt

    def add(self, round: int, frames: Sequence[bytes]) -> None:
        """Keep the frames of a round; the same round again, after a restart, brings the same frames."""
        if round <= self.last:
            return
        self._sent.append(Sent(round, frames, receipt_of(map(checksum_of, frames), self.receipt)))
        self.bytes += sum(map(len, frames))

    def taken(self, round: int, receipt: int) -> bool:
        """Whether the receipt is that of a neighbor that has taken all rounds up to this one, if we still know that."""
        if round < self.dropped:
            return False
        latest = self.dropped_receipt
        for sent in self._sent:
            if sent.round > round:
                break
            latest = sent.receipt
        return latest == receipt

    def saved(self, round: int, receipt: int) -> bool:
        """Delete rounds up to this one if the neighbor has taken them; False if the receipt is not that of one."""
        if round <= self.dropped:
            return True  # they are gone
        if not self.taken(round, receipt):
            return False
        while self._sent and self._sent[0].round <= round:
            self._drop()
        return True

    def keep_below(self, most_bytes: int) -> bool:
        """Forget the oldest rounds while there is more than this; says whether any had to go."""
        before = self.dropped
        while self.bytes > most_bytes and len(self._sent) > 1:
            self._drop()
        return self.dropped > before

    def after(self, round: int) -> list[bytes]:
        """The frames of all later rounds, in order."""
        return [frame for sent in self._sent if sent.round > round for frame in sent.frames]

    def entries(self, after: int, up_to: int) -> list[tuple[int, Sequence[bytes]]]:
        """Rounds with their frames, for a checkpoint."""
        return [(sent.round, sent.frames) for sent in self._sent if after < sent.round <= up_to]

    def _drop(self) -> None:
        sent = self._sent.popleft()
        self.bytes -= sum(map(len, sent.frames))
        self.dropped, self.dropped_receipt = sent.round, sent.receipt
