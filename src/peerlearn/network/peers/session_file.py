"""File of session keys, and of what was masked with them, until a run ends.

    secrets.jsonl       one JSON object per line, synced before anything that depends on it is sent
        {"drawn": ..}                   random bytes, in the order in which the run asked for them
        {"masked": .., "digest": ..}    digest of the numbers that a mask covers

A restarted agent runs its algorithm from the start and draws the same bytes, so it has the same
session keys. A mask that covered two different contents would show their difference. So if an agent
computes other numbers than before (its data, its settings or a library changed), it stops.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from peerlearn.errors import NetworkError
from peerlearn.private_files import make_private_folder, open_private

NAME = "secrets.jsonl"


class SessionFile:
    """Random bytes and digests of one run, in the folder of its checkpoints."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._drawn: list[bytes] = []
        self._digests: dict[str, str] = {}
        self._used = 0  # how many of the drawn bytes this process has asked for
        make_private_folder(folder)
        self._read()

    def draw(self, size: int) -> bytes:
        """Return random bytes, the same ones after a restart."""
        if self._used == len(self._drawn):
            new = os.urandom(size)
            self._append({"drawn": new.hex()})
            self._drawn.append(new)
        content = self._drawn[self._used]
        self._used += 1
        if len(content) != size:
            raise self._other_run(f"asked for {size} random bytes instead of {len(content)}")
        return content

    def commit(self, what: str, digest: bytes) -> None:
        """Note that a mask covers numbers with this digest, or refuse if it covered others."""
        known = self._digests.get(what)
        if known is None:
            self._append({"masked": what, "digest": digest.hex()})
            self._digests[what] = digest.hex()
        elif known != digest.hex():
            raise self._other_run("computed other numbers for a secret sum")

    def forget(self) -> None:
        """Delete the file."""
        self._path.unlink(missing_ok=True)

    def _other_run(self, what: str) -> NetworkError:
        return NetworkError(
            f"after a restart this agent {what} than before, so its data, settings or libraries "
            "changed; both under one mask would show the difference, and nothing was sent: bring "
            f"back what changed, or empty {self._path.parent} at all agents and start anew"
        )

    def _append(self, entry: dict[str, str]) -> None:
        line = json.dumps(entry).encode() + b"\n"
        try:
            with open(self._path, "ab", opener=open_private) as stream:
                stream.write(line)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise NetworkError(
                f"{self._path} cannot be written ({error.strerror}), and without it no secret sum "
                "is sent: make room or name another folder"
            ) from None

    def _read(self) -> None:
        if not self._path.exists():
            return
        *lines, rest = self._path.read_bytes().split(b"\n")
        if rest:  # killed while writing: nothing that depends on this line was sent
            os.truncate(self._path, self._path.stat().st_size - len(rest))
        for number, line in enumerate(lines, start=1):
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError):
                raise NetworkError(
                    f"line {number} of {self._path} is damaged: bring a copy back, or empty "
                    f"{self._path.parent} at all agents and start anew"
                ) from None

    def _take(self, entry: Any) -> None:
        if "drawn" in entry:
            self._drawn.append(bytes.fromhex(entry["drawn"]))
        else:
            self._digests[str(entry["masked"])] = str(entry["digest"])
