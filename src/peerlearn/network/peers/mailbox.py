"""Exactly-once delivery by round numbers. Pure code, no I/O.

of a round that is behind          stale: dropped
of this round, or one of the next  kept until it is asked for (a neighbor may be ahead), a second copy ignored
of a round far ahead               refused: no neighbor can be there
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from peerlearn.arrays import Array, all_finite
from peerlearn.errors import WireError
from peerlearn.network.peers.frame import MOST_BYTES, Frame, Kind

MOST_EARLY = 2 * MOST_BYTES  # bytes that one neighbor may make us keep for later


@dataclass(slots=True)
class Parcel:
    """One array, as much of it as has arrived. Memory is taken for bytes that are there, never for announced ones."""

    kind: Kind
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    size: int
    parts: dict[int, memoryview] = field(default_factory=dict)
    arrived: int = 0

    @property
    def complete(self) -> bool:
        return self.arrived == self.size and bool(self.parts)

    def row(self, out: Array, sender: str) -> None:
        """Put the numbers into `out`, which has as many as are expected, or say why they cannot be what was sent."""
        if self.kind is not Kind.ROW or self.dtype != np.float64 or self.shape != out.shape:
            raise WireError(
                f"agent {sender} sent a {self.kind.name.lower()} of {self.dtype} {self.shape} where {out.size} numbers "
                "were due"
            )
        for offset, part in self.parts.items():
            out[offset // 8 : (offset + len(part)) // 8] = np.frombuffer(part)
        if not all_finite(out):
            raise WireError(f"agent {sender} sent numbers that are not finite")

    def letter(self, sender: str) -> bytes:
        if self.kind is not Kind.LETTER or self.dtype != np.uint8:
            raise WireError(f"agent {sender} sent a {self.kind.name.lower()} of {self.dtype} where a letter was due")
        return b"".join(self.parts[offset] for offset in sorted(self.parts))


class Inbox:
    """What one neighbor sent and has not been asked for yet."""

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon  # rounds that a neighbor can be ahead
        self.done = 0  # rounds that are behind us
        self._parcels: dict[int, Parcel] = {}
        self._bytes = 0

    def put(self, frame: Frame) -> str:
        """What became of a frame: "stale", "repeated", "part" or "kept" when its array is complete."""
        if frame.round <= self.done:
            return "stale"
        if frame.round > self.done + self.horizon:
            raise WireError(f"a message of round {frame.round} came in round {self.done + 1}: nobody is so far ahead")
        parcel = self._parcels.get(frame.round)
        if parcel is None:
            parcel = self._parcels[frame.round] = Parcel(frame.kind, frame.dtype, frame.shape, frame.size)
        elif (parcel.kind, parcel.dtype, parcel.shape) != (frame.kind, frame.dtype, frame.shape):
            raise WireError(f"two different messages came for round {frame.round}")
        if frame.offset in parcel.parts:
            return "repeated"
        if self._bytes + len(frame.data) > MOST_EARLY:
            raise WireError(f"more than {MOST_EARLY} bytes came for rounds ahead")
        parcel.parts[frame.offset] = frame.data
        parcel.arrived += len(frame.data)
        self._bytes += len(frame.data)
        return "kept" if parcel.complete else "part"

    def has(self, round: int) -> bool:
        parcel = self._parcels.get(round)
        return parcel is not None and parcel.complete

    def take(self, round: int) -> Parcel:
        """What came for this round, complete; it is gone from here."""
        parcel = self._parcels.pop(round)
        self._bytes -= parcel.arrived
        return parcel

    def finish(self, round: int) -> None:
        """This round and all before are behind us."""
        self.done = round
        for old in [each for each in self._parcels if each <= round]:
            self.take(old)


class Outbox:
    """What was sent to one neighbor and may be asked for again: until it has saved what it made of it."""

    def __init__(self) -> None:
        self._sent: deque[tuple[int, list[bytes]]] = deque()
        self.bytes = 0
        self.dropped = 0  # the last round of which we can no longer send anything

    def add(self, round: int, frames: list[bytes]) -> None:
        """Keep the frames of a round; the same round again, after a restart, brings the same frames."""
        if self._sent and round <= self._sent[-1][0]:
            return
        self._sent.append((round, frames))
        self.bytes += sum(map(len, frames))

    def saved(self, round: int) -> None:
        """Rounds up to this one will never be asked for again."""
        while self._sent and self._sent[0][0] <= round:
            self._drop()
        self.dropped = max(self.dropped, round)

    def keep_below(self, most_bytes: int) -> bool:
        """Forget the oldest rounds while there is more than this; says whether any had to go."""
        before = self.dropped
        while self.bytes > most_bytes and len(self._sent) > 1:
            self.dropped = self._drop()
        return self.dropped > before

    def after(self, round: int) -> list[bytes]:
        """The frames of all later rounds, in order."""
        return [frame for sent, frames in self._sent if sent > round for frame in frames]

    def entries(self, after: int, up_to: int) -> list[tuple[int, list[bytes]]]:
        """Rounds with their frames, for a checkpoint."""
        return [(round, frames) for round, frames in self._sent if after < round <= up_to]

    def _drop(self) -> int:
        round, frames = self._sent.popleft()
        self.bytes -= sum(map(len, frames))
        return round
