"""Files .npz that are small and say, or hold, that they unpack to gigabytes; made without the
gigabytes.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

import numpy as np

GIGABYTES = 400_000_000 * 8  # bytes of an array of 3.2 GB
SHAPE = (400_000_000,)
BLOCK = 1 << 24


def header(shape, descr="<f8"):
    """The first bytes of a .npy file; shape and type may be anything."""
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text + b"\n"


def deflated(start, zeros):
    """`start` and then so many zero bytes, compressed: a block of zeros is compressed once and
    repeated.
    """
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = pack.compress(start) + pack.flush(zlib.Z_FULL_FLUSH)
    block = pack.compress(bytes(BLOCK)) + pack.flush(zlib.Z_FULL_FLUSH)
    rest = pack.compress(bytes(zeros % BLOCK)) + pack.flush()
    return first + (zeros // BLOCK) * block + rest


def stored(content):
    return content, len(content), zipfile.ZIP_STORED


def npy(array):
    """An ordinary member."""
    file = io.BytesIO()
    np.save(file, array)
    return stored(file.getvalue())


def bomb(shape=SHAPE, descr="<f8", size=GIGABYTES):
    """A member of a few megabytes that says truly that it is an array of gigabytes."""
    start = header(shape, descr)
    return deflated(start, size), len(start) + size, zipfile.ZIP_DEFLATED


def write(path, *members, checksums=None):
    """A zip file of (name, (content as it stands in the file, size as announced, method)); names
    may be the same.
    """
    directory = b""
    with path.open("wb") as file:
        for name, (content, size, method) in members:
            checksum = (checksums or {}).get(
                name, zlib.crc32(content)
            )  # right where nothing is compressed
            about = struct.pack(
                "<HHHHHIIIHH", 20, 0, method, 0, 33, checksum, len(content), size, len(name), 0
            )
            directory += (
                b"PK\1\2"
                + struct.pack("<H", 20)
                + about
                + struct.pack("<HHHII", 0, 0, 0, 0, file.tell())
            )
            directory += name.encode()
            file.write(b"PK\3\4" + about + name.encode() + content)
        end = struct.pack(
            "<HHHHIIH", 0, 0, len(members), len(members), len(directory), file.tell(), 0
        )
        file.write(directory + b"PK\5\6" + end)
    return path
