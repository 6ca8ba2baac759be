"""Named arrays as bytes and back: what `exchange` sends between processes, and what a journal keeps on disk. Pure code.

    count                                       how many arrays
    name length, dtype, dimensions, name, shape     of each
    raw little-endian numbers                   of each, in the same order

Nothing is ever unpickled. Types come from a closed list, and every length is checked against the
bytes that are there before anything is made of them: whatever the bytes, the answer is arrays or a
WireError.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from peerlearn.errors import NetworkError, WireError

AnyArray = np.ndarray[Any, Any]

DTYPES = tuple(map(np.dtype, ("<f8", "<f4", "<i8", "<i4", "<u8", "<u4", "|u1", "|i1", "|b1")))
CODES = {dtype: code for code, dtype in enumerate(DTYPES)}
MOST_DIMENSIONS = 4
MOST_ARRAYS = 10_000
MOST_LETTERS = 1000  # of a name

_COUNT = struct.Struct("<I")
_ENTRY = struct.Struct("<HBB")  # length of the name, dtype, dimensions


def sendable(array: Any, name: str = "x") -> AnyArray:
    """The array as it travels, or the sentence that says why it cannot."""
    given = np.asarray(array)
    dtype = given.dtype.newbyteorder("<") if given.dtype.kind in "fiub" else given.dtype
    if dtype not in CODES:
        known = ", ".join(sorted(each.name for each in DTYPES))
        raise NetworkError(
            f"{name!r} has type {given.dtype}, which is not sent: agents send arrays of {known}"
        )
    if given.ndim > MOST_DIMENSIONS:
        raise NetworkError(
            f"{name!r} has {given.ndim} dimensions: agents send at most {MOST_DIMENSIONS}, reshape it"
        )
    return given.astype(dtype, copy=False)


def pack(arrays: Mapping[str, Any]) -> bytes:
    """The bytes of some named arrays."""
    if len(arrays) > MOST_ARRAYS or any(len(name.encode()) > MOST_LETTERS for name in arrays):
        raise NetworkError(
            f"a message holds up to {MOST_ARRAYS} arrays, with names of up to {MOST_LETTERS} letters"
        )
    parts, raw = [_COUNT.pack(len(arrays))], []
    for name, given in arrays.items():
        array, label = sendable(given, name), name.encode()
        parts += [_ENTRY.pack(len(label), CODES[array.dtype], array.ndim), label]
        parts.append(struct.pack(f"<{array.ndim}Q", *array.shape))
        raw.append(array.tobytes())
    return b"".join(parts + raw)


def unpack(data: bytes | memoryview) -> dict[str, AnyArray]:
    """The named arrays of these bytes, as views that cannot be written to."""
    view = memoryview(data).toreadonly()
    try:
        entries, start = _entries(view)
    except (struct.error, UnicodeDecodeError) as error:
        raise WireError(
            f"a message of {len(view)} bytes is cut short or damaged ({error})"
        ) from None
    arrays: dict[str, AnyArray] = {}
    for name, dtype, shape in entries:
        numbers = math.prod(shape)
        size = numbers * dtype.itemsize
        if size > len(view) - start:
            raise WireError(
                f"{name!r} of shape {shape} needs {size} bytes, and only {len(view) - start} are there"
            )
        try:
            arrays[name] = np.frombuffer(view, dtype, numbers, start).reshape(shape)
        except (ValueError, OverflowError):  # a shape such as 0 x 2^63 holds nothing, and is none
            raise WireError(f"{name!r} cannot have the shape {shape}") from None
        start += size
    if start != len(view) or len(arrays) != len(entries):
        raise WireError("a message has bytes left over, or two arrays of one name")
    return arrays


def _entries(view: memoryview) -> tuple[list[tuple[str, np.dtype[Any], tuple[int, ...]]], int]:
    """Name, type and shape of each array, and where the numbers begin."""
    (count,) = _COUNT.unpack_from(view, 0)
    if count > MOST_ARRAYS:
        raise WireError(f"a message holds {count} arrays, and {MOST_ARRAYS} are the most")
    entries, at = [], _COUNT.size
    for _ in range(count):
        length, code, dimensions = _ENTRY.unpack_from(view, at)
        at += _ENTRY.size
        if code >= len(DTYPES) or dimensions > MOST_DIMENSIONS or length > len(view) - at:
            raise WireError(
                f"a message has an array of unknown type {code}, {dimensions} dimensions, {length} letters"
            )
        name = str(view[at : at + length], "utf-8")
        at += length
        shape = struct.unpack_from(f"<{dimensions}Q", view, at)
        at += 8 * dimensions
        entries.append((name, DTYPES[code], shape))
    return entries, at
