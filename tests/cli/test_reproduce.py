"""The command reproduce, on a folder of small files: the list, one, all, what is missing, and the
page of results.
"""

from __future__ import annotations

import csv
import signal
import tomllib
from pathlib import Path
from urllib.error import URLError

import pytest
from click.testing import CliRunner
from sklearn import datasets

from peerlearn.cli import main
from peerlearn.data import fetching
from peerlearn.lab.description import data_facts as facts
from peerlearn.lab.report.build import Report, report_of
from peerlearn.lab.results.results import Results
from peerlearn.lab.thesis import files as thesis
from peerlearn.lab.thesis import reproducing
from peerlearn.lab.thesis.page import main as write_page
from peerlearn.lab.thesis.page import seconds_of
from tests.support.pages import ROOT

TOP = """
title = "{title}"
about = "Figure 4.2, in small."
seed = 1
folds = 2
repetitions = 2
metrics = ["error"]
"""
REST = """
[[models]]
name = "C-RVFL"
kind = "RVFL"
where = "centralised"
n_hidden = 20
[[models]]
name = "L-RVFL"
kind = "RVFL"
solver = "local"
n_hidden = 20
[[networks]]
name = "ring"
graph = "ring"
agents = 5
[[expect]]
source = "figure 4.2a"
metric = "error"
where = { data = "G50C", model = "C-RVFL" }
value = 0.2
spread = 0.2
[[expect]]
source = "table 4.9"
metric = "error"
where = { data = "G50C", model = "C-RVFL" }
value = -1.0
spread = 0.1
reason = "no error is below zero"
[[expect]]
source = "figure 4.2b"
metric = "error"
where = { data = "G50C", model = "L-RVFL", agents = 5 }
relation = "above"
to = { data = "G50C", model = "C-RVFL" }
[quick]
repetitions = 1
"""
G50C = '[[data]]\nname = "G50C"\nsource = "g50c"\n'
GARAGEBAND = '[[data]]\nname = "Garageband"\n'
SYLVA = '[[data]]\nname = "Sylva"\n'


@pytest.fixture(autouse=True)
def experiments(tmp_path, monkeypatch):
    """A checkout with reproductions of its own, no data at hand, and no way to OpenML; reports take
    their time.
    """

    def fetch_openml(**asked):
        raise URLError("no way")

    monkeypatch.setattr(datasets, "fetch_openml", fetch_openml)
    monkeypatch.setattr(fetching, "_given_up", [])
    monkeypatch.setattr(
        reproducing, "report_of", lambda folder: Report([], ["Did not converge: 3 runs of X"])
    )
    monkeypatch.delenv("PEERLEARN_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "nothing fetched"))
    facts._load_facts.cache_clear()
    facts._load.cache_clear()
    folder = tmp_path / "checkout" / "experiments"
    folder.mkdir(parents=True)
    (folder.parent / "pyproject.toml").touch()
    monkeypatch.setattr(thesis, "CHECKOUT", folder)
    monkeypatch.chdir(tmp_path)
    _write(folder, "ch4-agents", "Error against agents", G50C)
    _write(folder, "ch10-1", "Filters", G50C)
    return folder


def _write(folder, name, title, data):
    (folder / f"{name}.toml").write_text(TOP.format(title=title) + data + REST)


def run(*arguments):
    return CliRunner(env={"COLUMNS": "300"}).invoke(main, ["reproduce", *arguments])


def words(text):
    return " ".join(text.split())


def test_the_list_has_names_places_data_and_times(experiments):
    _write(experiments, "ch6-table", "Columns", G50C + GARAGEBAND + SYLVA)
    (experiments / "seconds.csv").write_text(
        "name,size,seconds\nch4-agents,full,150\nch4-agents,quick,12\n"
    )
    done = run()
    assert done.exit_code == 0, done.output
    lines = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("ch")]
    assert lines == ["ch4-agents", "ch6-table", "ch10-1"]
    said = words(done.stdout)
    assert "150" not in said
    for part in ("table 4.9", "figure 4.2", "Error against agents", "generated", "2 min", "12 s"):
        assert part in said
    assert "peerlearn reproduce NAME --quick" in said
    (known,) = [each for each in thesis.reproductions() if each.name == "ch6-table"]
    assert (known.needs, known.absent, known.fetched) == (
        ("Garageband", "Sylva"),
        ("Garageband", "Sylva"),
        ("Sylva",),
    )
    assert (known.expected, known.shows) == (3, ("figure 4.2", "table 4.9"))


def test_the_list_tells_data_that_are_missing_from_those_to_be_fetched(experiments):
    _write(
        experiments,
        "ch6-table",
        "Columns",
        GARAGEBAND + 'instead = "digits"\n' + SYLVA + '[[data]]\nname = "BCI"\n',
    )
    said = words(run().stdout)
    assert "Fetched Sylva: from OpenML" in said
    assert "Replaced Garageband: not here" in said
    assert "Missing BCI: what needs them is left out" in said


