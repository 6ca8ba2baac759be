"""Runs: the same numbers however they are made, and none lost, whoever is killed,
whatever fails.
"""

from __future__ import annotations

import errno
import json
import shutil
from dataclasses import dataclass, replace

import networkx as nx
import numpy as np
import pytest
from sklearn.utils import check_random_state

from peerlearn import RVFLClassifier, graphs
from peerlearn.errors import InputError
from peerlearn.lab.description.comparison import Comparison, Data, Model, Net
from peerlearn.lab.report.build import make_report
from peerlearn.lab.results import store, version_check
from peerlearn.lab.results.parquet import ROWS
from peerlearn.lab.results.results import Results
from peerlearn.lab.results.store import Store
from peerlearn.lab.runs.progress import Progress
from peerlearn.lab.runs.run import make_runs as run
from peerlearn.lab.runs.run import run as run_checked
from peerlearn.system import files
from peerlearn.system.folder_lock import lock_folder
from tests.support.lab_tiny import rows_on_disk, table, tiny, watched


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run(tiny(), tmp_path_factory.mktemp("undisturbed"), jobs=1)


def test_a_row_per_run_in_the_order_of_the_comparison(undisturbed):
    trials = list(tiny().trials())
    assert [row["run"] for row in undisturbed.rows] == [trial.key for trial in trials]
    for row, trial in zip(undisturbed.rows, trials, strict=True):
        draws = np.random.default_rng(trial.seed("model")).random(7)
        assert (row["draw"], row["agents.draw"], row["curve.walk"]) == (
            draws[0],
            [*draws[1:4]],
            [*draws[4:]],
        )
        assert row["curve.walk.at"] == [1, 2, 4]
        assert (
            row["rounds"],
            row["messages"],
            row["bytes"],
            row["iterations"],
            row["converged"],
        ) == (2, 3, 4, 7, True)
        assert (row["data"], row["model"], row["fold"]) == (
            trial.data.name,
            trial.model.name,
            trial.fold,
        )
        assert row["agents"] == (trial.network.agents if trial.network else 1)
        assert row["total_seconds"] > 0


def test_what_has_been_run_is_not_run_again(undisturbed):
    told, watch = watched()
    assert table(run(tiny(), undisturbed.folder, watch=watch)) == table(undisturbed)
    assert told == {"kept": len(undisturbed.rows), "done": 0, "failed": 0}


def test_a_changed_comparison_keeps_what_means_the_same(tmp_path):
    told, watch = watched()
    few = run(tiny(agents=[4]), tmp_path, jobs=1)
    more = run(tiny(agents=[4, 6]), tmp_path, jobs=1, watch=watch)
    assert told == {"kept": len(few.rows), "done": 24, "failed": 0}
    assert table(more.where({"agents": [1, 4]})) == table(few)
    assert more.order["agents"] == [4, 6]
    assert table(run(tiny(agents=[4]), tmp_path, jobs=1, watch=watch)) == table(few)
    assert told == {"kept": len(few.rows), "done": 0, "failed": 0}


@dataclass(frozen=True)
class One:
    steps: int


@dataclass(frozen=True)
class Other:
    steps: int


def test_a_run_is_what_its_numbers_follow_from():
    """Not whether a value was swept; but the class of whatever is in it, be its settings
    the same.
    """

    def key(network, solver=None):
        model = Model("m", estimator=RVFLClassifier(solver=solver, alpha=1.0, activation="sigmoid"))
        return next(replace(tiny(), models=(model,), networks=(network,)).trials()).key

    assert key(Net("ring", "ring", 4)) == key(Net("ring", "ring", 4, swept={"agents": 4}))
    assert key(Net("ring", "ring", 4)) != key(Net("ring", "ring", 5))
    assert key(Net("ring", "ring", 4), One(3)) != key(Net("ring", "ring", 4), Other(3))
    assert (
        key(Net("ring", "ring", 4), One(3))
        == key(Net("ring", "ring", 4), One(3))
        != key(Net("ring", "ring", 4))
    )


