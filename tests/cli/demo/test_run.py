"""The demo: what it finds, the files it leaves, and that its figure needs nothing but
these files.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil

import matplotlib
import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console
from sklearn.model_selection import train_test_split

from peerlearn import ADMM, Consensus, data, graphs
from peerlearn.cli import main
from peerlearn.cli.demo import run as demos
from peerlearn.cli.demo.figure import draw_demo
from peerlearn.cli.demo.run import METHODS, run_demo
from peerlearn.cli.demo.table import show_results
from peerlearn.errors import InputError
from peerlearn.network import SimulatedNetwork
from peerlearn.system import files

TABLES = ["results.csv", "agents.csv", "rounds.csv"]
SOURCES = [*TABLES, "graph.graphml", "settings.json"]
FIGURES = [f"{name}.{kind}" for name in ("demo", "costs", "rounds") for kind in ("png", "svg")]
FILES = sorted([*SOURCES, *FIGURES])


@pytest.fixture(scope="module", autouse=True)
def narrow():
    """A smaller hidden layer: the same demo in half the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            demos,
            "PROBLEMS",
            {name: {**given, "n_hidden": 150} for name, given in demos.PROBLEMS.items()},
        )
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo") / "new" / "folder"


@pytest.fixture(scope="module")
def demo(folder):
    return run_demo(folder, agents=5, seed=3)


@pytest.fixture
def small(monkeypatch):
    """One data set and two methods, for tests that are not about the numbers."""
    settings = {"n_hidden": 20, "alpha": 1.0, "activation": "sigmoid"}
    monkeypatch.setattr(demos, "PROBLEMS", {"g50c": settings})
    for method in ("CONS", "ADMM"):
        monkeypatch.setitem(METHODS, method, Consensus())


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def of(demo, name):
    return {result.method: result for result in demo.results if result.data == name}


@pytest.mark.parametrize("name", ["g50c", "digits"])
def test_cooperating_agents_reach_the_centralised_answer(demo, name):
    results = of(demo, name)
    assert list(results) == list(METHODS)
    cg, admm, centralised = results["conjugate gradient"], results["ADMM"], results["centralised"]
    auto = results["auto"]
    assert auto.distance < 1e-5
    assert auto.test_error == pytest.approx(centralised.test_error, abs=1e-12)
    assert 0 < auto.bytes_sent < admm.bytes_sent
    assert auto.solver in ("Gram", "ConjugateGradient")
    assert cg.distance < 1e-5
    assert admm.distance < 2e-3
    assert cg.test_error == pytest.approx(centralised.test_error, abs=1e-12)
    assert cg.test_error < 0.1
    assert results["alone"].test_error > cg.test_error
    assert results["alone"].distance > results["CONS"].distance > admm.distance
    assert centralised.rounds == centralised.bytes_sent == 0
    assert 0 < results["CONS"].bytes_sent < cg.bytes_sent < admm.bytes_sent
    assert all(results[method].rounds > 0 for method in METHODS if method != "centralised")
    assert all(result.converged and result.seconds > 0 for result in results.values())


def test_all_files_are_there_and_nothing_else(demo, folder):
    assert sorted(path.name for path in folder.iterdir()) == FILES
    settings = json.loads((folder / "settings.json").read_text())
    assert (settings["seed"], settings["agents"]) == (3, 5)
    assert settings["versions"]["numpy"] == np.__version__
    assert graphs.from_file(folder / "graph.graphml").edges == demo.graph.edges


def test_tables_say_what_the_record_says(demo, folder):
    for row, result in zip(read(folder / "results.csv"), demo.results, strict=True):
        assert (row["data"], row["method"], row["converged"]) == (
            result.data,
            result.method,
            str(result.converged),
        )
        assert (int(row["rounds"]), int(row["bytes_sent"])) == (result.rounds, result.bytes_sent)
        assert float(row["test_error"]) == pytest.approx(result.test_error, rel=1e-4)
        assert float(row["distance"]) == pytest.approx(result.distance, rel=1e-4)
    for name in ("g50c", "digits"):
        agents = [row for row in read(folder / "agents.csv") if row["data"] == name]
        assert [int(row["agent"]) for row in agents] == list(range(5))
        assert [int(row["neighbors"]) for row in agents] == [
            degree for _, degree in sorted(demo.graph.degree)
        ]
        for key, method in (("error_alone", "alone"), ("error_together", "auto")):
            mean = np.mean([float(row[key]) for row in agents])
            assert mean == pytest.approx(of(demo, name)[method].test_error, rel=1e-4)


def test_agents_agree_round_by_round(demo):
    lines = {
        method: [
            each.disagreement
            for each in demo.rounds
            if (each.data, each.method) == ("digits", method)
        ]
        for method in ("plain", "chebyshev", "tree")
    }
    assert [line[0] for line in lines.values()] == pytest.approx([1, 1, 1])
    assert np.all(np.diff(lines["plain"]) < 0)
    assert lines["plain"][-1] <= demos.AGREED < lines["plain"][-2]
    assert len(lines["chebyshev"]) < len(lines["plain"])
    assert len(lines["tree"]) == 2 * SimulatedNetwork(demo.graph).tree.height + 1
    assert lines["tree"][-1] < 1e-12 < lines["tree"][-2]


