"""What travels on a link: a fixed header and raw bytes, in chunks where large. Pure code, no I/O.

    magic, version     4 + 1 bytes      "PEER", 1
    kind               1                hello, row, letter, alive, done, seen, leave
    dtype, dimensions  1 + 1            from the closed list of `codec`; at most 4 dimensions
    run                4                checksum of the run's name
    sender             4                agent number, checked against the certificate
    round              8                the round this belongs to; of other kinds: the rounds behind the sender
    saved              8                the sender will never ask for rounds up to this one again
    shape              16               of the whole array
    offset, length     8 + 4            which bytes of the array follow
    checksum           8                of all that is above and of the bytes
    bytes              length           little-endian

Every field is checked before anything is made of the bytes: 9-52 % of frames with a flipped bit would otherwise decode
to another array. Whatever the bytes, `decode` gives a frame or raises WireError.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from peerlearn.errors import MissingExtra, WireError
from peerlearn.network.codec import CODES, DTYPES, MOST_DIMENSIONS, AnyArray

try:
    from xxhash import xxh3_64_intdigest
except ImportError:
    raise MissingExtra("PeerNetwork", "xxhash", "peers") from None

MAGIC, VERSION = b"PEER", 1
CHUNK = 1 << 20  # bytes of an array in one frame
MOST_BYTES = 1 << 28  # of one array: a neighbor cannot announce more
MOST_TEXT = CHUNK  # bytes of a hello or a farewell

_FIELDS = struct.Struct("<4s4B2I2Q4IQI")
_SUM = struct.Struct("<Q")
HEADER = _FIELDS.size + _SUM.size


class Kind(IntEnum):
    HELLO = 1  # who I am, what must agree, where I stand
    ROW = 2  # an agent's entry in a round
    LETTER = 3  # what `exchange` sends; empty where there is nothing to say
    ALIVE = 4  # nothing new, but here
    DONE = 5  # my work is done and on disk
    SEEN = 6  # I know that your work is done
    LEAVE = 7  # I failed, and why


TEXTS = (Kind.HELLO, Kind.LEAVE)
ROUNDS = (Kind.ROW, Kind.LETTER)  # what is delivered exactly once


@dataclass(slots=True)
class Frame:
    kind: Kind
    sender: int
    round: int
    saved: int
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    size: int  # bytes of the whole array
    offset: int
    data: memoryview


def encode(
    kind: Kind, array: AnyArray, *, run: int, sender: int, round: int, saved: int, chunk: int = CHUNK
) -> list[bytes]:
    """The frames of one array of a type from the closed list."""
    array = np.ascontiguousarray(array)
    raw = array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
    shape = array.shape + (0,) * (MOST_DIMENSIONS - array.ndim)
    frames = []
    for offset in range(0, max(len(raw), 1), chunk):
        part = raw[offset : offset + chunk]
        head = _FIELDS.pack(
            MAGIC, VERSION, kind, CODES[array.dtype], array.ndim, run, sender, round, saved, *shape, offset, len(part)
        )
        frames.append(b"".join((head, _SUM.pack(_checksum(head, part)), part)))
    return frames


def encode_text(kind: Kind, text: str, *, run: int, sender: int, round: int, saved: int) -> bytes:
    """One frame of text, cut where it is too long for a frame."""
    raw = np.frombuffer(text.encode(errors="replace")[:MOST_TEXT], np.uint8)
    return encode(kind, raw, run=run, sender=sender, round=round, saved=saved)[0]


def decode(data: bytes, *, run: int, chunk: int = CHUNK) -> Frame:
    """The frame of these bytes, or the reason why they are none."""
    if not HEADER <= len(data) <= HEADER + chunk:
        raise WireError(f"a frame of {len(data)} bytes: frames have {HEADER} to {HEADER + chunk}")
    magic, version, kind, code, dimensions, of_run, sender, round, saved, *rest = _FIELDS.unpack_from(data)
    shape, offset, length = tuple(rest[:dimensions]), rest[4], rest[5]
    if magic != MAGIC or version != VERSION:
        raise WireError(f"a frame of protocol {magic!r} {version}: this is {MAGIC!r} {VERSION}; install equal releases")
    body = memoryview(data)[HEADER:]
    if length != len(body) or _checksum(data[: _FIELDS.size], body) != _SUM.unpack_from(data, _FIELDS.size)[0]:
        raise WireError("a frame was damaged on its way: its length or checksum is wrong")
    if of_run != run:
        raise WireError("a frame of another run: give all agents the same run name")
    if kind not in Kind._value2member_map_ or code >= len(DTYPES) or dimensions > MOST_DIMENSIONS:
        raise WireError(f"a frame of unknown kind {kind}, type {code} or {dimensions} dimensions")
    size = math.prod(shape) * DTYPES[code].itemsize
    most = MOST_TEXT if kind in TEXTS else MOST_BYTES
    if size > most:
        raise WireError(f"an array of {size} bytes was announced, and {most} are the most")
    if offset % chunk or length != min(chunk, size - offset) or (size and offset >= size):
        raise WireError(f"a frame brings bytes {offset} to {offset + length} of {size}, which is no chunk of it")
    return Frame(Kind(kind), sender, round, saved, DTYPES[code], shape, size, offset, body)


def _checksum(head: bytes, body: memoryview) -> int:
    return xxh3_64_intdigest(body, xxh3_64_intdigest(head))


def text_of(frame: Frame) -> str:
    """The text of a hello or a farewell; what is no text is replaced, and nothing in it can steer a terminal."""
    return "".join(letter for letter in str(frame.data, "utf-8", "replace") if letter.isprintable() or letter == " ")


def split(frames: bytes | memoryview) -> list[bytes]:
    """Frames that were joined, one by one; for those that this agent made itself."""
    found, view = [], memoryview(frames)
    while len(view):
        length = HEADER + _FIELDS.unpack_from(view)[-1]
        found.append(bytes(view[:length]))
        view = view[length:]
    return found