def test_what_there_is_can_be_shown_while_runs_go_on(tmp_path, monkeypatch):
    """Before the first run, too, what earlier times have left."""
    monkeypatch.setattr(store, "PAUSE", 0.0)
    monkeypatch.setattr(store, "SHARE", 1e9)
    seen = []

    def look(progress):
        if progress.kept + progress.done:
            seen.append((progress.kept + progress.done, len(Results.read(tmp_path).rows)))

    run(tiny(data=["a"], agents=[4]), tmp_path, jobs=1, watch=look)
    assert seen == [(k, k) for k in range(1, 19)]
    run(tiny(data=["a"], agents=[4, 6]), tmp_path, jobs=1, watch=look)
    assert seen[18:] == [(k, k) for k in range(18, 31)]


def test_what_is_shown_stays_until_there_is_something_new(tmp_path):
    run(tiny(data=["a"]), tmp_path, jobs=1)
    page = make_report(tmp_path)[-1]
    there = []
    run(tiny(data=["a"]), tmp_path, jobs=1, watch=lambda progress: there.append(page.exists()))
    assert there == [True]
    shutil.rmtree(tmp_path / "runs")
    run(
        tiny(data=["a"]),
        tmp_path,
        jobs=1,
        watch=lambda progress: there.append((tmp_path / ROWS).exists()),
    )
    assert there[1] is False  # rows that are made again are not those of before


def test_the_folder_is_ones_own_until_the_report_is_made(tmp_path):
    def report(folder):
        with pytest.raises(InputError, match="a comparison runs in"):
            run(tiny(data=["a"]), folder, jobs=1)
        made.extend(make_report(folder))

    made = []
    run(tiny(data=["a"]), tmp_path, jobs=1, then=report)
    assert made[-1] == tmp_path / "report.html"


def test_graphs_of_another_comparison_go(tmp_path):
    run(tiny(data=["a"], agents=[4, 5]), tmp_path, jobs=1)
    (tmp_path / "graphs/mine.graphml").touch()
    run(tiny(data=["a"], agents=[5, 6]), tmp_path, jobs=1)
    left = {path.name for path in (tmp_path / "graphs").iterdir()}
    assert left == {"ring-agents-5.graphml", "ring-agents-6.graphml", "mine.graphml"}


def test_what_a_killed_process_left_half_written_is_removed(tmp_path):
    (tmp_path / ".results.parquet.123.tmp").write_bytes(b"half")
    (tmp_path / ".mine.tmp").touch()
    run(tiny(data=["a"]), tmp_path, jobs=1)
    assert [path.name for path in tmp_path.glob("*.tmp")] == [".mine.tmp"]


GRAPHS = {
    "erdos_renyi": {"p": 0.8},
    "small_world": {"k": 2, "rewire": 0.2},
    "scale_free": {"m": 2},
    "grid": {"rows": 2, "columns": 3},
    "geometric": {"radius": 0.9},
}


def test_every_kind_of_graph(tmp_path):
    """Also one whose agents have what GraphML cannot hold."""
    kinds = tuple(
        Net(kind, kind, 0 if kind == "grid" else 6, GRAPHS.get(kind, {}))
        for kind in graphs.GENERATORS
    )
    placed = nx.random_geometric_graph(6, 0.9, seed=1)
    model = Model("m", "RVFL", settings={"n_hidden": 5})
    results = run_checked(
        Comparison((Data("iris"),), (model,), (*kinds, Net("placed", fixed=placed))),
        tmp_path,
        jobs=1,
    )
    assert {row["network"]: row["status"] for row in results.rows} == dict.fromkeys(
        [*graphs.GENERATORS, "placed"], "done"
    )
    drawn = {
        each["network"]: nx.read_graphml(tmp_path / each["file"])
        for each in results.facts["graphs"]
    }
    assert {len(graph) for graph in drawn.values()} == {6}
    assert drawn["placed"].size() == placed.size()


