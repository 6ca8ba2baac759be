"""Rows of a table without a label: -1 and empty cells arrive as -1, of the type that the other
labels have.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from peerlearn.data import table_file
from peerlearn.errors import DataError
from peerlearn.models.unlabelled import is_unlabelled


def arrives(path, expected, dtype):
    table = table_file.read(path, "y", partly_labelled=True)
    assert table.y.tolist() == expected
    assert table.y.dtype.kind == dtype
    assert is_unlabelled(table.y).tolist() == [label in (-1, "-1") for label in expected]
    return table


def csv_of(folder, cells):
    path = folder / "t.csv"
    path.write_text(
        "x,y\n" + "".join(f"{k},{cell}\n" for k, cell in enumerate(cells)), encoding="utf-8"
    )
    return path


def parquet_of(folder, column):
    path = folder / "t.parquet"
    parquet.write_table(pa.table({"x": np.arange(float(len(column))), "y": column}), path)
    return path


def npz_of(folder, y):
    np.savez(folder / "t.npz", X=np.eye(len(y)), y=y)
    return folder / "t.npz"


@pytest.mark.parametrize(
    ("cells", "expected", "dtype"),
    [
        (["0", "-1", "1"], [0, -1, 1], "i"),
        (["0", "", "1"], [0, -1, 1], "i"),
        (["0", " ", "-1", "1"], [0, -1, -1, 1], "i"),
        (["0.0", "", "1.0"], [0.0, -1.0, 1.0], "f"),
        (["0", "nan", "1", "NaN"], [0, -1, 1, -1], "i"),
        (["low", "-1", "high"], ["low", "-1", "high"], "U"),
        (["low", "", " -1", "-1.0", "NaN", "h"], ["low", "-1", "-1", "-1", "-1", "h"], "U"),
        (["1", "", "1b"], ["1", "-1", "1b"], "U"),
        (["", "", ""], [-1, -1, -1], "i"),
        (["0", "1", "1"], [0, 1, 1], "i"),
    ],
)
def test_csv(tmp_path, cells, expected, dtype):
    table = arrives(csv_of(tmp_path, cells), expected, dtype)
    assert table.X[:, 0].tolist() == list(range(len(cells)))


@pytest.mark.parametrize(
    ("column", "expected", "dtype"),
    [
        ([0, -1, 1], [0, -1, 1], "i"),
        ([0, None, 1], [0, -1, 1], "i"),
        (pa.array([0, None, 200], pa.uint8()), [0, -1, 200], "i"),
        ([0.0, None, 1.0], [0.0, -1.0, 1.0], "f"),
        (pa.array([0.0, np.nan, 1.0]), [0.0, -1.0, 1.0], "f"),
        (["low", None, "-1", "", " -1 ", "h"], ["low", "-1", "-1", "-1", "-1", "h"], "U"),
        (pa.array(["a", None, "b"]).dictionary_encode(), ["a", "-1", "b"], "U"),
        (pa.array(["a", None, "b"], pa.large_string()), ["a", "-1", "b"], "U"),
        (pa.array([0, None, 7]).dictionary_encode(), [0, -1, 7], "i"),
        (pa.nulls(2), [-1, -1], "i"),
        ([True, False], [True, False], "b"),
    ],
)
def test_parquet(tmp_path, column, expected, dtype):
    arrives(parquet_of(tmp_path, column), expected, dtype)


@pytest.mark.parametrize(
    ("y", "expected", "dtype"),
    [
        (np.array([0, -1, 1], dtype=np.int8), [0, -1, 1], "i"),
        (np.array([0.0, np.nan, -1.0, 1.0]), [0.0, -1.0, -1.0, 1.0], "f"),
        (np.array([[0.0], [np.nan]]), [0.0, -1.0], "f"),
        (np.array(["a", "", "-1", "b"]), ["a", "-1", "-1", "b"], "U"),
        (np.array(["", ""]), ["-1", "-1"], "U"),
        (np.array([True, False]), [True, False], "b"),
    ],
)
def test_npz(tmp_path, y, expected, dtype):
    arrives(npz_of(tmp_path, y), expected, dtype)


@pytest.mark.parametrize("labels", [["ill", None, "well"], [3, None, 4], [0.0, np.nan, 1.0]])
def test_what_pandas_writes(tmp_path, labels):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": labels})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        y = table_file.read(tmp_path / name, "y", partly_labelled=True).y
        assert y.tolist() == [labels[0], "-1" if y.dtype.kind == "U" else -1, labels[2]]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (
            lambda folder: csv_of(folder, ["0", "", "inf"]),
            r"row 3 \(line 4\) of .* has 'inf' in column 'y'",
        ),
        (
            lambda folder: parquet_of(folder, [0.0, None, np.inf]),
            "row 3 of .* has a missing or infinite value in",
        ),
        (
            lambda folder: parquet_of(folder, [True, None, False]),
            "column 'y' of .* has booleans and 1 missing values, .*: write 1, 0 and -1, or texts",
        ),
        (
            lambda folder: npz_of(folder, np.array([0.0, np.nan, np.inf])),
            r"y in .* has 1 missing or infinite values",
        ),
        (
            lambda folder: npz_of(folder, np.eye(3)),
            r"y in .* has shape \(3, 3\), but classification needs \(3,\)",
        ),
        (
            lambda folder: parquet_of(folder, pa.array([b"a", b"b"])),
            "has type binary, where numbers are needed",
        ),
        (
            lambda folder: npz_of(folder, np.array([1, 0xD800], dtype=np.uint32).view("<U1")),
            "y in .* has text with characters that do not exist",
        ),
    ],
)
def test_what_is_no_label_and_does_not_say_so(tmp_path, path, sentence):
    with pytest.raises(DataError, match=sentence):
        table_file.read(path(tmp_path), "y", partly_labelled=True)


def test_all_rows_have_a_label_unless_told_otherwise(tmp_path):
    for path in (csv_of(tmp_path, ["a", ""]), parquet_of(tmp_path, ["a", None])):
        with pytest.raises(DataError, match=r"row 2 .* in column 'y'"):
            table_file.read(path, "y")
