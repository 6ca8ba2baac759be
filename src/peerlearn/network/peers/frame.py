"""Frames, the messages on a link: a fixed header and raw bytes. No I/O.

    magic, version     4 + 1 bytes   "PEER", 2
    kind               1             hello, row, letter, alive, done, seen, leave, refuse
    dtype, dimensions  1 + 1         from the closed list of `codec`; at most 4 dimensions
    run                16            identity of the run: first half of the SHA-256 of its name
    epoch              4             0: the graph of a run does not change yet
    sender             4             agent number, checked against the certificate
    round              8             of rows and letters: their round; of others: rounds done
    saved              8             the sender never needs rounds up to this one again;
                                     0 in rows and letters
    receipt            8             of all that the sender took from the receiver up to `saved`
    shape              16            of the whole array
    offset, length     8 + 4         position of the bytes that follow in the array
    checksum           8             of all fields above and of the bytes
    bytes              length        little-endian

A large array is sent in chunks, one frame each. `decode` checks every field before it uses the
bytes, and returns a frame or raises WireError, whatever the bytes. Without the checksum, 9-52 % of
frames with a flipped bit would decode to another array.

A receipt is a running checksum over the frames of rows and letters, in the order of rounds. Only an
agent that really received them can compute it, so nobody else can make a neighbor delete frames
that the agent still needs. For that to work, frames of a round must have the same bytes whenever
they are made: they carry neither `saved` nor a receipt.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256

import numpy as np

from peerlearn.errors import MissingExtra, WireError
from peerlearn.network.codec import CODES, DTYPES, MOST_DIMENSIONS, AnyArray

try:
    from xxhash import xxh3_64_intdigest
except ImportError:
    raise MissingExtra("PeerNetwork", "xxhash", "peers") from None

MAGIC = b"PEER"
VERSION = 2
EPOCH = 0
MOST_ROUNDS = 1 << 48  # a million rounds a second would take nine years to get there
CHUNK = 1 << 20  # bytes of an array in one frame
MOST_BYTES = 1 << 28  # of one array: a neighbor cannot announce more
MOST_TEXT = CHUNK  # bytes of a hello or a farewell

_FIELDS = struct.Struct("<4s4B16s2I3Q4IQI")
_SUM = struct.Struct("<Q")
HEADER = _FIELDS.size + _SUM.size
_START = MAGIC + bytes([VERSION])


class Kind(IntEnum):
    """Kind of a frame."""

    HELLO = 1  # who I am, what must agree, where I stand
    ROW = 2  # an agent's entry in a round
    LETTER = 3  # what `exchange` sends; empty where there is nothing to say
    ALIVE = 4  # nothing new, but here
    DONE = 5  # my work is done and on disk
    SEEN = 6  # I know that your work is done
    LEAVE = 7  # I failed, and why
    REFUSE = 8  # you cannot take part as you are, and why


_KINDS = {int(kind): kind for kind in Kind}  # quicker than Kind(number), which is a call
TEXTS = (Kind.HELLO, Kind.LEAVE, Kind.REFUSE)
ROUNDS = (Kind.ROW, Kind.LETTER)  # what is delivered exactly once


class OtherRelease(WireError):
    """Error about a frame in the format of another release of peerlearn."""

    def __init__(self, version: int) -> None:
        super().__init__(
            f"a frame of wire format {version} came, and this release of peerlearn has {VERSION}"
        )
        self.version = version


@dataclass(slots=True)
class Frame:
    """One decoded frame, with all of its fields checked."""

    kind: Kind
    sender: int
    round: int
    saved: int
    receipt: int
    checksum: bytes
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    size: int  # bytes of the whole array
    offset: int
    data: memoryview


def run_identity(name: str) -> bytes:
    """Return the 128 bits that identify the run in its frames."""
    return sha256(name.encode()).digest()[:16]


def encode(
    kind: Kind,
    array: AnyArray,
    *,
    run: bytes,
    sender: int,
    round: int,
    saved: int = 0,
    receipt: int = 0,
    chunk: int = CHUNK,
) -> list[bytes]:
    """Encode one array, whose type is in the closed list, as frames."""
    array = np.ascontiguousarray(array)
    raw = array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
    shape = array.shape + (0,) * (MOST_DIMENSIONS - array.ndim)
    what = (MAGIC, VERSION, kind, CODES[array.dtype], array.ndim)
    who = (run, EPOCH, sender, round, saved, receipt)
    frames = []
    for offset in range(0, max(len(raw), 1), chunk):
        part = raw[offset : offset + chunk]
        head = _FIELDS.pack(*what, *who, *shape, offset, len(part))
        frames.append(b"".join((head, _checksum(head, part), part)))
    return frames


def encode_text(
    kind: Kind, text: str, *, run: bytes, sender: int, round: int, saved: int = 0, receipt: int = 0
) -> bytes:
    """Encode a text as one frame, cut if it is too long."""
    raw = np.frombuffer(text.encode(errors="replace")[:MOST_TEXT], np.uint8)
    return encode(kind, raw, run=run, sender=sender, round=round, saved=saved, receipt=receipt)[0]


def decode(data: bytes, *, run: bytes, chunk: int = CHUNK) -> Frame:
    """Decode one frame, or raise WireError with the reason."""
    if data[: len(_START)] != _START and data[: len(MAGIC)] == MAGIC and len(data) > len(MAGIC):
        raise OtherRelease(data[len(MAGIC)])
    if not HEADER <= len(data) <= HEADER + chunk:
        raise WireError(f"a frame of {len(data)} bytes: frames have {HEADER} to {HEADER + chunk}")
    (
        magic, _, number, code, dimensions, of_run, epoch, sender,
        round, saved, receipt, *shape, offset, length,
    ) = _FIELDS.unpack_from(data)  # fmt: skip
    if magic != MAGIC:
        raise WireError(f"a frame that begins with {magic!r}: it is not from peerlearn")
    body = memoryview(data)[HEADER:]
    checksum = checksum_of(data)
    if length != len(body) or _checksum(data[: _FIELDS.size], body) != checksum:
        raise WireError("a frame was damaged on its way: its length or checksum is wrong")
    if of_run != run:
        raise WireError("a frame of another run: give all agents the same run name")
    if epoch != EPOCH:
        raise WireError(
            f"a frame of epoch {epoch}: this release of peerlearn knows only epoch {EPOCH}"
        )
    kind = _KINDS.get(number)
    if kind is None or code >= len(DTYPES) or dimensions > MOST_DIMENSIONS:
        raise WireError(f"a frame of unknown kind {number}, type {code} or {dimensions} dimensions")
    if max(round, saved) >= MOST_ROUNDS:
        raise WireError(
            f"a frame of round {round} that claims to have saved round {saved}: no run is so long"
        )
    if kind in ROUNDS and (saved or receipt):
        raise WireError(
            f"a {kind.name.lower()} that claims to have saved round {saved}: rows claim nothing"
        )
    size = math.prod(shape[:dimensions]) * DTYPES[code].itemsize
    most = MOST_TEXT if kind in TEXTS else MOST_BYTES
    if size > most:
        raise WireError(f"an array of {size} bytes was announced, and {most} are the most")
    if offset % chunk or length != min(chunk, size - offset) or (size and offset >= size):
        raise WireError(
            f"a frame brings bytes {offset} to {offset + length} of {size}, "
            "which is not one of its chunks"
        )
    return Frame(
        kind,
        sender,
        round,
        saved,
        receipt,
        checksum,
        DTYPES[code],
        tuple(shape[:dimensions]),
        size,
        offset,
        body,
    )


def checksum_of(frame: bytes) -> bytes:
    """Return the checksum that a frame carries."""
    return frame[_FIELDS.size : HEADER]


def receipt_of(checksums: Iterable[bytes], before: int) -> int:
    """Return the receipt after one more message, from the checksums of its frames by offset."""
    receipt = before
    for checksum in checksums:
        receipt = xxh3_64_intdigest(checksum, receipt)
    return receipt


def _checksum(head: bytes, body: memoryview) -> bytes:
    return _SUM.pack(xxh3_64_intdigest(body, xxh3_64_intdigest(head)))


def text_of(frame: Frame) -> str:
    """Return the text of a frame, without characters that could control a terminal.

    Bytes that are not UTF-8 are replaced.
    """
    return "".join(
        letter
        for letter in str(frame.data, "utf-8", "replace")
        if letter.isprintable() or letter == " "
    )


def split(frames: bytes | memoryview) -> list[bytes]:
    """Split joined frames. The input is not checked: use it for this agent's own frames only."""
    found = []
    view = memoryview(frames)
    while len(view):
        length = HEADER + _FIELDS.unpack_from(view)[-1]
        found.append(bytes(view[:length]))
        view = view[length:]
    return found
