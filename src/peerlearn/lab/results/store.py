"""Rows on disk: one file per finished run, batches of them, and results.parquet with all.

    FOLDER/runs/KEY.parquet  FOLDER/runs/batch-*.parquet  FOLDER/results.parquet

The process that finishes a run writes its row at once. A process that is killed loses the run it
was at, and no other. A batch is written before its parts are removed, so that a row may be on disk
twice but never nowhere. results.parquet is written from the rows of earlier times before the first
run, and then again and again: a report can be made of what there is at any time.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peerlearn.errors import DataError
from peerlearn.lab.results.parquet import (
    FAILED,
    NUMBERS,
    ROWS,
    TYPES,
    arrow,
    content,
    open_parquet,
    types_of,
)
from peerlearn.system.files import result_folder, write

Row = dict[str, Any]
BATCH = "batch-"
MOST_BATCHES = 20  # before they become one
PAUSE = 1.0  # seconds between two writings at least
SHARE = 0.02  # of the time that goes into it at most
log = logging.getLogger("peerlearn.lab")


@dataclass(frozen=True)
class Store:
    """The rows of a folder, those of earlier comparisons among them."""

    folder: Path

    @classmethod
    def at(cls, folder: Path) -> Store:
        """Open the store of a folder, and delete what killed processes left half written."""
        arrow()
        place = result_folder(folder / "runs")
        for left in place.glob(".*"):  # by a process that was killed
            left.unlink(missing_ok=True)
        return cls(place)

    def add(self, row: Mapping[str, Any]) -> None:
        """Write one row at once: readers see all of it, or nothing."""
        write(self._part(row["run"]), content([row]))

    def read(self) -> dict[str, Row]:
        """Return all rows by their key; single runs, as after a kill, are put together."""
        batches, parts = self._files()
        rows = self._rows([*batches, *parts])
        if len(parts) > 1 or len(batches) > MOST_BATCHES:
            self.merge(rows)
        return rows

    def find(self, key: str) -> Row | None:
        """Return the row that another process may have left."""
        part = self._part(key)
        return self._rows([part]).get(key) if part.exists() else None

    def merge(self, rows: Mapping[str, Row]) -> None:
        """Put rows into one file, and delete the files that hold nothing else."""
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
        """Return batches and single runs, which are newer."""
        files = sorted(self.folder.glob("*.parquet"))
        batches = [file for file in files if file.name.startswith(BATCH)]
        return batches, [file for file in files if file not in batches]

    def _rows(self, files: list[Path]) -> dict[str, Row]:
        """Read rows; a damaged file is named and put aside, so that its runs are done again."""
        found: dict[str, Row] = {}
        for file in files:
            try:
                with open_parquet(file) as stored:
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
                if row["status"] != FAILED or _is_failed(found.get(key))
            }
        return found


class ResultsFile:
    """results.parquet of a folder.

    keys: of all runs, in order; columns: what was swept, of each of them.
    """

    def __init__(
        self, folder: Path, keys: Sequence[str], columns: Sequence[Mapping[str, Any]]
    ) -> None:
        self._file = folder / ROWS
        self._keys = keys
        self._columns = columns
        self._types = types_of(columns, columns[0])
        self._next = 0.0

    def write(self, rows: Mapping[str, Row]) -> None:
        """Write the rows that are of this comparison; delete the file if there is none."""
        start = time.monotonic()
        both = zip(self._keys, self._columns, strict=True)
        flat = [_flat(rows[key], swept) for key, swept in both if key in rows]
        if flat:
            write(self._file, content(flat, self._types))
        else:
            self._file.unlink(missing_ok=True)
        end = time.monotonic()
        self._next = end + max(PAUSE, (end - start) / SHARE) if flat else end

    def write_now_and_then(self, rows: Mapping[str, Row]) -> None:
        """Write unless it was done a moment ago: many rows take long."""
        if time.monotonic() >= self._next:
            self.write(rows)


def _own(row: Row) -> Row:
    """Return a row without the columns that only other rows of its file have."""
    return {
        name: value
        for name, value in row.items()
        if value is not None or name in TYPES or name in NUMBERS
    }


def _is_failed(row: Row | None) -> bool:
    return row is None or row["status"] == FAILED


def _keys(batch: Path) -> set[str]:
    with open_parquet(batch) as stored:
        return set(stored.read(["run"]).column("run").to_pylist())


def _flat(row: Row, swept: Mapping[str, Any]) -> Row:
    """Return a row with its swept keys behind the names; agents are there already."""
    names = list(row)
    before = names[: names.index("repetition")]
    after = names[names.index("repetition") :]
    added = {key: value for key, value in swept.items() if key != "agents"}
    return {**{name: row[name] for name in before}, **added, **{name: row[name] for name in after}}
