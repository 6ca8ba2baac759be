"""results.parquet while runs are being made: all rows that there are, in the file's order, each with what was swept.

Written from the rows of earlier times before the first run, and then again and again, so that a
report can be made of what there is, whoever is killed and when.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from peerlearn.experiments.files import write
from peerlearn.experiments.lab.parquet import content
from peerlearn.experiments.lab.results import ROWS
from peerlearn.experiments.lab.runs.store import Row
from peerlearn.experiments.lab.runs.sweeping import types_of

PAUSE = 1.0  # seconds between two writings at least
SHARE = 0.02  # of the time that goes into it at most


class Written:
    """The file of a folder. keys: of all runs, in order; columns: what was swept, of each of them."""

    def __init__(
        self, folder: Path, keys: Sequence[str], columns: Sequence[Mapping[str, Any]]
    ) -> None:
        self._file, self._keys, self._columns = folder / ROWS, keys, columns
        self._types = types_of(columns, columns[0])
        self._next = 0.0

    def write(self, rows: Mapping[str, Row]) -> None:
        """Those of `rows` that are of this comparison; no file where there is none."""
        start = time.monotonic()
        both = zip(self._keys, self._columns, strict=True)
        if flat := [_flat(rows[key], swept) for key, swept in both if key in rows]:
            write(self._file, content(flat, self._types))
        else:
            self._file.unlink(missing_ok=True)
        end = time.monotonic()
        self._next = end + max(PAUSE, (end - start) / SHARE) if flat else end

    def write_now_and_then(self, rows: Mapping[str, Row]) -> None:
        """The same, unless it was done a moment ago: many rows take long to write."""
        if time.monotonic() >= self._next:
            self.write(rows)


def _flat(row: Row, swept: Mapping[str, Any]) -> Row:
    """Swept keys stand behind the names; the agents of a network are there already."""
    names = list(row)
    before, after = names[: names.index("repetition")], names[names.index("repetition") :]
    added = {key: value for key, value in swept.items() if key != "agents"}
    return {**{name: row[name] for name in before}, **added, **{name: row[name] for name in after}}