def test_an_unknown_name_gets_the_nearest():
    for wrong, nearest in {"ch4-agent": "ch4-agents", "ch10-l": "ch10-1"}.items():
        done = run(wrong)
        assert done.exit_code == 2
        assert (
            f"there is no reproduction {wrong!r}, the nearest is {nearest}: peerlearn "
            "reproduce lists them"
        ) in done.stderr
    assert not Path("peerlearn-reproduction").exists()


def test_one_is_run_reported_and_judged(monkeypatch):
    monkeypatch.setattr(reproducing, "report_of", report_of)
    done = run("ch4-agents", "--quick", "--jobs", "1")
    assert done.exit_code == 0, done.output
    said = words(done.stdout)
    assert "ch4-agents: Error against agents" in said
    assert "0.2 ± 0.2" in said
    assert "above L-RVFL" not in said
    assert "above C-RVFL" in said
    assert "Explained table 4.9, error: G50C, C-RVFL, -1 ± 0.1: no error is below zero" in said
    assert "Verdicts 2 within, 1 explained, size quick" in said
    folder = Path("peerlearn-reproduction-quick/ch4-agents")
    assert (folder / "report.html").exists()
    results = Results.read(folder)
    assert results.layout.size == "quick"
    assert len(results.rows) == 4
    again = run("ch4-agents", "--quick", "--jobs", "1")
    assert again.exit_code == 0
    assert [row["total_seconds"] for row in Results.read(folder).rows] == [
        row["total_seconds"] for row in results.rows
    ]


def test_without_quick_it_is_the_full_size_in_a_folder_that_can_be_named():
    assert run("ch10-1", "--jobs", "1", "--output", "here").exit_code == 0
    results = Results.read("here/ch10-1")
    assert (results.layout.size, len(results.rows)) == ("full", 8)


def test_all_are_run_and_end_with_a_table_of_verdicts():
    done = run("all", "--quick", "--jobs", "1", "--output", "here")
    assert done.exit_code == 0, done.output
    said = words(done.stdout)
    assert "ch4-agents (1 of 2): Error against agents" in said
    assert "ch10-1 (2 of 2): Filters" in said
    assert "-1 ± 0.1" in said  # explained
    assert "0.2 ± 0.2" not in said  # within, which is shown of one alone
    table = done.stdout[done.stdout.index("The thesis and ours") :].splitlines()
    lines = {line.split()[0]: line.split()[1:] for line in table if line.startswith(("ch", "all"))}
    assert lines["ch4-agents"][:5] == ["explained", "2", "-", "1", "-"]
    assert lines["all"][:4] == ["4", "0", "2", "0"]
    assert "Reports here/NAME/report.html" in said
    with Path("here/summary.csv").open(newline="") as file:
        (first, second) = csv.DictReader(file)
    assert (first["name"], first["size"], first["within"], first["explained"]) == (
        "ch4-agents",
        "quick",
        "2",
        "1",
    )
    assert (second["folder"], second["not_run"], second["note"]) == ("ch10-1", "0", "")
    assert "| ch4-agents | 2 | 0 | 1 | 0 |" in Path("here/summary.md").read_text()


def test_missing_data_are_named_and_the_rest_runs(experiments):
    _write(experiments, "ch6-table", "Columns", G50C + GARAGEBAND + SYLVA)
    done = run("ch6-table", "--quick", "--jobs", "1")
    assert done.exit_code == 0, done.output
    said = words(done.stdout)
    assert "Fetching Sylva from OpenML" in said
    assert (
        "Data Sylva: data set Sylva cannot be fetched, because OpenML is out of reach (no "
        "way): it was offered at"
    ) in said
    assert "Data Garageband: data set Garageband is read from a folder" in said
    assert "it was offered by Mierswa and Morik" in said
    assert "2 within, 1 explained" in said
    assert "Note Did not converge: 3 runs of X" in said


def test_one_that_fails_does_not_stop_the_others(experiments, monkeypatch):
    _write(experiments, "ch5-table", "All missing", GARAGEBAND)
    _write(experiments, "ch6-table", "Broken", G50C + "stray = 1\n")
    _write(experiments, "ch7-table", "Unforeseen", G50C)
    _write(experiments, "ch8-table", "Failing", G50C)
    whole = reproducing.make_runs

    def breaks(comparison, output, **more):
        if comparison.layout.title == "Unforeseen":
            raise ZeroDivisionError("nobody thought of this")
        if comparison.layout.title == "Failing":
            monkeypatch.setattr("peerlearn.models.rvfl.RVFLClassifier.fit", _fails)
        return whole(comparison, output, **more)

    monkeypatch.setattr(reproducing, "make_runs", breaks)
    done = run("all", "--quick", "--jobs", "1", "--output", "here")
    assert done.exit_code == 1
    with Path("here/summary.csv").open(newline="") as file:
        lines = {line["name"]: line for line in csv.DictReader(file)}
    assert list(lines) == [
        "ch4-agents",
        "ch5-table",
        "ch6-table",
        "ch7-table",
        "ch8-table",
        "ch10-1",
    ]
    assert {name: line["not_run"] for name, line in lines.items() if line["not_run"] != "0"} == {
        "ch5-table": "3",
        "ch6-table": "3",
        "ch7-table": "3",
        "ch8-table": "3",
        "ch10-1": "3",
    }
    assert "it was offered by Mierswa and Morik" in lines["ch5-table"]["note"]
    assert "stray" in lines["ch6-table"]["note"]
    assert "ZeroDivisionError: nobody thought of this" in lines["ch7-table"]["note"]
    assert "ZeroDivisionError" in Path("here/ch7-table/error.txt").read_text()
    assert "some runs failed" in lines["ch8-table"]["note"]
    assert "it fell over" in done.stdout


