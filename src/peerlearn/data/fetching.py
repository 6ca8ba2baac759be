"""Data sets that are not at hand, got from OpenML through scikit-learn. Only what is called fetch goes online.

What it gets is compared with what it should be, and kept as NAME.npz in scikit-learn's data folder,
where `load` finds it from then on.
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
from peerlearn.data.folder import VARIABLE, fetched_folder
from peerlearn.data.known_files import KNOWN_FILES
from peerlearn.data.sources import SOURCES, Arrays, Source
from peerlearn.errors import DataError

PATIENCE = 20.0  # seconds without a byte from OpenML


class Unreachable(DataError):
    """There is no way to OpenML from here, for one data set or any other; `why` in short."""

    def __init__(self, sentence: str, why: str) -> None:
        super().__init__(sentence)
        self.why = why


_given_up: list[
    str
] = []  # why OpenML was out of reach: somebody who needs many data sets waits once


def fetch(name: str) -> Path:
    """Get a data set of the thesis from OpenML, once; the file that it is kept in."""
    file = fetched_folder() / f"{name}.npz"
    if file.exists():
        return file
    if name not in SOURCES:
        raise DataError(f"data set {name} cannot be fetched: {by_hand(name)}")
    with _written(file) as stream:  # open before anything is downloaded, which may take minutes
        np.savez_compressed(stream, **_downloaded(name, SOURCES[name]))
    return file


def fetch_missing(name: str) -> None:
    """Fetch a data set that is not at hand, if OpenML has it. Once OpenML was out of reach, it is not tried again."""
    if is_at_hand(name) or name not in SOURCES:
        return
    if _given_up:
        raise Unreachable(
            f"data set {name} cannot be fetched, for {_given_up[0]}: {by_hand(name)}", _given_up[0]
        )
    try:
        fetch(name)
    except Unreachable as error:
        _given_up.append(error.why)
        raise


def by_hand(name: str) -> str:
    """Where somebody who wants this file finds it, and where it goes."""
    known = KNOWN_FILES.get(name.casefold())
    if known is None or known.name != name:
        return f"those that OpenML has are {', '.join(SOURCES)}"
    return f"{known.came_from}; save it as {name}.npz (arrays X, y) in the folder that {VARIABLE} names"


def _downloaded(name: str, source: Source) -> Arrays:
    """OpenML's table as our arrays; every objection names the data set and how to get it by hand."""
    from sklearn import datasets  # takes .1 s; few data sets are fetched

    parser = (
        "pandas" if find_spec("pandas") else "liac-arff"
    )  # the same table; the second takes longer
    try:
        with _patience(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A network error occurred")
            found: Any = datasets.fetch_openml(
                **source.asked, as_frame=False, n_retries=1, delay=0.1, parser=parser
            )
    except (OSError, HTTPException) as error:
        why = f"OpenML is out of reach ({_told(error)})"
        raise Unreachable(
            f"data set {name} cannot be fetched, for {why}: {by_hand(name)}", why
        ) from error
    except ValueError as error:
        raise DataError(
            f"data set {name} cannot be fetched, for OpenML does not give it ({_told(error)}): {by_hand(name)}"
        ) from error
    try:
        return source.read(found.data, found.target)
    except (ValueError, TypeError) as error:
        raise DataError(
            f"data set {name} cannot be fetched, for what OpenML has as {source} is another table, {_told(error)}: "
            f"{by_hand(name)}"
        ) from error


@contextmanager
def _written(file: Path) -> Iterator[IO[bytes]]:
    """Written beside its place and moved, so that a file that is there is whole."""
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
def _patience() -> Iterator[None]:
    """fetch_openml has no limit of its own, and would wait for a silent network for minutes."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(PATIENCE)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _told(error: Exception) -> str:
    return (
        " ".join(str(error).split()).removeprefix("<urlopen error ").removesuffix(">")
        or type(error).__name__
    )
