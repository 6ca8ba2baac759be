"""Rows on disk: whole or not there, of one type whatever is missing in them, and read again as they
were.
"""

from __future__ import annotations

import json
import logging
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.parquet import ParquetFile, read_schema, write_table

from peerlearn.errors import InputError, MissingExtra
from peerlearn.lab.description.specs import (
    Expectation,
    FigureSpec,
    Layout,
    StatisticsSpec,
    TableSpec,
)
from peerlearn.lab.description.trial import Outcome
from peerlearn.lab.results.parquet import DONE, FAILED, types_of
from peerlearn.lab.results.results import Results, deviation
from peerlearn.lab.results.store import Store
from peerlearn.lab.results.version_check import code_digest, versions
from peerlearn.lab.runs.attempt import row_of
from peerlearn.lab.runs.run import make_runs as run
from peerlearn.lab.runs.swept_columns import columns_of
from tests.support.lab_tiny import Tiny, tiny

TRIALS = list(tiny("m", data=["a"]).trials())


def done(number, **more):
    return row_of(TRIALS[number], DONE, Tiny().run(TRIALS[number]), total_seconds=1.0, **more)


def failed(number):
    return row_of(TRIALS[number], FAILED, failure="it was late", total_seconds=1.0)


@pytest.fixture
def store(tmp_path):
    return Store.at(tmp_path)


def files(store):
    return sorted(path.name for path in store.folder.iterdir())


def test_a_row_is_read_as_it_was_written(store):
    rows = [done(0), failed(1), done(2, note="ä\n'\"")]
    for row in rows:
        store.add(row)
    assert files(store) == sorted(f"{row['run']}.parquet" for row in rows)
    there = Store(store.folder).read()
    assert there == {row["run"]: row for row in rows}
    assert [*there[rows[0]["run"]]] == [*rows[0]]  # in the same order


def test_every_row_says_what_it_was_made_of_and_with():
    row, trial = done(0), TRIALS[0]
    assert json.loads(row["settings"]) == trial.identity
    assert set(json.loads(versions())) == {
        "python",
        "peerlearn",
        "numpy",
        "scipy",
        "scikit-learn",
        "platform",
        "code",
        "processor",
        "cores",
        "blas",
    }
    assert all(json.loads(versions()).values())
    assert row["versions"] == versions()


def test_code_that_runs_may_use_changes_the_digest(tmp_path):
    for name in ("arrays.py", "lab/training/search.py", "lab/report/page.py", "cli/lab.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    before = code_digest(tmp_path)
    for name in ("lab/report/page.py", "cli/lab.py"):
        (tmp_path / name).write_text("x = 2\n")
    assert code_digest(tmp_path) == before
    digests = {before}
    for name in ("arrays.py", "lab/training/search.py"):
        (tmp_path / name).write_text("x = 2\n")
        digests.add(code_digest(tmp_path))
    assert len(digests) == 3


def test_columns_have_one_type_also_where_nothing_is_in_them(store):
    for row in (done(0), failed(1)):
        store.add(row)
    one, other = (read_schema(store.folder / f"{trial.key}.parquet") for trial in TRIALS[:2])
    for name in other.names:
        assert one.field(name).type == other.field(name).type != pa.null()
    assert one.field("curve.walk").type == pa.list_(pa.float64())
    assert one.field("rounds").type == pa.int64()


def test_merged_rows_are_the_same_rows_in_one_file(store):
    for number in range(6):
        store.add(done(number) if number else failed(number))
    before = store.read()
    assert len(files(store)) == 1
    assert files(store)[0].startswith("batch-")
    assert Store(store.folder).read() == before
    for number in range(6, 9):
        store.add(done(number))
    after = store.read()
    assert len(files(store)) == 1
    assert {trial.key for trial in TRIALS[:9]} == set(after)
    assert {key: after[key] for key in before} == before


def test_a_kill_between_a_batch_and_its_parts_leaves_rows_twice_and_none_wrong(store, monkeypatch):
    rows = {trial.key: done(number) for number, trial in enumerate(TRIALS[:4])}
    for row in rows.values():
        store.add(row)
    parts = {path: path.read_bytes() for path in store.folder.iterdir()}
    store.merge(rows)
    for path, content in parts.items():
        path.write_bytes(content)
    assert set(store.read()) == set(rows)
    assert len(files(store)) == 1


@pytest.mark.parametrize("first", [True, False])
def test_of_two_rows_of_a_run_the_one_that_is_done(store, first):
    batch = [failed(0), failed(1)] if first else [done(0), done(1)]
    store.merge({row["run"]: row for row in batch})
    store.add(done(0) if first else failed(0))
    assert store.read()[TRIALS[0].key]["status"] == DONE


def test_damaged_batches_are_put_aside_with_a_sentence(store, caplog):
    for number in range(3):
        store.add(done(number))
    store.read()
    store.add(done(3))
    batch = next(store.folder.glob("batch-*"))
    batch.write_bytes(batch.read_bytes()[:-30])
    with caplog.at_level(logging.WARNING):
        assert set(store.read()) == {TRIALS[3].key}
    assert f"{batch} is not a readable .parquet file" in caplog.text
    assert "its runs are done again" in caplog.text
    assert batch.with_suffix(".damaged").exists()


def test_a_parquet_file_of_somebody_else_is_put_aside(store, caplog):
    (store.folder / "other.parquet").write_bytes(pa.BufferOutputStream().getvalue())
    assert store.read() == {}
    assert "other.parquet" in caplog.text


def test_half_files_of_the_killed_are_swept_away(store, tmp_path):
    (store.folder / ".abc.parquet.123.tmp").write_bytes(b"half")
    assert files(Store.at(tmp_path)) == []


def test_without_pyarrow_the_sentence_has_the_install_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingExtra, match=r"needs the package pyarrow.*pip install pyarrow jinja2 joblib$"
    ):
        Store.at(tmp_path)