def test_rows_of_an_earlier_comparison_are_not_its_results(tmp_path):
    def broken(progress):
        raise RuntimeError

    run(tiny(data=["a"]), tmp_path, jobs=1)
    make_report(tmp_path)
    with pytest.raises(RuntimeError):
        run(tiny(data=["b"]), tmp_path, jobs=1, watch=broken)
    assert not (tmp_path / "report.html").exists()
    with pytest.raises(
        InputError, match=r"has no results.parquet, because none of its runs has ended"
    ):
        Results.read(tmp_path)


def test_rows_of_other_versions_are_kept_and_named(tmp_path, caplog, monkeypatch):
    run(tiny(data=["a"]), tmp_path, jobs=1)
    assert caplog.text == ""
    made = json.loads(version_check.versions())
    older = json.dumps({**made, "peerlearn": "0.0.1", "scipy": "0.1", "platform": "other"})
    monkeypatch.setattr(version_check, "versions", lambda: older)
    results = run(tiny(data=["a"]), tmp_path, jobs=1)
    told = (
        f"{len(results.rows)} rows were made with peerlearn {made['peerlearn']}, scipy "
        f"{made['scipy']}: delete "
    )
    assert caplog.messages == [f"{told}{tmp_path / 'runs'}/ to run them again"]


def test_rows_of_other_code_are_kept_and_named(tmp_path, caplog, monkeypatch):
    run(tiny(data=["a"]), tmp_path, jobs=1)
    made = json.loads(version_check.versions())
    changed = json.dumps({**made, "code": "changed", "processor": "other", "cores": "1"})
    monkeypatch.setattr(version_check, "versions", lambda: changed)
    results = run(tiny(data=["a"]), tmp_path, jobs=1)
    told = f"{len(results.rows)} rows were made with other code of peerlearn {made['peerlearn']}"
    assert caplog.messages == [f"{told}: delete {tmp_path / 'runs'}/ to run them again"]


def test_other_settings_are_other_runs(tmp_path):
    run(tiny(data=["a"]), tmp_path, jobs=1)
    told, watch = watched()
    run(tiny(data=["a"], seed=1), tmp_path, jobs=1, watch=watch)
    assert told["kept"] == 0


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("fails", "ValueError: the matrix is singular"),
        ("no memory", "MemoryError"),
        ("exits", "SystemExit: 3"),
    ],
)
def test_a_run_that_fails_is_a_row_and_is_tried_again(tmp_path, model, said):
    healed = tmp_path / "healed"
    comparison, (told, watch) = tiny(model, healed=str(healed)), watched()
    results = run(comparison, tmp_path / "results", jobs=1, watch=watch)
    failed = results.where({"status": "failed"}).rows
    assert {(row["model"], row["fold"]) for row in failed} == {(model, 1)}
    assert len(failed) == told["failed"] == 8
    for row in failed:
        assert row["failure"] == said
        assert row["traceback"].startswith("Traceback")
        assert "lab_tiny.py" in row["traceback"]
        assert row["draw"] is None
        assert row["seconds"] is None
    assert all(row["status"] == "done" for row in results.rows if row not in failed)
    healed.touch()
    again = run(comparison, tmp_path / "results", jobs=1, watch=watch)
    assert told == {"kept": len(results.rows) - 8, "done": 8, "failed": 0}
    assert {row["status"] for row in again.rows} == {"done"}
    assert {row["status"] for row in Store(tmp_path / "results/runs").read().values()} == {"done"}


def test_what_is_not_applicable_is_a_row_and_is_not_run(tmp_path):
    results = run(tiny("refuses"), tmp_path, jobs=1)
    refused = results.where({"model": "refuses"}).rows
    assert {(row["status"], row["failure"], row["traceback"]) for row in refused} == {
        ("not applicable", "it has no hands", "")
    }
    told, watch = watched()
    run(tiny("refuses"), tmp_path, jobs=1, watch=watch)
    assert told["done"] == 0


