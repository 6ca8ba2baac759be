"""Encoding of named arrays as bytes, for messages of `exchange` and for journals. No I/O.

    count                                           number of arrays
    name length, dtype, dimensions, name, shape     of each
    raw little-endian numbers                       of each, in the same order

Nothing is ever unpickled. Types come from a closed list. Every length is compared with the number
of bytes before it is used, so `unpack` returns arrays or raises WireError, whatever the bytes.
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
MOST_LETTERS = 1000  # bytes of a name

_COUNT = struct.Struct("<I")
_ENTRY = struct.Struct("<HBB")  # length of the name, dtype, dimensions


def sendable(array: Any, name: str = "x") -> AnyArray:
    """Return the array as it is sent, or raise NetworkError if its type cannot be sent."""
    given = np.asarray(array)
    dtype = given.dtype.newbyteorder("<") if given.dtype.kind in "fiub" else given.dtype
    if dtype not in CODES:
        known = ", ".join(sorted(each.name for each in DTYPES))
        raise NetworkError(
            f"{name!r} has type {given.dtype}, which is not sent: agents send arrays of {known}"
        )
    if given.ndim > MOST_DIMENSIONS:
        raise NetworkError(
            f"{name!r} has {given.ndim} dimensions: agents send at most {MOST_DIMENSIONS}, "
            "reshape it"
        )
    return given.astype(dtype, copy=False)


def pack(arrays: Mapping[str, Any]) -> bytes:
    """Encode some named arrays."""
    if len(arrays) > MOST_ARRAYS or any(len(name.encode()) > MOST_LETTERS for name in arrays):
        raise NetworkError(
            f"a message holds up to {MOST_ARRAYS} arrays, with names of up to {MOST_LETTERS} "
            "letters"
        )
    parts = [_COUNT.pack(len(arrays))]
    raw = []
    for name, given in arrays.items():
        array = sendable(given, name)
        label = name.encode()
        parts.append(_ENTRY.pack(len(label), CODES[array.dtype], array.ndim))
        parts.append(label)
        parts.append(struct.pack(f"<{array.ndim}Q", *array.shape))
        raw.append(array.tobytes())
    return b"".join(parts + raw)


def unpack(data: bytes | memoryview) -> dict[str, AnyArray]:
    """Decode named arrays, as read-only views of the bytes, or raise WireError."""
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
                f"{name!r} of shape {shape} needs {size} bytes, and only {len(view) - start} "
                "are there"
            )
        try:
            arrays[name] = np.frombuffer(view, dtype, numbers, start).reshape(shape)
        except (ValueError, OverflowError):  # numpy refuses shapes such as 0 x 2^63
            raise WireError(f"{name!r} cannot have the shape {shape}") from None
        start += size
    if start != len(view) or len(arrays) != len(entries):
        raise WireError("a message has bytes left over, or two arrays of one name")
    return arrays


def _entries(view: memoryview) -> tuple[list[tuple[str, np.dtype[Any], tuple[int, ...]]], int]:
    """Decode name, type and shape of each array, and return where the numbers begin."""
    (count,) = _COUNT.unpack_from(view, 0)
    if count > MOST_ARRAYS:
        raise WireError(f"a message holds {count} arrays, and {MOST_ARRAYS} are the most")
    entries = []
    at = _COUNT.size
    for _ in range(count):
        length, code, dimensions = _ENTRY.unpack_from(view, at)
        at += _ENTRY.size
        if code >= len(DTYPES) or dimensions > MOST_DIMENSIONS or length > len(view) - at:
            raise WireError(
                f"a message has an array of unknown type {code}, {dimensions} dimensions, "
                f"{length} letters"
            )
        name = str(view[at : at + length], "utf-8")
        at += length
        shape = struct.unpack_from(f"<{dimensions}Q", view, at)
        at += 8 * dimensions
        entries.append((name, DTYPES[code], shape))
    return entries, at
