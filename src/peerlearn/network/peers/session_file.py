"""File of session keys, and of what was masked with them, until a run ends.

    secrets.jsonl       one JSON object per line, synced before anything that depends on it is sent
        {"kept": .., "content": ..}     random bytes and signatures, by their names
        {"masked": .., "digest": ..}    digest of the numbers that a mask covers

A restarted agent runs its algorithm from the start and gets the same bytes. So it has the same
session keys, and sends the same messages again, to the last bit. A mask that covered two different
contents would show their difference. So if an agent computes other numbers than before (its data,
its settings or a library changed), it stops. An older copy of the file, from a backup or from a
snapshot of a machine, lacks digests: do not start an agent from one.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peerlearn.errors import NetworkError
from peerlearn.private_files import is_private, make_private_folder, open_private

NAME = "secrets.jsonl"


class SessionFile:
    """Random bytes, signatures and digests of one run, in the folder of its checkpoints."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._kept: dict[str, bytes] = {}
        self._digests: dict[str, str] = {}
        self._asked: Counter[str] = Counter()
        make_private_folder(folder)
        self._read()

    def keep(self, what: str, make: Callable[[], bytes]) -> bytes:
        """Return what `make` returns, the same bytes after a restart.

        what: their name. Each call with the same name gets bytes of its own.
        """
        name = f"{what} {self._asked[what]}"
        self._asked[what] += 1
        if name not in self._kept:
            content = make()
            self._append({"kept": name, "content": content.hex()})
            self._kept[name] = content
        return self._kept[name]

    def commit(self, what: str, digest: bytes) -> None:
        """Note that a mask covers numbers with this digest, or refuse if it covered others."""
        known = self._digests.get(what)
        if known is None:
            self._append({"masked": what, "digest": digest.hex()})
            self._digests[what] = digest.hex()
        elif known != digest.hex():
            raise NetworkError(
                "after a restart this agent computed other numbers for a secret sum than before, "
                "so its data, settings or libraries changed; both under one mask would show the "
                "difference, and nothing was sent: bring back what changed, or empty "
                f"{self._path.parent} at all agents and start anew"
            )

    def forget(self) -> None:
        """Delete the file."""
        self._path.unlink(missing_ok=True)

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
        if not is_private(self._path):
            raise NetworkError(
                f"{self._path} has session keys, and others can read or write it, so they may know "
                f"the keys: empty {self._path.parent} at all agents and start anew"
            )
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
        if "kept" in entry:
            self._kept[str(entry["kept"])] = bytes.fromhex(entry["content"])
        else:
            self._digests[str(entry["masked"])] = str(entry["digest"])