def test_measured_names_that_every_row_has_are_refused():
    with pytest.raises(
        InputError, match="the protocol measures rounds, but every row has a column of that name"
    ):
        row_of(TRIALS[0], DONE, Outcome(1.0, {"rounds": 3.0}))


@pytest.mark.parametrize(
    ("values", "kept", "kind"),
    [
        ([1, 2], [1, 2], "int64"),
        ([1, 0.5], [1, 0.5], "float64"),
        ([True, False], [True, False], "bool"),
        (["auto", 3], ["auto", "3"], "string"),
        ([{"name": "admm"}, {"name": "gram"}], ['{"name": "admm"}', '{"name": "gram"}'], "string"),
    ],
)
def test_swept_values_as_columns(values, kept, kind):
    trials = [trial for trial in TRIALS if trial.network is None][:2]
    for trial, value in zip(trials, values, strict=True):
        object.__setattr__(trial, "data", type(trial.data)("a", swept={"alpha": value}))
    columns = columns_of([*trials, TRIALS[1]], ["alpha"])
    assert [each["alpha"] for each in columns] == [*kept, None]
    assert types_of(columns, ["alpha"]) == {"alpha": kind}


NAMELESS = (
    '{"layout": {"tables": [], "figures": [], "statistics": [], "expectations": []}, "order": '
    "{}, %s}"
)
LAYOUT = Layout(
    "Title",
    "about",
    (TableSpec("t", "draw", ("data",), where={"agents": [4, 5]}),),
    (FigureSpec("f", "lines", "draw", "agents", log="y"),),
    (StatisticsSpec("draw", ("friedman",), 0.1, ("data",)),),
    (Expectation("draw", {"model": "m"}, "table 1", 0.5, 0.1, reason="so it is"),),
    {"gone": "it is elsewhere"},
    "quick",
    "the file",
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return run(tiny("m", "fails", layout=LAYOUT), tmp_path_factory.mktemp("results"), jobs=1)


def test_results_are_read_from_their_folder_alone(results):
    read = Results.read(results.folder)
    assert read == results
    assert read.layout == LAYOUT
    assert read.order == {
        "data": ["a", "b"],
        "model": ["one place", "m", "fails"],
        "network": ["ring"],
        "agents": [4, 5],
    }
    assert read.facts["metrics"] == ["draw", "common", "threads"]
    assert (read.facts["folds"], read.facts["runs"], read.facts["swept"]) == (3, 60, ["agents"])
    assert [graph["swept"] for graph in read.facts["graphs"]] == [{"agents": 4}, {"agents": 5}]
    assert all((results.folder / graph["file"]).exists() for graph in read.facts["graphs"])
    names = ParquetFile(results.folder / "results.parquet").schema_arrow.names
    assert names[:6] == ["run", "data", "model", "network", "agents", "repetition"]


def test_rows_are_chosen_by_their_values(results):
    some = results.where({"model": "m", "agents": [4, 6], "fold": 0})
    assert {(row["model"], row["agents"], row["fold"]) for row in some.rows} == {("m", 4, 0)}
    assert len(some.rows) == 4


def test_values_are_those_of_runs_that_are_done(results):
    some = results.where({"model": "fails", "data": "a", "agents": 4})
    rows = [row for row in some.rows if row["fold"] != 1]
    numbers = [row["draw"] for row in rows]
    assert [*some.values("draw")] == numbers
    mean = sum(numbers) / 4
    assert some.mean("draw") == pytest.approx(mean)
    assert some.spread("draw") == pytest.approx((sum((x - mean) ** 2 for x in numbers) / 3) ** 0.5)
    assert [*some.values("converged")] == [1.0] * 4
    assert len(some.values("total_seconds")) == 4  # those that failed took some time, too
    for at, place in ((None, 2), (4, 2), (3.9, 1), (1, 0)):
        assert [*some.values("curve.walk", at)] == [row["curve.walk"][place] for row in rows]
    assert len(some.values("curve.walk", 0.5)) == 0


def test_equal_numbers_have_no_spread_at_all():
    assert np.std([0.1] * 3, ddof=1) > 0
    assert deviation(np.array([0.1] * 3)) == 0
    assert deviation(np.array([0.1, 0.3])) == np.std([0.1, 0.3], ddof=1)


def test_no_runs_have_no_mean(results):
    none, one = (
        results.where({"model": "?"}),
        results.where({"model": "m", "data": "a", "agents": 4, "fold": 0}),
    )
    assert [str(none.mean("draw")), str(none.spread("draw"))] == ["nan", "nan"]
    assert len(one.rows) == 2
    assert one.where({"repetition": 0}).spread("draw") == 0


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        (
            "comparison.json",
            None,
            "does not hold results, for it has no comparison.json: make it with peerlearn run FILE",
        ),
        ("comparison.json", "{", "is not as a run writes it .*: give the same run command again"),
        ("comparison.json", '{"layout": {"tables": [{"nme": 1}]}}', "is not as a run writes it"),
        ("comparison.json", "[]", "is not as a run writes it"),
        (
            "comparison.json",
            NAMELESS % '"runs": 1',
            r"comparison.json does not say metrics, as a run does: name a folder that a run",
        ),
        (
            "comparison.json",
            NAMELESS % '"runs": 1, "metrics": []',
            "does not say data, as a run does",
        ),
        (
            "results.parquet",
            None,
            "has no results.parquet, because none of its runs has ended: "
            "give the same run command again",
        ),
        (
            "results.parquet",
            "PAR1",
            "is not a readable .parquet file .*: give the same run command again",
        ),
    ],
)
def test_folders_that_are_not_results(results, tmp_path, file, content, said):
    for name in ("comparison.json", "results.parquet"):
        (tmp_path / name).write_bytes((results.folder / name).read_bytes())
    (tmp_path / file).unlink()
    if content is not None:
        (tmp_path / file).write_text(content)
    with pytest.raises(InputError, match=said) as raised:
        Results.read(tmp_path)
    assert "InputError" not in str(raised.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table.drop_columns(["model"]), "it has no column model"),
        (lambda table: table.drop_columns(["versions"]), "it has no column versions"),
        (lambda table: table.slice(0, 0), "it has no rows"),
        (
            lambda table: table.set_column(1, "data", pa.array(["elsewhere"] * len(table))),
            "its data 'elsewhere' is not named there",
        ),
    ],
)
def test_rows_that_are_not_of_this_description(results, tmp_path, change, said):
    (tmp_path / "comparison.json").write_bytes((results.folder / "comparison.json").read_bytes())
    with ParquetFile(results.folder / "results.parquet") as stored:
        write_table(change(stored.read()), tmp_path / "results.parquet")
    with pytest.raises(
        InputError, match=f"does not hold the rows of comparison.json beside it .{said}.: name"
    ):
        Results.read(tmp_path)
