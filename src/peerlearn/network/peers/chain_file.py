"""File of JSON lines that can only grow: a change of an earlier line is noticed.

    {"line": 1, .., "before": "000..", "digest": d_1}
    {"line": 2, .., "before": d_1,     "digest": d_2}

where d_n is the SHA-256 of line n without "digest". The digest of the last line is the head.
Whoever has seen the head can tell later whether a line up to there was edited, dropped or moved.
The chain has no key: somebody who can write the file can write another whole one, but not one with
the same head.

Lines are synced before `append` returns. A process that is killed while it writes leaves a line
without its end. Nothing that depends on it was sent, so the next process cuts it off.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from errno import ENOSPC
from hashlib import sha256
from pathlib import Path
from typing import Any

from peerlearn.errors import NetworkError
from peerlearn.private_files import make_private_folder, open_private

START = "0" * 64  # what the first line has as the digest of the line before
_END = len(',"digest":""}') + 64  # bytes of a line from its digest on


class BrokenChain(NetworkError):
    """Error about a file whose lines are not as they were written."""


@dataclass(frozen=True)
class Chain:
    """Content of a file that was read and checked.

    entries: the lines. digests: of each line. torn: bytes of a last line that was not finished.
    """

    entries: tuple[dict[str, Any], ...]
    digests: tuple[str, ...]
    torn: int

    @property
    def head(self) -> str:
        """Digest of the last line."""
        return self.digests[-1] if self.digests else START


def read_chain(path: Path) -> Chain:
    """Read and check a file; a missing one has no lines. Raises BrokenChain."""
    try:
        *lines, rest = path.read_bytes().split(b"\n") if path.exists() else [b""]
    except OSError as error:
        raise NetworkError(f"{path} cannot be read ({error.strerror}): see who owns it") from None
    entries = [_parse(path, number, line) for number, line in enumerate(lines, start=1)]
    _check_order(path, [entry["line"] for entry in entries])
    digests: list[str] = []
    for number, (line, entry) in enumerate(zip(lines, entries, strict=True), start=1):
        if entry["digest"] != _digest(line[:-_END] + b"}"):
            raise _broken(path, f"line {number} was edited")
        if entry["before"] != (digests[-1] if digests else START):
            what = "edited, with a new digest" if number > 1 else "not the first one"
            raise _broken(path, f"line {max(number - 1, 1)} was {what}")
        digests.append(entry["digest"])
    return Chain(tuple(entries), tuple(digests), len(rest))


class ChainFile:
    """File that this process appends to. Only one process at a time may do so."""

    def __init__(self, path: Path) -> None:
        self.path = path
        chain = read_chain(path)
        self.entries = list(chain.entries)
        self.head = chain.head
        self.torn = chain.torn
        try:
            make_private_folder(path.parent)
            if chain.torn:
                os.truncate(path, path.stat().st_size - chain.torn)
            self._size = path.stat().st_size if path.exists() else 0
        except OSError as error:
            raise self._cannot_write(error) from None

    def append(self, entry: Mapping[str, Any]) -> int:
        """Write a line to the disk, and return its number.

        Raises NetworkError if it could not be written. What it is about must not be sent then.
        """
        number = len(self.entries) + 1
        text = json.dumps({"line": number, **entry, "before": self.head}, separators=(",", ":"))
        head = _digest(text.encode())
        line = f'{text[:-1]},"digest":"{head}"}}\n'.encode()
        try:
            self._write(line)
        except OSError as error:
            raise self._cannot_write(error) from None
        self._size += len(line)
        self.head = head
        self.entries.append(json.loads(line))
        return number

    def _write(self, line: bytes) -> None:
        with open(self.path, "ab", buffering=0, opener=open_private) as stream:
            if stream.tell() != self._size:
                raise NetworkError(
                    f"another process writes to {self.path}: give each agent a folder of its own"
                )
            try:
                if stream.write(line) < len(line):
                    raise OSError(ENOSPC, os.strerror(ENOSPC))
                os.fsync(stream.fileno())
            except OSError:
                with suppress(OSError):  # otherwise it is a torn line, which the next start mends
                    stream.truncate(self._size)
                raise

    def _cannot_write(self, error: OSError) -> NetworkError:
        return NetworkError(
            f"{self.path} cannot be written ({error.strerror}), and nothing leaves this agent that "
            "is not recorded there first: make room or name another folder"
        )


def _parse(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
        if isinstance(entry["line"], int) and {"before", "digest"} <= set(entry):
            return dict(entry)
    except (ValueError, KeyError, TypeError):
        pass
    raise _broken(path, f"line {number} is damaged")


def _check_order(path: Path, numbers: Sequence[int]) -> None:
    missing = sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers))
    if missing:
        raise _broken(path, f"line {missing[0]} was dropped")
    for place, number in enumerate(numbers, start=1):
        if number != place:
            raise _broken(path, f"line {number} was moved to place {place}")


def _digest(text: bytes) -> str:
    return sha256(text).hexdigest()


def _broken(path: Path, what: str) -> BrokenChain:
    return BrokenChain(
        f"{path} is not as it was written: {what}. Bring a copy back, or keep this file elsewhere "
        "and begin a new one"
    )
