"""Reading a .parquet file. Missing values, and columns of types other than numbers, are refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from peerlearn.arrays import Array
from peerlearn.data.dataset import AnyArray
from peerlearn.data.no_label import NO_LABEL, mark_missing
from peerlearn.errors import DataError, MissingExtra, PeerlearnError

# How pandas names the columns in which it stores the labels of rows. They are no features.
ROW_LABELS = "__index_level_"


def read_header(path: Path) -> list[str]:
    """Return the names in the file's schema."""
    with _open(path) as file:
        return [name for name in file.schema_arrow.names if not name.startswith(ROW_LABELS)]


def read(
    path: Path, names: Sequence[str], target: str | None, partly_labelled: bool
) -> tuple[Sequence[str], Array, AnyArray | None]:
    """Return the names of the features, their numbers, and the target's entries."""
    with _open(path) as file:
        content = file.read()
        features = [name for name in names if name != target]
        if content.num_rows == 0:
            raise DataError(f"{path} has columns but no rows: add one at least")
        X = np.empty((content.num_rows, len(features)))
        for k, name in enumerate(features):
            X[:, k] = _numbers(content.column(name), name, path)
        if target is None:
            return features, X, None
        return features, X, _targets(content.column(target), target, path, partly_labelled)


def read_raw(
    path: Path, names: Sequence[str], target: str | None, partly_labelled: bool
) -> tuple[Sequence[str], AnyArray, AnyArray | None]:
    """Return the names of the features, their cells as objects, and the target's entries."""
    with _open(path) as file:
        content = file.read()
        features = [name for name in names if name != target]
        if content.num_rows == 0:
            raise DataError(f"{path} has columns but no rows: add one at least")
        X = np.empty((content.num_rows, len(features)), dtype=object)
        for k, name in enumerate(features):
            X[:, k] = content.column(name).to_pylist()
        if target is None:
            return features, X, None
        return features, X, _targets(content.column(target), target, path, partly_labelled)


def _numbers(column: Any, name: str, path: Path) -> Array:
    from pyarrow import types

    kind = column.type
    if not (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    ):
        raise DataError(
            f"column {name!r} of {path} has type {kind}, where numbers are needed: encode it as "
            "numbers, or drop it"
        )
    _check_complete(column.is_null(), name, path)
    values: Array = column.to_numpy().astype(np.float64)
    _check_complete(~np.isfinite(values), name, path)
    return values


def _targets(column: Any, name: str, path: Path, partly_labelled: bool) -> AnyArray:
    """Return whole numbers as int64, text as text, booleans as bool, other numbers as float64."""
    from pyarrow import types

    if types.is_dictionary(column.type):  # what pandas calls categories
        column = column.cast(column.type.value_type)
    if partly_labelled:
        column = _mark_missing(column, name, path)
    kind = column.type
    if types.is_string(kind) or types.is_large_string(kind):
        _check_complete(column.is_null(), name, path)
        text: AnyArray = column.to_numpy().astype(str)
        _check_complete(np.char.strip(text) == "", name, path)
        return text
    values = _numbers(column, name, path)
    if types.is_integer(kind):
        whole: AnyArray = column.cast("int64").to_numpy()
        return whole
    return values.astype(bool) if types.is_boolean(kind) else values


def _mark_missing(column: Any, name: str, path: Path) -> Any:
    """Put -1 where there is no label, in a type that can hold -1."""
    from pyarrow import chunked_array, compute, types

    kind = column.type
    if types.is_string(kind) or types.is_large_string(kind):
        return chunked_array([mark_missing(column.fill_null("").to_pylist())], "string")
    if types.is_boolean(kind) and column.null_count:
        raise DataError(
            f"column {name!r} of {path} has booleans and {column.null_count} missing values, and "
            "no boolean means that there is no label: write 1, 0 and -1, or texts"
        )
    if types.is_integer(kind) or types.is_null(kind):
        return column.cast("int64").fill_null(NO_LABEL)
    if types.is_floating(kind) or types.is_decimal(kind):
        numbers = column.cast("float64").fill_null(NO_LABEL)
        return compute.if_else(compute.is_nan(numbers), float(NO_LABEL), numbers)
    return column


def _check_complete(missing: Any, name: str, path: Path) -> None:
    at = np.flatnonzero(missing)
    if len(at):
        raise DataError(
            f"row {at[0] + 1} of {path} has a missing or infinite value in column {name!r} (as "
            f"have {len(at)} rows in all): fill it in, or drop the row or the column"
        )


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Open a Parquet file, and turn every failure while it is open into a DataError."""
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingExtra("reading a .parquet file", "pyarrow", "parquet") from None
    try:
        with path.open("rb") as stream, ParquetFile(stream) as file:
            yield file
    except PeerlearnError:
        raise
    # A damaged file fails in many ways, each in the words of one of pyarrow's layers.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"{path} is not a readable .parquet file ({reason}): copy it again, or save it anew"
        ) from error