def test_warnings_are_kept_with_their_run(tmp_path):
    results = run(tiny("warns"), tmp_path, jobs=1)
    for row in results.rows:
        warned = row["model"] == "warns" and row["fold"] == 1
        assert row["warnings"] == ("NotConverged: 3 iterations were too few" if warned else "")


def test_one_thread_and_a_generator_of_its_own(undisturbed):
    """Which loky's processes have anyway, so it is seen where there is one job."""
    assert {row["threads"] for row in undisturbed.rows} == {1}
    for row, trial in zip(undisturbed.rows, tiny().trials(), strict=True):
        assert row["common"] == np.random.RandomState(trial.seed("model")).random()


def test_the_common_generator_is_left_as_it_was(tmp_path):
    common = check_random_state(None)
    before = common.get_state()
    run(tiny(data=["a"], folds=1), tmp_path, jobs=1)
    assert np.array_equal(common.get_state()[1], before[1])


def test_a_full_disk_ends_in_a_sentence_and_the_rest_comes_later(
    undisturbed, tmp_path, monkeypatch
):
    written = []

    def full(path, *options, **more):
        written.append(path)
        if len(written) > 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return open(path, *options, **more)

    with monkeypatch.context() as patch:
        patch.setattr(files, "open", full, raising=False)
        with pytest.raises(
            InputError, match=r"cannot be written \(No space left on device\): make room or name"
        ):
            run(tiny(), tmp_path, jobs=1)
    assert 0 < rows_on_disk(tmp_path) < 20
    assert table(run(tiny(), tmp_path, jobs=1)) == table(undisturbed)


def test_one_run_at_a_time_in_a_folder(tmp_path):
    with (
        lock_folder(tmp_path, "a comparison"),
        pytest.raises(InputError, match=r"a comparison runs in .* already, as process"),
    ):
        run(tiny(), tmp_path, jobs=1)


def test_stopped_by_ctrl_c_what_is_done_can_be_shown(tmp_path):
    def stop(progress):
        if progress.done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tiny(), tmp_path, jobs=1, watch=stop)
    partly = Results.read(tmp_path)
    assert (len(partly.rows), partly.facts["runs"]) == (4, 60)


@pytest.mark.parametrize(
    ("comparison", "jobs", "said"),
    [
        (tiny(), 0, "there cannot be 0 jobs: choose 1 or more"),
        (
            replace(tiny(), models=(Model("m", where="centralised", estimator=(n for n in "ab")),)),
            2,
            "this comparison cannot be sent to other processes",
        ),
    ],
)
def test_what_cannot_be_run(tmp_path, comparison, jobs, said):
    with pytest.raises(InputError, match=said):
        run(comparison, tmp_path / "results", jobs=jobs)


def test_an_output_that_is_a_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file, but results need a folder"):
        run(tiny(), tmp_path / "file")


def test_the_time_that_is_left():
    """Two models: runs of one take 1 and 3 seconds, those of the other are not known, so as long as
    all usually do.
    """
    trials = list(tiny("m", data=["a"], agents=[4], folds=3, repetitions=1).trials())
    progress = Progress(trials, jobs=2, left=dict(enumerate(trials)))
    assert progress.seconds_left() is None
    for number, seconds in ((0, 1.0), (2, 3.0)):
        progress.finish(number, {"total_seconds": seconds, "status": "done"})
    assert progress.seconds_left() == pytest.approx((2 + 3 * 2) / 2)
    progress.finish(1, {"total_seconds": 6.0, "status": "failed"})
    assert progress.seconds_left() == pytest.approx((2 + 2 * 6) / 2)
    assert (progress.done, progress.failed, len(progress.left)) == (3, 1, 3)
    assert progress.now() == ["a, m, ring, agents 4, fold 2 of 3", "a, one place, fold 3 of 3"]
