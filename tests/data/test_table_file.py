"""Tables from files: what was written is read, and what cannot be used is named by file, row and column."""

from __future__ import annotations

import csv
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from peerlearn.data import table_file
from peerlearn.errors import DataError, MissingExtra, PeerlearnError


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


def written(folder, text, name="t.csv"):
    path = folder / name
    path.write_bytes(text.encode())
    return path


def refused(path, sentence, target=None):
    with pytest.raises(DataError, match=sentence) as caught:
        table_file.read(path, target)
    assert path.name in str(caught.value)


names_of = st.lists(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
    min_size=2,
    max_size=5,
    unique=True,
)
numbers = st.floats(allow_nan=False, allow_infinity=False)
answers = (
    st.integers(-(2**63), 2**63 - 1),
    numbers,
    st.text(st.characters(codec="utf-8"), max_size=5).map("t{}".format),
)


@settings(max_examples=50, deadline=None)
@given(data=st.data(), names=names_of)
def test_what_was_written_as_csv_is_read(place, data, names):
    names = [f"n{name}" for name in names]
    rows = data.draw(
        st.lists(
            st.lists(numbers, min_size=len(names) - 1, max_size=len(names) - 1),
            min_size=1,
            max_size=4,
        )
    )
    y = data.draw(
        st.sampled_from(answers).flatmap(
            lambda one: st.lists(one, min_size=len(rows), max_size=len(rows))
        )
    )
    at = data.draw(st.integers(0, len(names) - 1))
    with (place / "r.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(names)
        lines.writerows([*row[:at], entry, *row[at:]] for row, entry in zip(rows, y, strict=True))
    table = table_file.read(place / "r.csv", names[at])
    assert (table.columns, table.target) == (tuple(names[:at] + names[at + 1 :]), names[at])
    assert table.X.dtype == np.float64
    assert np.array_equal(table.X, rows)
    assert table.y.dtype == np.array(y).dtype
    assert np.array_equal(table.y, np.array(y))


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
    [(["1", "-2"], "int64"), (["1", "2.0"], "float64"), (["1", "1e3"], "float64"), (["1", "b"], "<U1"),
     (["1_0", "2_0"], "<U3"), (["True", "False"], "<U5"), ([str(2**63), "1"], "<U19")],
)  # fmt: skip
def test_the_type_of_a_target_is_the_narrowest_that_keeps_it(tmp_path, cells, dtype):
    table = table_file.read(
        written(tmp_path, "x,y\n" + "".join(f"0,{cell}\n" for cell in cells)), "y"
    )
    assert table.y.dtype == dtype
    assert len(set(table.y.tolist())) == 2


def test_a_file_of_a_spreadsheet(tmp_path):
    table = table_file.read(
        written(tmp_path, '\ufeff"age, years",grade\r\n 41 ,b\r\n39,a\r\n\r\n', "T.CSV"), "grade"
    )
    assert table.columns == ("age, years",)
    assert table.X.tolist() == [[41.0], [39.0]]
    assert table.y.tolist() == ["b", "a"]


def test_without_a_target_all_columns_are_features(tmp_path):
    table = table_file.read(str(written(tmp_path, "a,b\n1,2\n")))
    assert (table.columns, table.X.tolist(), table.y, table.target) == (
        ("a", "b"),
        [[1.0, 2.0]],
        None,
        None,
    )


def test_a_column_may_have_a_semicolon_in_its_name(tmp_path):
    table = table_file.read(written(tmp_path, "dose;mg\n1.5\n"))
    assert (table.columns, table.X.tolist()) == (("dose;mg",), [[1.5]])
    assert table_file.read_header(written(tmp_path, "a;b;c,d\nx;y;z,1\n")) == ("a;b;c", "d")


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


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "t.csv is empty: save it again"),
        ("\n1,2\n", "begins with an empty line: put the names"),
        ("a,b\n", "has a header line but no rows: add one at least"),
        ("a,b\n\n\n", "has a header line but no rows: add one at least"),
        (
            "a;b;c\n1.5;2;x\n",
            "has semicolons between its cells, where commas are needed: save it again as CSV with",
        ),
        ("a;b\n1,5;2,5\n", "has semicolons between its cells"),
        ("1;2\n3;4\n", "has semicolons between its cells"),
        ("a;b\n", "has semicolons between its cells"),
        ('"a;1";"b"\n1;2\n', "has semicolons between its cells"),
        ("a\tb\n1\t2\n", "has tabs between its cells, where commas are needed"),
        ("1.5,2\n3,4\n", "the first line of .* has numbers only: put a line with the names"),
        (
            "a,,c\n1,2,3\n",
            "has a column without a name: name it, or save the table without its row numbers",
        ),
        ("a,b,a\n1,2,3\n", "has several columns of the name 'a': rename or drop all but one"),
        ("a,b\n1,2\n3\n", r"row 2 \(line 3\) of .* has 1 cells, but the header names 2 columns"),
        ("a,b\n1,2,3\n", r"row 1 \(line 2\) of .* has 3 cells, but the header names 2 columns"),
        ("a,b\n1,2\n\n3,4\n", "line 3 of .* is empty, but rows follow"),
        (
            "a,b\n1,2\n1,x\n",
            r"row 2 \(line 3\) of .* has 'x' in column 'b', where a finite number is needed",
        ),
        ('"a\nb",c\n1,x\n', r"row 1 \(line 3\) of .* has 'x' in column 'c'"),
        ("a,b\n1,\n", r"row 1 \(line 2\) of .* has nothing in column 'b'"),
        ("a,b\n1, \n", r"row 1 \(line 2\) of .* has nothing in column 'b'"),
        ("a,b\nnan,1\n", "has 'nan' in column 'a'"),
        ("a,b\n-inf,1\n", "has '-inf' in column 'a'"),
        ("a,b\n1e999,1\n", "has '1e999' in column 'a'"),
        ("a,b\n1_000,1\n", "has '1_000' in column 'a'"),
        ('a,b\n1,"2"x\n', "line 2 of .* is not CSV"),
    ],
)
def test_csv_files_that_cannot_be_used(tmp_path, text, sentence):
    refused(written(tmp_path, text), sentence)


@pytest.mark.parametrize("cell", ["", "nan", "inf"])
def test_targets_that_are_missing(tmp_path, cell):
    text = f"a,y\n1,2.5\n2,{cell}\n"
    refused(
        written(tmp_path, text),
        r"row 2 \(line 3\) of .* in column 'y', where a finite number or a label",
        "y",
    )


def test_text_without_utf8(tmp_path):
    (tmp_path / "t.csv").write_bytes("größe\n1\n".encode("latin-1"))
    refused(tmp_path / "t.csv", "is not text in UTF-8 .*: save it as CSV in UTF-8")


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
