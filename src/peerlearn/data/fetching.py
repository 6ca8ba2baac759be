"""Fetching data sets from OpenML through scikit-learn. Nothing else in this package goes online.

A fetched table is compared with what it should be, and saved as NAME.npz in scikit-learn's data
folder, where `load` finds it from then on.
"""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import numpy as np

from peerlearn.data.catalogue import is_at_hand
from peerlearn.data.folder import VARIABLE, download_folder
from peerlearn.data.known_files import KNOWN_FILES
from peerlearn.data.sources import SOURCES, Arrays, Source
from peerlearn.errors import DataError

TIMEOUT = 20.0  # seconds without a byte from OpenML


class Unreachable(DataError):
    """OpenML cannot be reached, for one data set or any other. `why` is the reason in short."""

    def __init__(self, sentence: str, why: str) -> None:
        super().__init__(sentence)
        self.why = why


# Why OpenML was out of reach. With it, a caller who needs many data sets waits only once.
_given_up: list[str] = []


def fetch(name: str) -> Path:
    """Get a data set of the thesis from OpenML, unless it was fetched before.

    Parameters
    ----------
    name : str
        "Sylva", "CIFAR10" or "YearPredictionMSD".

    Returns
    -------
    pathlib.Path
        The file NAME.npz, in scikit-learn's data folder.

    Raises
    ------
    DataError
        If OpenML does not have the data set or cannot be reached. The error says where else to
        find the data.

    Examples
    --------
    >>> from peerlearn import data
    >>> data.fetch("iris")
    Traceback (most recent call last):
    peerlearn.errors.DataError: data set iris cannot be fetched: those that OpenML has are Sylva,
    CIFAR10, YearPredictionMSD
    """
    file = download_folder() / f"{name}.npz"
    if file.exists():
        return file
    if name not in SOURCES:
        raise DataError(f"data set {name} cannot be fetched: {other_places(name)}")
    # Open the file before the download, which may take minutes.
    with _write_atomically(file) as stream:
        np.savez_compressed(stream, **_download(name, SOURCES[name]))
    return file


def fetch_missing(name: str) -> None:
    """Fetch a data set that is not at hand, if OpenML has it.

    Once OpenML was out of reach, it is not tried again in the same process.

    Parameters
    ----------
    name : str
        Name of a data set.

    Raises
    ------
    DataError
        If OpenML has the data set but cannot be reached.

    Examples
    --------
    >>> from peerlearn import data
    >>> data.fetch_missing("iris")  # at hand: nothing to do
    """
    if is_at_hand(name) or name not in SOURCES:
        return
    if _given_up:
        raise _unreachable(name, _given_up[0])
    try:
        fetch(name)
    except Unreachable as error:
        _given_up.append(error.why)
        raise


def other_places(name: str) -> str:
    """Return where to find the file of a data set by hand, and where to put it."""
    known = KNOWN_FILES.get(name.casefold())
    if known is None or known.name != name:
        return f"those that OpenML has are {', '.join(SOURCES)}"
    place = f"in the folder that {VARIABLE} names"
    return f"{known.came_from}; save it as {name}.npz (arrays X, y) {place}"


def _unreachable(name: str, why: str) -> Unreachable:
    return Unreachable(
        f"data set {name} cannot be fetched, because {why}: {other_places(name)}", why
    )


def _download(name: str, source: Source) -> Arrays:
    """Return OpenML's table as the arrays of our file.

    Every error names the data set and how to get it by hand.
    """
    from sklearn import datasets  # takes .1 s; few data sets are fetched

    # Both parsers give the same table; the second takes longer.
    parser = "pandas" if find_spec("pandas") else "liac-arff"
    try:
        with _socket_timeout(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A network error occurred")
            found: Any = datasets.fetch_openml(
                **source.query, as_frame=False, n_retries=1, delay=0.1, parser=parser
            )
    except (OSError, HTTPException) as error:
        raise _unreachable(name, f"OpenML is out of reach ({_reason(error)})") from error
    except ValueError as error:
        raise DataError(
            f"data set {name} cannot be fetched, because OpenML does not give it "
            f"({_reason(error)}): {other_places(name)}"
        ) from error
    try:
        return source.read(found.data, found.target)
    except (ValueError, TypeError) as error:
        raise DataError(
            f"data set {name} cannot be fetched, because what OpenML has as {source} is another "
            f"table, {_reason(error)}: {other_places(name)}"
        ) from error


@contextmanager
def _write_atomically(file: Path) -> Iterator[IO[bytes]]:
    """Write a temporary file and rename it, so that the file is complete if it exists."""
    beside = file.with_name(f".{os.getpid()}.{file.name}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as stream:
            yield stream
        beside.replace(file)
    except OSError as error:
        way_out = "make room, or name another folder in the environment variable SCIKIT_LEARN_DATA"
        raise DataError(f"{file} cannot be written ({error.strerror}): {way_out}") from error
    finally:
        with suppress(OSError):
            beside.unlink()  # still there only if something went wrong


@contextmanager
def _socket_timeout() -> Iterator[None]:
    """Limit the wait for a silent network, because fetch_openml has no limit of its own."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _reason(error: Exception) -> str:
    """Return an error's words on one line, without urllib's decoration."""
    text = " ".join(str(error).split())
    text = text.removeprefix("<urlopen error ").removesuffix(">")
    return text or type(error).__name__
