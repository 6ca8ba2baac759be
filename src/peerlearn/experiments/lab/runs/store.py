"""Rows on disk: one file per finished run, written at once and whole; many of them are put together in batches.

FOLDER/runs/KEY.parquet  FOLDER/runs/batch-*.parquet

Whoever finishes a run writes its row, so a process that is killed loses the run it was at, and no
other. A batch is there before its parts are removed: a row may be there twice, and is never
nowhere.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peerlearn.errors import DataError
from peerlearn.experiments.files import result_folder, write
from peerlearn.experiments.lab.parquet import SECONDS, TYPES, arrow, content, opened
from peerlearn.experiments.lab.rows import FAILED

Row = dict[str, Any]
BATCH = "batch-"
MOST_BATCHES = 20  # before they become one
log = logging.getLogger("peerlearn.lab")


@dataclass(frozen=True)
class Store:
    """The rows of a folder, those of earlier comparisons among them."""

    folder: Path

    @classmethod
    def at(cls, folder: Path) -> Store:
        arrow()
        place = result_folder(folder / "runs")
        for left in place.glob(".*"):  # by a process that was killed
            left.unlink(missing_ok=True)
        return cls(place)

    def add(self, row: Mapping[str, Any]) -> None:
        """One row, for good: whoever looks sees all of it, or nothing."""
        write(self._part(row["run"]), content([row]))

    def read(self) -> dict[str, Row]:
        """All rows by their key; runs that are by themselves, as after a kill, are put together."""
        batches, parts = self._files()
        rows = self._rows([*batches, *parts])
        if len(parts) > 1 or len(batches) > MOST_BATCHES:
            self.merge(rows)
        return rows

    def find(self, key: str) -> Row | None:
        """The row that another process may have left."""
        part = self._part(key)
        return self._rows([part]).get(key) if part.exists() else None

    def merge(self, rows: Mapping[str, Row]) -> None:
        """Put rows that are on disk together in one file, and remove those that hold nothing else."""
        if len(rows) < 2:
            return
        batch = self._part(BATCH + hashlib.sha256("".join(sorted(rows)).encode()).hexdigest()[:20])
        write(batch, content(list(rows.values())))
        for part in map(self._part, rows):
            part.unlink(missing_ok=True)
        for other in self._files()[0]:
            if other != batch and _keys(other) <= rows.keys():
                other.unlink()

    def _part(self, key: str) -> Path:
        return self.folder / f"{key}.parquet"

    def _files(self) -> tuple[list[Path], list[Path]]:
        """Batches, and runs that are by themselves, which are newer."""
        files = sorted(self.folder.glob("*.parquet"))
        batches = [file for file in files if file.name.startswith(BATCH)]
        return batches, [file for file in files if file not in batches]

    def _rows(self, files: list[Path]) -> dict[str, Row]:
        """A file that cannot be read is named and put aside, so that its runs are done again."""
        found: dict[str, Row] = {}
        for file in files:
            try:
                with opened(file) as stored:
                    rows = {row["run"]: _own(row) for row in stored.read().to_pylist()}
            except DataError as error:
                aside = file.replace(file.with_suffix(".damaged"))
                log.warning(
                    "%s; it is put aside as %s, and its runs are done again", error, aside.name
                )
                continue
            # Of two rows of one run the newer counts, unless it failed and the other did not.
            found |= {
                key: row
                for key, row in rows.items()
                if row["status"] != FAILED or _failed(found.get(key))
            }
        return found


def _own(row: Row) -> Row:
    """Without the columns that only other rows of its file have."""
    return {
        name: value
        for name, value in row.items()
        if value is not None or name in TYPES or name in SECONDS
    }


def _failed(row: Row | None) -> bool:
    return row is None or row["status"] == FAILED


def _keys(batch: Path) -> set[str]:
    with opened(batch) as stored:
        return set(stored.read(["run"]).column("run").to_pylist())
