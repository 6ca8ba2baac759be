"""Tables from Parquet files."""

from __future__ import annotations

import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from peerlearn.data import table_file
from peerlearn.errors import MissingExtra
from tests.support.table_files import refused


def stored(folder, **columns):
    path = folder / "t.parquet"
    parquet.write_table(pa.table(columns), path)
    return path


def test_parquet_columns_of_all_kinds_of_numbers(tmp_path):
    path = stored(
        tmp_path,
        whole=pa.array([1, 2], pa.uint8()),
        half=pa.array([0.5, 1.5], pa.float32()),
        truth=[True, False],
        money=pa.array([Decimal("1.25"), Decimal("2.50")]),
        grade=pa.array(["a", "b"]).dictionary_encode(),
    )
    table = table_file.read(path, "grade")
    assert table.columns == ("whole", "half", "truth", "money")
    assert table.X.tolist() == [[1.0, 0.5, 1.0, 1.25], [2.0, 1.5, 0.0, 2.5]]
    assert table.y.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [([1, 2], "int64"), ([1.5, 2.5], "float64"), ([True, False], "bool"), (["a", "bc"], "<U2")],
)
def test_parquet_targets_keep_their_type(tmp_path, values, dtype):
    y = table_file.read(stored(tmp_path, x=[1.0, 2.0], y=values), "y").y
    assert y.dtype == dtype
    assert y.tolist() == values


def test_the_row_labels_of_pandas_are_no_column(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "y": ["u", "v", "u", "v"]})
    frame[frame.a != 3].to_parquet(tmp_path / "t.parquet")
    assert parquet.read_schema(tmp_path / "t.parquet").names == ["a", "y", "__index_level_0__"]
    table = table_file.read(tmp_path / "t.parquet", "y")
    assert (table.columns, table.X.tolist(), table.y.tolist()) == (
        ("a",),
        [[1.0], [2.0], [4.0]],
        ["u", "v", "v"],
    )


def test_folders_named_like_partitions_add_no_column(tmp_path):
    (tmp_path / "site=3").mkdir()
    assert table_file.read(stored(tmp_path / "site=3", a=[1.0])).columns == ("a",)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            {"a": [1.0, None, 2.0], "y": [1, 2, 3]},
            r"row 2 of .* has a missing or infinite value in column 'a'",
        ),
        (
            {"a": [1.0, 2.0, np.inf], "y": [1, 2, 3]},
            r"row 3 of .* has a missing or infinite value in column 'a'",
        ),
        (
            {"a": [1.0, 2.0], "y": [np.nan, 3.0]},
            r"row 1 of .* has a missing or infinite value in column 'y'",
        ),
        (
            {"a": [1.0, 2.0], "y": ["a", None]},
            r"row 2 of .* has a missing or infinite value in column 'y'",
        ),
        (
            {"a": [1.0, 2.0], "y": ["a", " "]},
            r"row 2 of .* has a missing or infinite value in column 'y'",
        ),
        (
            {"a": ["u", "v"], "y": [1, 2]},
            "column 'a' of .* has type string, where numbers are needed: encode it",
        ),
        (
            {"a": pa.array([], pa.float64()), "y": pa.array([], pa.int64())},
            "has columns but no rows",
        ),
        ({"a": [1.0], "y": pa.array([2**64 - 1], pa.uint64())}, "not in range"),
    ],
)
def test_parquet_files_that_cannot_be_used(tmp_path, columns, sentence):
    refused(stored(tmp_path, **columns), sentence, "y")


def test_parquet_columns_of_one_name(tmp_path):
    parquet.write_table(
        pa.Table.from_arrays([pa.array([1.0])] * 2, names=["a", "a"]), tmp_path / "t.parquet"
    )
    refused(tmp_path / "t.parquet", "has several columns of the name 'a'")


def test_parquet_files_cut_short(tmp_path):
    path = stored(tmp_path, a=[1.0, 2.0])
    path.write_bytes(path.read_bytes()[:-9])
    refused(path, r"is not a readable \.parquet file .*: copy it again")


def test_without_pyarrow(tmp_path, monkeypatch):
    path = stored(tmp_path, a=[1.0])
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtra, match=r"needs the package pyarrow.* pip install pyarrow$"):
        table_file.read(path)
