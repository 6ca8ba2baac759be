"""Tables from CSV files."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peerlearn.data import table_file
from tests.support.table_files import refused, written

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


def test_a_file_of_a_spreadsheet(tmp_path):
    table = table_file.read(
        written(tmp_path, '\ufeff"age, years",grade\r\n 41 ,b\r\n39,a\r\n\r\n', "T.CSV"), "grade"
    )
    assert table.columns == ("age, years",)
    assert table.X.tolist() == [[41.0], [39.0]]
    assert table.y.tolist() == ["b", "a"]


def test_a_column_may_have_a_semicolon_in_its_name(tmp_path):
    table = table_file.read(written(tmp_path, "dose;mg\n1.5\n"))
    assert (table.columns, table.X.tolist()) == (("dose;mg",), [[1.5]])
    assert table_file.read_header(written(tmp_path, "a;b;c,d\nx;y;z,1\n")) == ("a;b;c", "d")


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("a;b;c\n1.5;2;3\n", ("a", "b", "c"), [[1.5, 2.0, 3.0]]),
        ("a;b\n1,5;-2,5e3\n,25;4\n", ("a", "b"), [[1.5, -2500.0], [0.25, 4.0]]),
        ('"a;1";"b"\n1;2\n', ("a;1", "b"), [[1.0, 2.0]]),
        ("a\tb\n1,5\t2\n", ("a", "b"), [[1.5, 2.0]]),
    ],
)
def test_semicolons_tabs_and_decimal_commas_are_recognised(tmp_path, text, columns, rows):
    table = table_file.read(written(tmp_path, text))
    assert (table.columns, table.X.tolist()) == (columns, rows)


def test_raw_cells_are_read_as_they_are(tmp_path):
    path = written(tmp_path, "age;sex;cost\n41,5;;1,5\n;f;2\n")
    table = table_file.read(path, "cost", raw=True)
    assert table.columns == ("age", "sex")
    assert table.X.tolist() == [["41.5", ""], ["", "f"]]
    assert table.y.tolist() == [1.5, 2.0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "t.csv is empty: save it again"),
        ("\n1,2\n", "begins with an empty line: put the names"),
        ("a,b\n", "has a header line but no rows: add one at least"),
        ("a,b\n\n\n", "has a header line but no rows: add one at least"),
        ("a;b\n", "has a header line but no rows: add one at least"),
        ("1;2\n3;4\n", "the first line of .* has numbers only: put a line with the names"),
        ("a;b\n1,234.5;2\n", "has '1,234.5' in column 'a'"),
        ("a;b\n1;2\n3;4;5\n", r"row 2 \(line 3\) of .* has 3 cells, but the header names 2"),
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


def test_text_without_utf8(tmp_path):
    (tmp_path / "t.csv").write_bytes("größe\n1\n".encode("latin-1"))
    refused(tmp_path / "t.csv", "is not text in UTF-8 .*: save it as CSV in UTF-8")
