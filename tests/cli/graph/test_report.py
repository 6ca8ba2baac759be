"""peerlearn graph: its numbers against direct computation, its files, its figure, and what it
refuses.
"""

from __future__ import annotations

import csv
import inspect
import json
import shutil
import sys
from itertools import islice

import matplotlib.image
import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner

from peerlearn import SimulatedNetwork, average, graphs, weights
from peerlearn.algorithms import iterates
from peerlearn.cli import main
from peerlearn.cli.graph import figure
from peerlearn.cli.graph import report as graph_report
from peerlearn.cli.graph.figure import draw_graph
from peerlearn.cli.graph.kinds import KINDS, MOST, SHOWN, make_graph
from peerlearn.cli.graph.report import describe
from peerlearn.cli.graph.run import run_graph
from peerlearn.errors import GraphError, InputError, MissingExtra, WeightsError
from peerlearn.lab.figures import graph_places

SOURCES = ["disagreement.csv", "graph.graphml", "summary.json", "weightings.csv"]
FILES = sorted([*SOURCES, "graph.png", "graph.svg"])
GRAPHS = {
    "ring": graphs.ring(9),
    "random": graphs.erdos_renyi(12, 0.3, seed=1),
    "star": graphs.star(7),
    "line": graphs.linear(8),
    "complete": graphs.complete(6),
    "two": graphs.ring(2),
}


def run(*arguments):
    return CliRunner().invoke(main, ["graph", *map(str, arguments)])


@pytest.fixture(params=list(GRAPHS))
def graph(request):
    return GRAPHS[request.param]


@pytest.fixture(scope="module")
def results_of_two(tmp_path_factory):
    """Folder with the report of two agents."""
    folder = tmp_path_factory.mktemp("two")
    run_graph(folder, GRAPHS["two"])
    return folder


@pytest.fixture
def no_work(monkeypatch):
    """Fails the test if weights are computed."""
    monkeypatch.setattr(
        graph_report, "describe", lambda *_, **__: pytest.fail("work was done before the check")
    )


@pytest.fixture
def no_cvxpy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_numbers_are_those_of_weights_and_networkx(graph):
    report = describe(graph, accuracy=1e-4)
    assert [each.weights for each in report.weightings] == list(weights.NAMES)
    assert report.skipped == {}
    for each in report.weightings:
        C = weights.named(each.weights, graph)
        assert each.contraction == pytest.approx(weights.contraction(C), abs=1e-12)
        assert each.plain_rounds == weights.rounds_to(C, 1e-4)
        assert each.chebyshev_rounds == weights.rounds_to(C, 1e-4, "chebyshev")
    assert report.diameter == nx.diameter(graph)
    assert report.height == nx.radius(graph)
    assert report.links == graph.number_of_edges()
    degrees = [degree for _, degree in graph.degree]
    assert report.degrees == (min(degrees), pytest.approx(np.mean(degrees)), max(degrees))


@pytest.mark.parametrize("payload", [1, 70])
def test_bytes_are_those_of_the_ledger(graph, payload):
    x = np.random.default_rng(0).standard_normal((len(graph), payload))
    report = describe(graph, payload=payload, accuracy=1e-5)
    network = SimulatedNetwork(graph)
    network.mix(x)
    assert network.ledger.bytes == report.bytes_per_round
    found = next(each for each in report.weightings if each.weights == "metropolis")
    for method, rounds, megabytes in (
        ("plain", found.plain_rounds, found.plain_megabytes),
        ("chebyshev", found.chebyshev_rounds, found.chebyshev_megabytes),
        ("tree", report.tree_rounds, report.tree_megabytes),
    ):
        mark = network.ledger.mark()
        average(network, x, tolerance=1e-5, method=method)
        sent = network.ledger.since(mark)
        assert (sent.rounds, sent.megabytes) == (rounds, pytest.approx(megabytes)), method


def test_disagreement_is_what_agents_have_that_start_with_nothing_in_common(graph):
    report, x = describe(graph), np.eye(len(graph))
    for name in weights.NAMES:
        network = SimulatedNetwork(graph, name)
        for method in ("plain", "chebyshev"):
            curve = {
                point.round: point.disagreement
                for point in report.disagreement
                if (point.weights, point.method) == (name, method)
            }
            simulated = [x, *islice(iterates(network, x, method), max(curve))]
            apart = [np.linalg.norm(now - x.mean(axis=0)) for now in simulated]
            for n, disagreement in curve.items():
                assert disagreement == pytest.approx(apart[n] / apart[0], rel=1e-6, abs=1e-12)
            assert curve[0] == 1
            assert disagreement <= report.accuracy


