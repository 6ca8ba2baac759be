"""Exactly-once delivery by round numbers. No I/O.

    message of a past round                dropped as stale
    message of this round or a near one    kept until it is taken; a second copy is ignored
    message of a round far ahead           refused: no neighbor can be there

Neighbors may be some rounds ahead. Messages that were not taken are dropped at the next hello,
because the neighbor then sends again all that we lack. So half a message, or one that somebody else
sent in the neighbor's name, does no harm.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peerlearn.arrays import Addends, all_finite
from peerlearn.errors import WireError
from peerlearn.network.peers.frame import MOST_BYTES, Frame, Kind, checksum_of, receipt_of

MOST_EARLY = 2 * MOST_BYTES  # bytes that one neighbor may make us keep for later
OVERHEAD = 1024  # bytes of memory that a frame takes beside its numbers, about


class Parcel:
    """One array, as much of it as has arrived.

    Memory is used only for bytes that have arrived, never for those that were announced.
    """

    __slots__ = ("arrived", "first", "frames")

    def __init__(self, first: Frame) -> None:
        self.first = first  # all frames have its kind, type and shape
        self.frames: dict[int, Frame] = {}  # by offset
        self.arrived = 0  # bytes

    @property
    def complete(self) -> bool:
        return self.arrived == self.first.size and bool(self.frames)

    @property
    def size(self) -> int:
        """Bytes of the whole array."""
        return self.first.size

    def fits(self, frame: Frame) -> bool:
        """Return whether a frame is of the same kind, type and shape as the others."""
        first = self.first
        return (
            frame.kind is first.kind and frame.dtype == first.dtype and frame.shape == first.shape
        )

    def receipt(self, before: int) -> int:
        """Return the receipt of all messages up to this one, from the receipt before it."""
        return receipt_of([self.frames[offset].checksum for offset in sorted(self.frames)], before)

    def row(self, out: Addends, sender: str) -> None:
        """Copy the numbers to `out`, or raise WireError if they are not of its shape and type."""
        first = self.first
        if first.kind is not Kind.ROW or first.dtype != out.dtype or first.shape != out.shape:
            raise WireError(
                f"agent {sender} sent a {first.kind.name.lower()} of {first.dtype} {first.shape}, "
                f"but {out.size} numbers of {out.dtype} were expected"
            )
        for offset, frame in self.frames.items():
            numbers = np.frombuffer(frame.data, out.dtype)
            out[offset // 8 : offset // 8 + len(numbers)] = numbers
        if not all_finite(out):
            raise WireError(f"agent {sender} sent numbers that are not finite")

    def letter(self, sender: str) -> bytes:
        """Return the bytes of a letter, or raise WireError if this is not one."""
        first = self.first
        if first.kind is not Kind.LETTER or first.dtype != np.uint8:
            raise WireError(
                f"agent {sender} sent a {first.kind.name.lower()} of {first.dtype}, "
                "but a letter was expected"
            )
        return b"".join(self.frames[offset].data for offset in sorted(self.frames))


class Inbox:
    """Messages of one neighbor that have not been taken yet."""

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon  # rounds that a neighbor can be ahead
        self.done = 0  # rounds that we have done
        self.theirs = 0  # rounds done by the neighbor at its last hello; it may be ahead of us
        self._parcels: dict[int, Parcel] = {}
        self.bytes = 0  # of all parcels

    def put(self, frame: Frame) -> str:
        """Add a frame; return "stale", "repeated", "part", or "kept" if its array is complete."""
        if frame.round <= self.done:
            return "stale"
        if frame.round > max(self.done, self.theirs) + self.horizon:
            raise WireError(
                f"a message of round {frame.round} came in round {self.done + 1}: "
                "nobody is so far ahead"
            )
        parcel = self._parcels.get(frame.round)
        if parcel is None:
            parcel = self._parcels[frame.round] = Parcel(frame)
        elif not parcel.fits(frame):
            raise WireError(f"two different messages came for round {frame.round}")
        if frame.offset in parcel.frames:
            return "repeated"
        length = len(frame.data)
        if self.bytes + length + OVERHEAD > MOST_EARLY:
            raise WireError(f"more than {MOST_EARLY} bytes came for rounds ahead")
        parcel.frames[frame.offset] = frame
        parcel.arrived += length
        self.bytes += length + OVERHEAD
        return "kept" if parcel.complete else "part"

    def has(self, round: int) -> bool:
        """Return whether the message of this round is complete."""
        parcel = self._parcels.get(round)
        return parcel is not None and parcel.complete

    def take(self, round: int) -> Parcel:
        """Remove and return the message of this round."""
        parcel = self._parcels.pop(round)
        self.bytes -= parcel.arrived + OVERHEAD * len(parcel.frames)
        return parcel

    def greet(self, theirs: int) -> None:
        """Start again with a neighbor that has done so many rounds."""
        self._parcels.clear()
        self.bytes = 0
        self.theirs = theirs

    def finish(self, round: int) -> None:
        """Note that this round and all before it are done."""
        self.done = round
        if self._parcels:
            for old in [each for each in self._parcels if each <= round]:
                self.take(old)


@dataclass(slots=True)
class Sent:
    """Frames of one round, and the receipt for them and all before."""

    round: int
    frames: Sequence[bytes]
    receipt: int


class Outbox:
    """Messages to one neighbor, kept until it has saved the rounds they belong to."""

    def __init__(self) -> None:
        self._sent: deque[Sent] = deque()
        self.bytes = 0
        self.dropped = 0  # last round whose frames are gone
        self.dropped_receipt = 0  # for everything up to that round

    @property
    def last(self) -> int:
        """Last round in which something was sent."""
        return self._sent[-1].round if self._sent else self.dropped

    @property
    def receipt(self) -> int:
        """Receipt for everything that was sent."""
        return self._sent[-1].receipt if self._sent else self.dropped_receipt

    def add(self, round: int, frames: Sequence[bytes]) -> None:
        """Keep the frames of a round. A round that is there already has the same frames."""
        if round <= self.last:
            return
        self._sent.append(Sent(round, frames, receipt_of(map(checksum_of, frames), self.receipt)))
        self.bytes += sum(map(len, frames))

    def matches(self, round: int, receipt: int) -> bool:
        """Return whether this is the receipt for all rounds up to this one.

        False for rounds so old that it is not known any more.
        """
        if round < self.dropped:
            return False
        latest = self.dropped_receipt
        for sent in self._sent:
            if sent.round > round:
                break
            latest = sent.receipt
        return latest == receipt

    def drop_saved(self, round: int, receipt: int) -> bool:
        """Delete rounds up to this one if the receipt is right, and return whether it is."""
        if round <= self.dropped:
            return True  # they are gone already
        if not self.matches(round, receipt):
            return False
        while self._sent and self._sent[0].round <= round:
            self._drop()
        return True

    def keep_below(self, most_bytes: int) -> bool:
        """Delete the oldest rounds beyond this size, and return whether there were any."""
        before = self.dropped
        while self.bytes > most_bytes and len(self._sent) > 1:
            self._drop()
        return self.dropped > before

    def after(self, round: int) -> list[bytes]:
        """Return the frames of all later rounds, in order."""
        return [frame for sent in self._sent if sent.round > round for frame in sent.frames]

    def entries(self, after: int, up_to: int) -> list[tuple[int, Sequence[bytes]]]:
        """Return rounds with their frames, for a checkpoint."""
        return [(sent.round, sent.frames) for sent in self._sent if after < sent.round <= up_to]

    def _drop(self) -> None:
        sent = self._sent.popleft()
        self.bytes -= sum(map(len, sent.frames))
        self.dropped = sent.round
        self.dropped_receipt = sent.receipt
