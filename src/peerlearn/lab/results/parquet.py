"""Rows as Parquet: columns have the same types in all rows, also where values are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from peerlearn.errors import DataError, MissingExtra, PeerlearnError

ROWS = "results.parquet"  # all rows of a folder, in the order of the file
DONE = "done"
FAILED = "failed"
NOT_APPLICABLE = "not applicable"
NAMES = ("data", "model", "network")  # of the entries that a run is made of
SENTENCES = ("failure", "traceback", "warnings", "note")
TEXTS = ("run", *NAMES, "status", *SENTENCES, "settings", "versions")
COUNTS = ("agents", "repetition", "fold", "seed", "rounds", "messages", "bytes", "iterations")
TYPES = {**dict.fromkeys(TEXTS, "string"), **dict.fromkeys(COUNTS, "int64"), "converged": "bool"}
NUMBERS = ("seconds", "total_seconds", "bound")  # of every row, and float as metrics are
CURVE = "curve."  # how columns with a curve begin
LISTS = ("agents.", CURVE)  # how columns with a list begin
ALWAYS_THERE = {*TYPES, *NUMBERS}
TAKEN = ALWAYS_THERE - {"agents"}  # names that no swept key may have; agents are a column anyway


def content(rows: Sequence[Mapping[str, Any]], types: Mapping[str, str] | None = None) -> bytes:
    """Return the bytes of a file with these rows.

    Columns that are not known by name are numbers, unless `types` names them.
    """
    pa, pq = arrow()
    known = {**TYPES, **(types or {})}
    lists = pa.list_(pa.float64())
    names = dict.fromkeys(name for row in rows for name in row)
    kinds = [
        lists if name.startswith(LISTS) else pa.type_for_alias(known.get(name, "float64"))
        for name in names
    ]
    columns = [
        pa.array([row.get(name) for row in rows], kind)
        for name, kind in zip(names, kinds, strict=True)
    ]
    # Of a single row, dictionaries, statistics, compression and a second schema make a larger file,
    # and take longer.
    many = len(rows) > 1
    how = {
        "use_dictionary": many,
        "write_statistics": many,
        "compression": "zstd" if many else "none",
    }
    stream = pa.BufferOutputStream()
    pq.write_table(
        pa.Table.from_arrays(columns, names=list(names)), stream, store_schema=many, **how
    )
    written: bytes = stream.getvalue().to_pybytes()
    return written


def types_of(columns: Sequence[Mapping[str, Any]], keys: Iterable[str]) -> dict[str, str]:
    """Return the type in Parquet of every swept key."""
    return {key: _type([each[key] for each in columns if each[key] is not None]) for key in keys}


def _type(values: Sequence[Any]) -> str:
    for kind, name in ((bool, "bool"), (int, "int64"), (int | float, "float64")):
        if all(isinstance(value, kind) for value in values):
            return name
    return "string"


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a Parquet file to read; a damaged one raises a sentence."""
    _, pq = arrow()
    try:
        with path.open("rb") as stream, pq.ParquetFile(stream) as file:
            yield file
    except PeerlearnError:
        raise
    # A damaged file fails in many ways, each in the words of one of pyarrow's layers.
    except Exception as error:
        told = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"{path} is not a readable .parquet file ({told}): give the same run command again"
        ) from error


def arrow() -> tuple[Any, Any]:
    """Import pyarrow and its Parquet part, or raise a sentence."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("keeping the rows of a comparison", "pyarrow", "lab") from None
    return pyarrow, pyarrow.parquet
