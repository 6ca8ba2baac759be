"""Reading an .npz file safely: nothing is unpickled, and every failure is one error sentence.

A compressed file of 4 MB can unpack to 4 GB, and a few bytes can announce an array of any size. So
reading has three steps:

1. Read the header of every array, no further than numpy reads it. Its size must agree with the size
   in the zip directory.
2. Check that all arrays together stay below a limit that depends on the size of the file.
3. Read the arrays. No more memory is taken, and no more bytes are unpacked, than announced.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from peerlearn.data.dataset import AnyArray
from peerlearn.errors import DataError

Header = tuple[tuple[int, ...], np.dtype[np.generic]]

NUMBER = 8  # least bytes of a number in memory: tables become float64
ALWAYS = 1 << 28  # bytes that arrays of a compressed file may take in memory
TIMES = 100  # or this many times the size of their file, if that is more
LONGEST_HEADER = 10_000  # bytes: the limit of numpy
MOST_ARRAYS = 10_000
MOST_BESIDE_NONE = 1_000_000  # columns of a table without rows
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the two that numpy writes


class _Refusal(Exception):
    """Reason why a file that could be read is not read."""


def read(path: Path, *, compressed: bool = True) -> dict[str, AnyArray]:
    """Read all arrays of the file, by name.

    compressed: False refuses arrays that take more memory than the file has bytes.
    """
    with _open(path) as stream, zipfile.ZipFile(stream) as archive:
        members = _members(archive)
        _check_memory(members, path.stat().st_size, compressed)
        return {name: _array(archive, info) for name, (info, _) in members.items()}


def headers(path: Path) -> dict[str, Header]:
    """Return shape and type of every array, without reading the numbers."""
    with _open(path) as stream, zipfile.ZipFile(stream) as archive:
        members = _members(archive)
        _check_memory(members, path.stat().st_size, compressed=True)
        return {name: header for name, (_, header) in members.items()}


def _members(archive: zipfile.ZipFile) -> dict[str, tuple[zipfile.ZipInfo, Header]]:
    """Return the arrays of the archive by name, after comparing headers with the zip directory."""
    infos = [info for info in archive.infolist() if info.filename.endswith(".npy")]
    if len(infos) > MOST_ARRAYS:
        raise _Refusal(f"it holds {len(infos)} arrays, and {MOST_ARRAYS} are the most")
    members: dict[str, tuple[zipfile.ZipInfo, Header]] = {}
    for info in infos:
        name = info.filename.removesuffix(".npy")
        if name in members:
            raise _Refusal(f"it holds two arrays of the name {name!r:.60}")
        if info.compress_type not in PACKINGS:
            raise _Refusal(f"{name!r:.60} is packed in a way that numpy does not write")
        members[name] = info, _header(archive, info, name)
    return members


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Header:
    with archive.open(info) as member:
        start = io.BytesIO(member.read(len(npy.MAGIC_PREFIX) + 6 + LONGEST_HEADER))
    version = npy.read_magic(start)
    # Version 3 has the layout of version 2. It differs in the encoding of field names, which are
    # not needed here.
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read_header(start)
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded")
    announced = math.prod(shape) * dtype.itemsize
    present = info.file_size - start.tell()
    if announced != present:
        raise _Refusal(
            f"{name!r:.60} has shape {shape!s:.60} and type {dtype!s:.20}, which take {announced} "
            f"bytes, and there are {present} for it"
        )
    # An array of zero bytes can have a shape of billions of empty rows, and a loop over them would
    # take for ever.
    if announced == 0 and math.prod(max(length, 1) for length in shape) > MOST_BESIDE_NONE:
        raise _Refusal(f"{name!r:.60} holds nothing and has shape {shape!s:.60}")
    return shape, dtype


def _check_memory(
    members: Mapping[str, tuple[zipfile.ZipInfo, Header]], size: int, compressed: bool
) -> None:
    """Refuse arrays that take far more memory than their file has bytes."""
    least = NUMBER if compressed else 1
    needed = sum(
        math.prod(shape) * max(dtype.itemsize, least) for _, (shape, dtype) in members.values()
    )
    most = max(ALWAYS, TIMES * size) if compressed else size
    if needed > most:
        raise _Refusal(
            f"its arrays would take {needed:,} bytes of memory, and those of a file of {size:,} "
            f"bytes may take {most:,}"
        )


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> AnyArray:
    with archive.open(info) as member:
        array: AnyArray = npy.read_array(member, allow_pickle=False)
        return array


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    """Open a zip file, and turn every failure while it is open into a DataError."""
    try:
        with path.open("rb") as stream:
            if not zipfile.is_zipfile(stream):
                raise zipfile.BadZipFile("it is no zip archive")
            stream.seek(0)
            yield stream
    except PermissionError as error:
        raise DataError(
            f"{path} cannot be opened ({error.strerror}): allow this user to read it"
        ) from error
    except _Refusal as error:
        raise DataError(
            f"{path} is not read, because {error}: save plain arrays, without compression, with "
            "np.savez(path, X=X, y=y)"
        ) from error
    # A damaged archive fails in a dozen ways, each in the words of zipfile, zlib, struct or numpy.
    except Exception as error:
        if "Object arrays" in str(error):
            raise DataError(
                f"{path} contains pickled objects, which are never loaded because they can run "
                "code: save plain arrays of numbers or strings with np.savez(path, X=X, y=y)"
            ) from error
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"{path} is not a readable .npz file ({reason}), so it was cut short, damaged or is of "
            "another kind: copy it again, or save it with np.savez(path, X=X, y=y)"
        ) from error