def _fails(*_):
    raise RuntimeError("it fell over")


def test_all_without_any_data_is_no_failure(experiments):
    for path in experiments.glob("*.toml"):
        path.unlink()
    _write(experiments, "ch5-table", "All missing", GARAGEBAND)
    assert run("all", "--quick", "--output", "here").exit_code == 0
    alone = run("ch5-table", "--quick", "--output", "here")
    assert alone.exit_code == 2
    assert "it was offered by Mierswa and Morik" in alone.stderr


def test_after_ctrl_c_the_same_command_goes_on(monkeypatch):
    whole, asked = reproducing.make_runs, []

    def stopped(comparison, output, **more):
        asked.append(comparison.layout.title)
        if len(asked) == 2:
            signal.raise_signal(signal.SIGINT)
        return whole(comparison, output, **more)

    monkeypatch.setattr(reproducing, "make_runs", stopped)
    done = run("all", "--quick", "--jobs", "1", "--output", "here")
    assert done.exit_code == 130
    assert "the same command goes on" in done.stderr
    before = [row["total_seconds"] for row in Results.read("here/ch4-agents").rows]
    assert run("all", "--quick", "--jobs", "1", "--output", "here").exit_code == 0
    assert asked == ["Error against agents", "Filters"] * 2
    assert [row["total_seconds"] for row in Results.read("here/ch4-agents").rows] == before


def test_the_page_has_every_number_with_its_command(tmp_path):
    run("all", "--jobs", "1", "--output", "here")
    note = tmp_path / "seconds.csv"
    note.write_text("name,size,seconds\nch4-agents,full,999\nch4-agents,quick,7\n")
    done = CliRunner().invoke(write_page, ["here", "--seconds", str(note)])
    assert done.exit_code == 0, done.output
    page = done.stdout
    assert page.index("## Chapter 4\n") < page.index("## Chapter 10\n")
    assert "### ch4-agents: Error against agents\n" in page
    assert "Size full: 2 folds, 2 repetitions." in page
    lines = [line for line in page.splitlines() if line.startswith("| figure 4.2a")]
    assert len(lines) == 2
    cells = [cell.strip() for cell in lines[0].split("|")[1:-1]]
    mean, runs = Results.read("here/ch4-agents").where({"model": "C-RVFL"}).mean("error"), "4"
    assert cells[:3] == ["figure 4.2a", "error: G50C, C-RVFL", "0.2 ± 0.2"]
    assert cells[3].startswith(f"{mean:.3g} ± ")
    assert cells[4:] == [runs, "within", "", "`peerlearn reproduce ch4-agents`"]
    assert "| explained | no error is below zero | `peerlearn reproduce ch10-1` |" in page
    noted = note.read_text().splitlines()
    assert noted[0] == "name,size,seconds"
    assert [line.rsplit(",", 1)[0] for line in noted[1:]] == [
        "ch4-agents,full",
        "ch4-agents,quick",
        "ch10-1,full",
    ]
    assert "ch4-agents,quick,7" in noted
    assert "ch4-agents,full,999" not in noted
    results = Results.read("here/ch4-agents")
    assert seconds_of(results) == pytest.approx(
        sum(row["total_seconds"] for row in results.rows) / 2
    )


def test_a_page_of_nothing_is_a_sentence():
    done = CliRunner().invoke(write_page, ["nowhere"])
    assert done.exit_code == 1
    assert (
        "nowhere holds no reproductions: make them with peerlearn reproduce all --output nowhere"
        in done.stderr
    )


def test_an_installed_package_has_them_too(experiments, monkeypatch, tmp_path):
    """The wheel carries experiments/ to where it is looked for."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]["wheel"]
    packaged = Path(wheel["force-include"]["experiments"])
    assert Path(thesis.__file__).parents[3] / packaged == thesis.PACKAGED
    monkeypatch.setattr(thesis, "CHECKOUT", tmp_path / "site" / "experiments")
    monkeypatch.setattr(thesis, "PACKAGED", experiments)
    assert [each.name for each in thesis.reproductions()] == ["ch4-agents", "ch10-1"]
    monkeypatch.setattr(thesis, "PACKAGED", tmp_path / "nothing")
    done = run()
    assert done.exit_code == 2
    assert "there are no reproductions in" in done.stderr


def test_a_number_of_jobs_that_cannot_be_is_refused_before_anything():
    done = run("all", "--jobs", "0")
    assert done.exit_code == 2
    assert "there cannot be 0 jobs: choose 1 or more" in done.stderr
    assert not done.stdout