def test_the_command_leaves_the_same_results_as_the_function(demo, folder, tmp_path):
    done = CliRunner().invoke(
        main, ["demo", "--agents", "5", "--seed", "3", "--output", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    for name in SOURCES:
        if name == "results.csv":
            without_time = [
                [{**row, "seconds": ""} for row in read(place / name)]
                for place in (folder, tmp_path)
            ]
            assert without_time[0] == without_time[1]
        else:
            assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name
    assert "\x1b" not in done.output  # no colours in a pipe
    assert str(tmp_path) in done.stdout
    tables = [line for line in done.stdout.splitlines() if str(tmp_path) not in line]
    assert max(map(len, tables)) <= 80
    for method in METHODS:
        assert sum(line.startswith(f"{method} ") and "%" in line for line in tables) == 2


def test_the_figure_is_drawn_again_from_the_files_alone(demo, folder, tmp_path):
    for name in SOURCES[:-1]:
        shutil.copy(folder / name, tmp_path)
    before = matplotlib.rcParams.copy()
    drawn = draw_demo(tmp_path)
    assert matplotlib.rcParams.copy() == before
    assert drawn == tuple(tmp_path / name for name in FIGURES)
    for path in drawn:
        assert path.read_bytes() == (folder / path.name).read_bytes()
    assert drawn[0].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("figure", "point"),
    [
        ("demo", r"5 agents learn as one: \d+\.\d % of digits wrong alone, \d\.\d % together"),
        ("costs", r"auto finds the centralised answer with over \d+ times fewer bytes than ADMM"),
        ("rounds", r"Agreeing takes \d+ rounds by a tree, \d+ by plain mixing"),
    ],
)
def test_a_figure_has_its_point_as_title(demo, folder, figure, point):
    assert re.search(point, (folder / f"{figure}.svg").read_text())


@pytest.mark.parametrize("name", ["g50c", "digits"])
def test_what_the_rows_themselves_take(demo, folder, name):
    """As float64: inputs and targets of all training rows, counted by hand; said under
    the table.
    """
    rows = data.load(name, seed=3)
    trained_on = train_test_split(rows.X, test_size=0.25, random_state=0)[0]
    taken = 8 * len(trained_on) * (rows.X.shape[1] + 1)
    agents = [row for row in read(folder / "agents.csv") if row["data"] == name]
    assert sum(int(row["row_bytes"]) for row in agents) == taken
    console = Console(file=io.StringIO(), width=80)
    show_results(console, demo, name)
    lines = console.file.getvalue().splitlines()
    last = max(at for at, line in enumerate(lines) if line.startswith("ADMM "))
    assert lines[last + 1] == f"Sending all rows to one place would take {taken / 1e6:.2g} MB."


@pytest.mark.parametrize("broken", [None, "", "data,method\n", "data,agent\ndigits,0\n"])
def test_a_folder_without_results_gives_a_sentence(demo, folder, tmp_path, broken):
    for name in SOURCES:
        shutil.copy(folder / name, tmp_path)
    (tmp_path / "agents.csv").unlink()
    if broken is not None:
        (tmp_path / "agents.csv").write_text(broken)
    with pytest.raises(
        InputError, match=r"does not hold the files of a demo .*: make them with peerlearn demo"
    ):
        draw_demo(tmp_path)


def test_without_an_output_nothing_is_written(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    heard = []
    demo = run_demo(agents=4, watch=lambda *step: heard.append(step))
    assert len(demo.results) == len(METHODS)
    assert list(tmp_path.iterdir()) == []
    assert [done for _, done, _ in heard] == list(range(len(METHODS) + 1))
    assert {steps for _, _, steps in heard} == {len(METHODS) + 2}
    assert heard[0][0] == "g50c: centralised"


def test_other_files_of_the_folder_stay(small, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "results.csv").write_text("old")
    demos.save(run_demo(agents=4), tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert len(read(tmp_path / "results.csv")) == len(METHODS)


@pytest.mark.filterwarnings("ignore::peerlearn.errors.NotConverged")
def test_a_method_that_did_not_converge_is_said_to(small, tmp_path, monkeypatch):
    monkeypatch.setitem(METHODS, "ADMM", ADMM(max_iterations=1))
    done = CliRunner().invoke(main, ["demo", "--agents", "4", "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert (
        next(line for line in done.stdout.splitlines() if line.startswith("ADMM"))
        .rstrip()
        .endswith("NO")
    )


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    files.write(tmp_path / "table.csv", "old")

    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(
        InputError, match=r"table.csv cannot be written \(No space left on device\): make room"
    ):
        files.write(tmp_path / "table.csv", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    assert (tmp_path / "table.csv").read_text() == "old"


def test_graphs_of_many_agents_are_drawn_without_numbers(demo, tmp_path):
    graph = graphs.erdos_renyi(31, 0.2)
    agents = [
        demos.AgentErrors(name, agent, 1, 30, 99, 0.2, 0.01)
        for name in ("g50c", "digits")
        for agent in graph
    ]
    demos.save(demos.Demo(demo.settings, graph, demo.results, agents, demo.rounds), tmp_path)
    assert (tmp_path / "demo.png").stat().st_size > 50_000
