"""File of the sessions of secret sums that an agent took part in, for all runs.

    totals.jsonl    a chain of lines (chain_file.py), each synced before the first masked sum
        {"id": .., "own": .., "contributors": {name: fingerprint}, "data": ..}

Agents are compared by the names in their certificates: a renewed certificate has another
fingerprint.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from peerlearn.network.peers.chain_file import ChainFile
from peerlearn.secret.contributors import TotalRecord

NAME = "totals.jsonl"
MOST_KEPT = 1000  # latest sessions that are compared


class ContributorFile:
    """Sessions that an agent took part in."""

    def __init__(self, folder: Path) -> None:
        self._file = ChainFile(folder / NAME)

    def before(self, own: str) -> list[TotalRecord]:
        """Return the sessions before the one in which this agent had these random bytes."""
        records = [_as_record(entry) for entry in self._file.entries]
        places = [place for place, record in enumerate(records) if record.own == own]
        earlier = records[: places[0]] if places else records
        return earlier[-MOST_KEPT:]

    def add(self, record: TotalRecord) -> None:
        """Write a session, unless a process before a restart did."""
        if all(entry["own"] != record.own for entry in self._file.entries):
            self._file.append(asdict(record))


def _as_record(entry: dict[str, Any]) -> TotalRecord:
    return TotalRecord(entry["id"], entry["own"], entry["contributors"], entry["data"])
