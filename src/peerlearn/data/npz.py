"""One .npz file to arrays. Nothing is unpickled, and whatever is wrong with the file becomes one sentence."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from peerlearn.data.dataset import AnyArray
from peerlearn.errors import DataError

Header = tuple[tuple[int, ...], np.dtype[np.generic]]


def read(path: Path) -> dict[str, AnyArray]:
    """All arrays of the file, by name."""
    with _opened(path) as stream, np.load(stream, allow_pickle=False) as arrays:
        return {key: np.asarray(arrays[key]) for key in arrays.files}


def headers(path: Path) -> dict[str, Header]:
    """Shape and type of every array, without reading the numbers."""
    with _opened(path) as stream, zipfile.ZipFile(stream) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        return {name.removesuffix(".npy"): _header(archive, name) for name in names}


def _header(archive: zipfile.ZipFile, name: str) -> Header:
    with archive.open(name) as member:
        version = npy.read_magic(member)
        # Version 3 is laid out as version 2 and differs in the encoding of field names, which are not needed here.
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read_header(member)
    return shape, dtype


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as stream:
            if not zipfile.is_zipfile(stream):
                raise zipfile.BadZipFile("it is no zip archive")
            stream.seek(0)
            yield stream
    except PermissionError as error:
        raise DataError(f"{path} cannot be opened ({error.strerror}): allow this user to read it") from error
    # A damaged archive fails in a dozen ways, each in the words of zipfile, zlib, struct or numpy.
    except Exception as error:
        if "Object arrays" in str(error):
            raise DataError(
                f"{path} contains pickled objects, which are never loaded because they can run code: "
                "save plain arrays of numbers or strings with np.savez(path, X=X, y=y)"
            ) from error
        told = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"{path} is not a readable .npz file ({told}), so it was cut short, damaged or is of another kind: "
            "copy it again, or save it with np.savez(path, X=X, y=y)"
        ) from error