def test_a_long_line_is_described_to_the_end():
    """A hundred thousand rounds are not walked one by one, and the contraction has the digits that
    matter.
    """
    report = describe(graphs.linear(150))
    metropolis = report.weightings[1]
    assert metropolis.plain_rounds > 90_000
    assert len(report.disagreement) < 2 * 3 * (graph_report.POINTS + 1)
    assert report.disagreement[-1].disagreement <= 1e-6


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_works(kind, tmp_path):
    values = {
        "n": 9,
        "p": 0.5,
        "k": 1,
        "rewire": 0.2,
        "m": 1,
        "radius": 0.9,
        "rows": 2,
        "columns": 3,
        "seed": 4,
    }
    wanted = {name: values[name] for name in KINDS[kind]}
    options = [
        text
        for name, value in wanted.items()
        for text in ("--agents" if name == "n" else f"--{name}", value)
    ]
    done = run(kind.replace("_", "-"), *options, "--output", tmp_path)
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    assert (
        graphs.from_file(tmp_path / "graph.graphml").edges == getattr(graphs, kind)(**wanted).edges
    )


def test_kinds_are_all_the_generators_and_the_help_has_them():
    every = "erdos_renyi line linear ring small_world scale_free complete star grid geometric"
    assert list(KINDS) == every.split()
    lines = run("--help").stdout.splitlines()
    for kind, takes in KINDS.items():
        line = next(line for line in lines if line.strip().startswith(kind) or f", {kind}" in line)
        options = [
            word[2:].replace("agents", "n") for word in line.split() if word.startswith("--")
        ]
        assert options == list(takes)
    needed = {
        name
        for takes in KINDS.values()
        for name, each in takes.items()
        if each.default is inspect.Parameter.empty
    }
    assert needed == set(SHOWN)


@pytest.mark.parametrize("kind", ["erdos_renyi", "small_world", "scale_free", "grid", "geometric"])
def test_what_the_sentence_about_missing_options_suggests_works(no_work, kind):
    refused = run(kind)
    assert refused.exit_code == 2
    words = refused.stderr.split("peerlearn graph ")[1].split()
    options = {
        option.removeprefix("--"): text
        for option, text in zip(words[1::2], words[2::2], strict=True)
    }
    graph = make_graph(
        words[0],
        {name: float(text) if "." in text else int(text) for name, text in options.items()},
    )
    assert len(graph) == 20


def test_the_command_shows_and_writes_what_describe_says(tmp_path):
    done = run(
        "erdos_renyi",
        "--agents",
        12,
        "--p",
        0.3,
        "--seed",
        1,
        "--payload",
        40,
        "--output",
        tmp_path,
    )
    report = describe(GRAPHS["random"], payload=40)
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.stdout
    shown = [line for line in done.stdout.splitlines() if str(tmp_path) not in line]
    assert max(map(len, shown)) <= 80
    assert f"{report.bytes_per_round:,} bytes" in done.stdout
    assert f"height {report.height}: {report.tree_rounds} rounds" in done.stdout
    for row, each in zip(read(tmp_path / "weightings.csv"), report.weightings, strict=True):
        cells = next(line.split() for line in shown if line.startswith(f"{each.weights} "))
        assert cells[1:4] == [
            f"{each.contraction:.4f}",
            f"{each.plain_rounds:,}",
            f"{each.chebyshev_rounds:,}",
        ]
        assert (row["weights"], int(row["plain_rounds"])) == (each.weights, each.plain_rounds)
        assert float(row["contraction"]) == pytest.approx(each.contraction, rel=1e-11)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["diameter"], summary["tree_rounds"], summary["payload"]) == (
        report.diameter,
        2 * report.height,
        40,
    )
    assert summary["bytes_per_round"] == report.bytes_per_round


def test_without_arguments_it_is_the_graph_of_the_demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run().exit_code == 0
    assert (
        graphs.from_file(tmp_path / "peerlearn-graph" / "graph.graphml").edges
        == graphs.erdos_renyi(20, 0.2).edges
    )


