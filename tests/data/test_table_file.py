"""Tables from files: what was written is read, and what cannot be used is named by file, row and
column.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from peerlearn.data import table_file
from peerlearn.errors import DataError, PeerlearnError
from tests.support.table_files import refused, written


@settings(deadline=None)
@given(content=st.binary(max_size=200), name=st.sampled_from(["b.csv", "b.parquet", "b.npz"]))
@example(content=b"a,b\n1,\xff\n", name="b.csv")
@example(content=b'a,b\n1,"2\n', name="b.csv")
@example(content=b'a,b\n1,"2"3\n', name="b.csv")
@example(content=b"\xef\xbb\xbf", name="b.csv")
@example(content=b"PAR1\0\0\0\0PAR1", name="b.parquet")
def test_whatever_bytes_a_file_has_the_answer_is_a_table_or_a_sentence(place, content, name):
    (place / name).write_bytes(content)
    try:
        table = table_file.read(place / name)
    except PeerlearnError:
        return
    assert np.isfinite(table.X).all()


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [
        (["1", "-2"], "int64"),
        (["1", "2.0"], "float64"),
        (["1", "1e3"], "float64"),
        (["1", "b"], "<U1"),
        (["1_0", "2_0"], "<U3"),
        (["True", "False"], "<U5"),
        ([str(2**63), "1"], "<U19"),
    ],
)
def test_the_type_of_a_target_is_the_narrowest_that_keeps_it(tmp_path, cells, dtype):
    table = table_file.read(
        written(tmp_path, "x,y\n" + "".join(f"0,{cell}\n" for cell in cells)), "y"
    )
    assert table.y.dtype == dtype
    assert len(set(table.y.tolist())) == 2


def test_without_a_target_all_columns_are_features(tmp_path):
    table = table_file.read(str(written(tmp_path, "a,b\n1,2\n")))
    assert (table.columns, table.X.tolist(), table.y, table.target) == (
        ("a", "b"),
        [[1.0, 2.0]],
        None,
        None,
    )


def test_the_header_alone(tmp_path):
    assert table_file.read_header(written(tmp_path, "a,b\nno,number\n")) == ("a", "b")


def test_columns_are_selected_by_name_in_the_order_asked_for(tmp_path):
    table = table_file.read(written(tmp_path, "a,b,c\n1,2,3\n4,5,6\n"))
    chosen = table.select(["c", "a"])
    assert chosen.tolist() == [[3.0, 1.0], [6.0, 4.0]]
    assert chosen.flags.c_contiguous
    with pytest.raises(
        DataError, match="the table lacks 'd', 'e': it has 'a', 'b', 'c', so add what is missing"
    ):
        table.select(["a", "d", "e"])


def test_wide_tables_do_not_fill_the_screen(tmp_path):
    names = ",".join(f"c{k}" for k in range(1000))
    refused(written(tmp_path, names + "\n"), "'c19' and 980 more$", target="y")


@pytest.mark.parametrize("cell", ["", "nan", "inf"])
def test_targets_that_are_missing(tmp_path, cell):
    text = f"a,y\n1,2.5\n2,{cell}\n"
    refused(
        written(tmp_path, text),
        r"row 2 \(line 3\) of .* in column 'y', where a finite number or a label",
        "y",
    )


def test_a_target_that_is_not_there(tmp_path):
    path = written(tmp_path, "age,outcome\n1,2\n")
    refused(
        path, "has no column 'outcom', the nearest is 'outcome': it has 'age', 'outcome'", "outcom"
    )
    refused(path, "has no column 'zzz': it has 'age', 'outcome'", "zzz")


def test_a_target_and_nothing_to_predict_it_from(tmp_path):
    refused(written(tmp_path, "y\n1\n"), "has no column but the target 'y'", "y")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.npz"])
def test_files_that_are_missing_or_folders(tmp_path, name):
    refused(tmp_path / name, "there is no file")
    (tmp_path / name).mkdir()
    refused(tmp_path / name, "there is no file")


@pytest.mark.parametrize("name", ["t.xlsx", "t", "csv"])
def test_unknown_endings(tmp_path, name):
    refused(tmp_path / name, r"but tables are read from \.csv, \.parquet, \.npz: convert it")


@pytest.mark.parametrize("method", ["open", "stat"])
def test_files_that_may_not_be_read(tmp_path, monkeypatch, method):
    def denied(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    path = written(tmp_path, "a,b\n1,2\n")
    monkeypatch.setattr(Path, method, denied)  # rights would not stop a test that runs as root
    refused(path, "Permission denied.*: allow this user")


def packed(folder, **arrays):
    np.savez(folder / "t.npz", **arrays)
    return folder / "t.npz"


def test_npz_files_have_numbered_columns_and_y(tmp_path):
    X = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    path = packed(tmp_path, X=X, y=np.array([3, 4], dtype=np.int8))
    assert table_file.read_header(path) == ("x0", "x1", "x2", "x3", "y")
    table = table_file.read(path, "y")
    assert (table.columns, table.y.dtype) == (("x0", "x1", "x2", "x3"), np.int64)
    assert np.array_equal(table.X, X.reshape(2, 4))
    assert table_file.read(path).y is None
    middle = table_file.read(path, "x1")
    assert (middle.columns, middle.y.tolist()) == (("x0", "x2", "x3"), [1.0, 5.0])


def test_npz_files_may_name_their_columns(tmp_path):
    table = table_file.read(
        packed(tmp_path, X=np.eye(2), y=np.array(["u", "v"]), columns=np.array(["a", "b"])), "y"
    )
    assert (table.columns, table.y.tolist()) == (("a", "b"), ["u", "v"])
    assert table_file.read_header(packed(tmp_path, X=np.eye(2))) == ("x0", "x1")


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"y": np.arange(2)}, r"has no array 'X' \(it holds y\)"),
        (
            {"X": np.eye(2)},
            "has no column 'y', the nearest is|has no column 'y': it has 'x0', 'x1'",
        ),
        ({"X": np.eye(2), "y": np.arange(3)}, "save one entry of y per row of X"),
        ({"X": np.array([[1.0, np.nan]]), "y": np.arange(1)}, "1 missing or infinite values"),
        (
            {"X": np.eye(2), "y": np.arange(2), "columns": np.array(["a"])},
            r"shape \(1,\), but X has 2 columns",
        ),
        ({"X": np.eye(2), "y": np.arange(2), "columns": np.arange(2)}, "type int64"),
        (
            {"X": np.eye(2), "y": np.arange(2), "columns": np.array(["a", "y"])},
            "several columns of the name 'y'",
        ),
        ({"X": np.empty((2, 0)), "y": np.arange(2)}, "has no column but the target 'y'"),
        ({"X": np.empty((0, 2)), "y": np.arange(0)}, "needs a row and a column at least"),
        ({"X": np.eye(2), "y": np.array([None, 1])}, "pickled objects, which are never loaded"),
    ],
)
def test_npz_files_that_cannot_be_used(tmp_path, arrays, sentence):
    refused(packed(tmp_path, **arrays), sentence, "y")


@pytest.mark.parametrize("code", [2**32 - 1, 0x110000, 0xD800])
def test_npz_files_with_text_that_is_none(tmp_path, code):
    broken = np.array([1, code], dtype=np.uint32).view("<U1")
    refused(
        packed(tmp_path, X=np.eye(2), y=broken),
        "y in .* has text with characters that do not exist",
        "y",
    )
    refused(
        packed(tmp_path, X=np.eye(2), columns=broken),
        "columns in .* has text with characters that do not exist",
    )
