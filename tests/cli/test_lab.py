"""peerlearn run and peerlearn report: what is shown and left, exit codes, Ctrl-C, and progress
without a terminal.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner
from rich.console import Console

from peerlearn.cli import main
from peerlearn.lab.results.results import Results
from peerlearn.lab.runs import progress_view as watching
from peerlearn.lab.runs.progress import Progress
from peerlearn.system.folder_lock import lock_folder
from peerlearn.system.number_words import duration
from tests.support.lab_tiny import kept, tiny, wait_for
from tests.support.pages import ROOT
from tests.support.waiting import PATIENCE

FILE = """
title = "Small"
folds = 3
[[data]]
name = "iris"
[[models]]
name = "one place"
kind = "RVFL"
n_hidden = 10
where = "centralised"
[[models]]
name = "together"
kind = "RVFL"
n_hidden = 10
[[models]]
name = "a line"
kind = "sklearn.linear_model.LinearRegression"
[[networks]]
name = "ring"
graph = "ring"
agents = [3, 5]
[quick]
folds = 2
"""
BROKEN = """
[[models]]
name = "broken"
kind = "sklearn.neighbors.KNeighborsClassifier"
n_neighbors = 1000
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(FILE)
    return tmp_path


def command(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)])


def test_a_run_shows_its_tables_and_leaves_a_report(folder):
    done = command("run", "small.toml", "--jobs", 1)
    assert (done.exit_code, done.stderr) == (0, "12 runs, 1 at a time\n")
    assert "12 runs: 9 done, 3 not applicable" in done.stdout
    for word in ("iris", "one place", "together", "n/a", "peerlearn-small", "report.html"):
        assert word in done.stdout
    results = folder / "peerlearn-small"
    assert "Small" in (results / "report.html").read_text()
    assert {path.name for path in results.iterdir()} == {
        *("comparison.json", "results.parquet", "report.html"),
        *(".lock", ".report", "runs", "graphs", "tables", "figures"),
    }
    first = Results.read(results)
    for name in ("tables", "figures"):
        shutil.rmtree(results / name)
    for again in (command("run", "small.toml"), command("report", results)):
        assert (again.exit_code, again.stdout.split("Folder")[0]) == (
            0,
            done.stdout.split("Folder")[0],
        )
        assert Results.read(results) == first  # to the second: nothing was run
        assert list((results / "tables").glob("error.*"))


def test_quick_is_what_the_file_says(folder):
    assert (
        "8 runs: "
        in command("run", "small.toml", "--quick", "--jobs", 1, "--output", "there").stdout
    )
    assert (folder / "there/report.html").exists()


def test_runs_that_fail_are_named_at_the_end(folder):
    (folder / "small.toml").write_text(FILE.replace("[[networks]]", f"{BROKEN}[[networks]]"))
    done = command("run", "small.toml", "--jobs", 1)
    assert done.exit_code == 1
    assert "15 runs: 9 done, 3 not applicable, 3 failed" in done.stdout
    told = done.stdout[
        done.stdout.index("Runs that failed, and are tried again by the same command:") :
    ]
    assert "3 of broken on iris: ValueError: Expected n_neighbors <= n_samples_fit" in told
    assert (folder / "peerlearn-small/report.html").exists()


def test_what_nobody_should_miss_is_said(folder):
    """By the run and by the report: what did not converge, and a figure that was asked for and is
    not drawn.
    """
    lazy = (
        'n_hidden = 10\nsolver = { name = "admm", max_iterations = 2 }\n[[models]]\nname = "a line"'
    )
    figure = '[[figures]]\nname = "error"\nkind = "ranks"\ny = "error"\n[quick]'
    text = FILE.replace('n_hidden = 10\n[[models]]\nname = "a line"', lazy).replace(
        "[quick]", figure
    )
    (folder / "small.toml").write_text(text)
    for done in (command("run", "small.toml", "--jobs", 1), command("report", "peerlearn-small")):
        assert done.exit_code == 0, done.output
        last = done.stdout[done.stdout.index("12 runs: ") :]
        assert "\nDid not converge: 6 runs of together\n" in last
        assert "\nThe figure 'error' is not drawn: " in last


def test_expectations_that_are_not_met_are_said(folder):
    met = (
        '[[expect]]\nsource = "here"\nmetric = "error"\nwhere = { model = "one place" }\nvalue '
        "= 0.5\nspread = 0.5\n"
    )
    (folder / "small.toml").write_text(
        FILE.replace("[quick]", met + met.replace("0.5", "5.0", 1) + "[quick]")
    )
    said = command("run", "small.toml", "--jobs", 1).stdout
    assert "\nExpectations: 1 within, 1 outside\nhere, error: one place is " in said
    assert said.count("expected 5 ± 0.5: outside\n") == 1