def test_the_graph_file_has_the_weights_and_is_a_graph_file(tmp_path):
    graph = nx.relabel_nodes(graphs.geometric(6, 0.8), dict(enumerate("abcdef")))
    nx.set_node_attributes(graph, {"a": {1, 2}}, "what GraphML cannot hold")
    report = run_graph(tmp_path / "one", graph, weights="max_degree")
    written = graphs.from_file(tmp_path / "one" / "graph.graphml")
    C = weights.max_degree(report.graph)
    assert all(data["weight"] == pytest.approx(C[a, b]) for a, b, data in written.edges(data=True))
    assert [written.nodes[k]["self_weight"] for k in range(6)] == pytest.approx(C.diagonal())
    assert [written.nodes[k]["name"] for k in range(6)] == list("abcdef")
    places = [(written.nodes[k]["x"], written.nodes[k]["y"]) for k in range(6)]
    assert places == [graph.nodes[label]["pos"] for label in "abcdef"]
    done = run(
        tmp_path / "one" / "graph.graphml", "--weights", "max-degree", "--output", tmp_path / "two"
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "two" / "graph.graphml").read_text() == (
        tmp_path / "one" / "graph.graphml"
    ).read_text()


def test_a_list_of_links_is_a_graph_too(tmp_path):
    (tmp_path / "links").write_text("north south\nsouth east-wing-of-the-house\n")
    done = run(tmp_path / "links", "--output", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "3 agents, 2 links" in done.stdout


@pytest.mark.parametrize(
    ("graph", "many"),
    [
        *((GRAPHS[name], 200) for name in ("random", "line", "two")),
        *((graph, 2) for graph in (graphs.linear(32), GRAPHS["star"])),
    ],
    ids=str,
)
def test_the_figure_is_drawn_again_from_the_files_alone(graph, many, tmp_path, monkeypatch):
    monkeypatch.setattr(graph_places, "LEVEL_UP_TO", many)
    monkeypatch.setattr(figure, "PATHS_UP_TO", 10 * many)
    monkeypatch.setattr(graph_report, "FASTEST_UP_TO", 10)
    run_graph(tmp_path / "one", graph, weights="laplacian")
    (tmp_path / "two").mkdir()
    for name in SOURCES:
        shutil.copy(tmp_path / "one" / name, tmp_path / "two")
    before = matplotlib.rcParams.copy()
    drawn = draw_graph(tmp_path / "two")
    assert matplotlib.rcParams.copy() == before
    for path in drawn:
        assert path.read_bytes() == (tmp_path / "one" / path.name).read_bytes()
    image = matplotlib.image.imread(drawn[0])[..., :3]
    left, right = image[:, : image.shape[1] // 2], image[:, image.shape[1] // 2 :]
    for half in (left, right):
        assert 0.005 < (half.min(axis=2) < 0.9).mean() < 0.6  # neither blank nor full


def test_negative_weights_are_seen(tmp_path):
    graph = graphs.erdos_renyi(20, 0.2)
    assert weights.fastest(graph).data.min() < 0
    run_graph(tmp_path, graph, weights="fastest")
    svg = (tmp_path / "graph.svg").read_text().lower()
    assert svg.count("stroke: #d55e00") >= 2  # links and legend
    run_graph(tmp_path, graph)
    assert "#d55e00" not in (tmp_path / "graph.svg").read_text().lower()


@pytest.mark.parametrize(
    "broken", [None, "", "{", "weights\n", "weights,contraction\nmetropolis,0.5\n"]
)
@pytest.mark.parametrize("file", ["weightings.csv", "summary.json"])
def test_a_folder_without_results_gives_a_sentence(results_of_two, tmp_path, file, broken):
    shutil.copytree(results_of_two, tmp_path, dirs_exist_ok=True)
    (tmp_path / file).unlink()
    if broken is not None:
        (tmp_path / file).write_text(broken)
    with pytest.raises(
        InputError, match=r"does not hold the files of a graph .*: make them with peerlearn graph"
    ):
        draw_graph(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["rnig"],
            "there is no graph called 'rnig': there are erdos_renyi, .*; did you mean 'ring'?",
        ),
        (["lin"], "did you mean 'line'?"),
        (["scalefree"], "did you mean 'scale_free'?"),
        (["qqq"], "geometric. A file is named with its ending"),
        (["missing.graphml"], "there is no graph file .*missing.graphml"),
        (["missing.graphml", "--agents", 3], "says itself what the graph is: leave out --agents"),
        (["ring", "--p", 0.5], "ring takes --agents, and not --p: leave that out"),
        (["grid", "--rows", 2, "--agents", 4], "grid takes --rows and --columns, and not --agents"),
        (
            ["small_world"],
            (
                "small_world needs --k and --rewire as well: for example, peerlearn graph "
                "small_world --k 2"
            ),
        ),
        (["grid", "--rows", 2], "grid needs --columns as well"),
        (
            ["erdos_renyi", "--p", 1.5],
            "the link probability p is 1.5: give a number between 0 and 1",
        ),
        (["ring", "--agents", 0], "the number of agents is 0"),
        (
            ["ring", "--agents", 1],
            "the graph has 1 agent, who has nobody to talk to: give at least 2",
        ),
        (
            ["complete", "--agents", 10**6],
            "1,000,000 agents are more than can be drawn: choose at most 1,000",
        ),
        (["complete", "--agents", 400], "79,800 links are more than can be drawn: .* 50,000 links"),
        (["grid", "--rows", 10**4, "--columns", 10**4], "100,000,000 agents are more"),
        (["--seed", -1], "seed -1 cannot be used"),
        (["--p", 0.001, "--agents", 50], "practically never connected: raise p"),
        (
            ["--weights", "metropols"],
            "there are no weights called 'metropols': .*did you mean 'metropolis'?",
        ),
        (["--payload", 0], "a payload of 0 numbers is no message: give at least 1"),
        (["--accuracy", 0], "accuracy is 0: give a number between 0 and 1, such as 1e-6"),
        (["--accuracy", 1], "accuracy is 1: "),
        (["--accuracy", "nan"], "accuracy is nan: "),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_before_any_work(no_work, tmp_path, arguments, sentence):
    done = run(*arguments, "--output", tmp_path / "new")
    assert (done.exit_code, done.stdout) == (2, "")
    with pytest.raises(InputError, match=sentence.replace("?", r"\?")):
        raise InputError(done.stderr)
    assert done.stderr.startswith("peerlearn: ")
    assert not (tmp_path / "new").exists()


def test_an_output_that_is_a_file(no_work, tmp_path):
    (tmp_path / "file").write_text("mine")
    done = run("ring", "--output", tmp_path / "file")
    assert (done.exit_code, (tmp_path / "file").read_text()) == (2, "mine")
    assert "is a file, but results need a folder" in done.stderr


def test_a_file_of_too_many_agents(no_work, tmp_path):
    nx.write_edgelist(graphs.linear(MOST + 1), tmp_path / "long.txt")
    with pytest.raises(GraphError, match="1,001 agents are more than can be drawn"):
        make_graph(str(tmp_path / "long.txt"), {})


def test_without_cvxpy_the_other_weights_are_compared(no_cvxpy, tmp_path):
    done = run("ring", "--agents", 6, "--output", tmp_path)
    assert done.exit_code == 0, done.output
    assert "No fastest weights: weights='fastest' needs the package cvxpy" in done.stdout
    assert "pip install cvxpy" in done.stdout
    assert next(
        line.split() for line in done.stdout.splitlines() if line.startswith("fastest")
    ) == [
        "fastest",
        *"-----",
    ]
    assert [row["weights"] for row in read(tmp_path / "weightings.csv")] == [
        "max-degree",
        "metropolis",
        "laplacian",
    ]
    assert "not computed" in (tmp_path / "graph.svg").read_text()


def test_fastest_weights_that_are_asked_for_need_cvxpy(no_cvxpy, no_work, tmp_path):
    done = run("ring", "--weights", "fastest", "--output", tmp_path / "new")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.endswith("which is not installed: pip install cvxpy\n")
    assert not (tmp_path / "new").exists()
    with pytest.raises(MissingExtra):
        describe(GRAPHS["ring"], weights="fastest")


def test_large_graphs_have_fastest_weights_only_if_asked(monkeypatch):
    monkeypatch.setattr(graph_report, "FASTEST_UP_TO", 8)
    skipped = describe(GRAPHS["ring"]).skipped["fastest"]
    assert skipped == (
        "weights='fastest' can take minutes or more for 9 agents: ask for them by name, "
        "--weights fastest"
    )
    assert describe(GRAPHS["ring"], weights="fastest").skipped == {}
    assert describe(GRAPHS["line"]).skipped == {}


def test_fastest_weights_that_are_not_found_do_not_end_the_command(monkeypatch):
    def fail(_graph):
        raise WeightsError("not found: use 'metropolis'")

    monkeypatch.setitem(weights.NAMES, "laplacian", fail)
    assert describe(GRAPHS["ring"]).skipped == {"laplacian": "not found: use 'metropolis'"}
    with pytest.raises(WeightsError, match="not found"):
        describe(graphs.star(4), weights="laplacian")


def test_progress_is_told(tmp_path):
    heard = []
    run_graph(tmp_path, GRAPHS["ring"], watch=lambda *step: heard.append(step))
    assert [done for _, done, _ in heard] == list(range(5))
    assert {steps for _, _, steps in heard} == {5}
    assert (heard[0][0], heard[-1][0]) == ("max-degree weights of 9 agents", "drawing the figure")