def test_a_quick_run_leaves_the_results_of_the_whole_alone(folder):
    command("run", "small.toml", "--jobs", 1)
    before = (folder / "peerlearn-small/report.html").read_bytes()
    assert "8 runs" in command("run", "small.toml", "--quick", "--jobs", 1).stdout
    assert (folder / "peerlearn-small/report.html").read_bytes() == before
    assert (folder / "peerlearn-small-quick/report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "none.toml"), "there is no file none.toml"),
        (("run", "small.toml", "--jobs", 0), "there cannot be 0 jobs: choose 1 or more"),
        (
            ("run", "small.toml", "--output", "small.toml"),
            "small.toml is a file, but results need a folder",
        ),
        (("report", "nowhere"), "nowhere does not hold results, for it has no comparison.json"),
        (
            ("report", "."),
            "does not hold results, for it has no comparison.json: make it with peerlearn run FILE",
        ),
    ],
)
def test_what_cannot_be_used_is_a_sentence(folder, arguments, said):
    done = command(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("peerlearn: ")
    assert said in done.stderr


def test_a_folder_in_use(folder):
    (folder / "there").mkdir()
    with lock_folder(folder / "there", "a comparison"):
        done = command("run", "small.toml", "--output", "there")
    assert done.exit_code == 2
    assert f"as process {os.getpid()}: wait for it, or end it" in done.stderr


def stopped_by(number, folder):
    """Exit code and last words of a long run that gets a signal in the middle."""
    (folder / "small.toml").write_text(FILE.replace("folds = 3", "folds = 3\nrepetitions = 100", 1))
    ctrl_c = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a script in the background ignores it
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "peerlearn",
            "run",
            "small.toml",
            "--jobs",
            "1",
            "--output",
            "there",
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        signal.signal(signal.SIGINT, ctrl_c)
        try:
            wait_for(lambda: kept(folder / "there") >= 5 or process.poll() is not None)
            process.send_signal(number)
            return process.communicate(timeout=PATIENCE)[1], process.returncode
        finally:
            process.kill()


@pytest.mark.processes
def test_stopped_by_ctrl_c_it_says_how_to_go_on_and_does(folder):
    assert stopped_by(signal.SIGINT, folder) == (
        (
            "1,200 runs, 1 at a time\npeerlearn: stopped by Ctrl-C; the same command goes on "
            "where this ended\n"
        ),
        130,
    )
    partly = command("report", "there")
    assert partly.exit_code == 0
    assert "1,200 runs: " in partly.stdout
    assert " not made yet" in partly.stdout
    (folder / "small.toml").write_text(FILE)
    assert (
        "12 runs: 9 done" in command("run", "small.toml", "--jobs", 1, "--output", "there").stdout
    )


@pytest.mark.processes
def test_sigterm_is_another_code(folder):
    assert stopped_by(signal.SIGTERM, folder)[1] == 143


@pytest.fixture
def progress():
    trials = list(tiny().trials())
    found = Progress(trials, jobs=2, left=dict(enumerate(trials)))
    for number in range(3):
        found.finish(number, {"total_seconds": 60.0, "status": "failed" if number else "done"})
    return found


def test_lines_now_and_then_where_there_is_no_terminal(progress, monkeypatch):
    console = Console(file=io.StringIO(), width=40)
    with watching.show_progress(console) as watch:
        watch(progress)
        watch(progress)
        first = "60 runs: 3 are there already, 57 are made now, 2 at a time\n"
        assert console.file.getvalue() == first
        monkeypatch.setattr(watching, "PIPED_EVERY", 0.0)
        watch(progress)
    assert console.file.getvalue() == f"{first}3 of 60 runs, 2 failed, 0 s, about 28 min left\n"


@pytest.mark.parametrize(
    ("kept", "left", "said"),
    [
        (0, 1, "1 run, made now"),
        (0, 1200, "1,200 runs, 2 at a time"),
        (12, 0, "12 runs, there already"),
        (1, 1, "2 runs: 1 is there already, 1 is made now"),
        (26, 38, "64 runs: 26 are there already, 38 are made now, 2 at a time"),
    ],
)
def test_what_is_said_at_the_start(kept, left, said):
    assert (
        watching.describe_start(Progress([], jobs=2, kept=kept, left=dict.fromkeys(range(left))))
        == said
    )


def test_what_runs_now_on_a_terminal(progress):
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    with watching.show_progress(console) as watch:
        watch(progress)
    shown = console.file.getvalue()
    assert "60 runs: 3 are there already, 57 are made now, 2 at a time" in shown
    assert "3 of 60 runs, 2 failed, 0 s, about 28 min left" in shown
    assert "a, n, ring, agents 4, repetition 1 of 2, fold 1 of 3" in shown
    assert "a, n, ring, agents 5, repetition 1 of 2, fold 1 of 3" in shown
    assert "fold 2 of 3" not in shown


def test_durations():
    assert [duration(seconds) for seconds in (0.2, 89, 95, 5300, 5430)] == [
        "0 s",
        "89 s",
        "2 min",
        "88 min",
        "1 h 30 min",
    ]
