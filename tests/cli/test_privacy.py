"""The command privacy: files, graphs, what is shown, and what is refused."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from peerlearn.cli import main
from peerlearn.network.simulated import SimulatedNetwork
from tests.support.pages import ROOT

SITE = """
run = "ward-study"
name = "north"
address = "127.0.0.1:7101"
output = "north"
[network]
agents = ["north", "south", "west"]
links = [["north", "south"], ["south", "west"]]
[neighbors]
south = "south.example:7101"
[data]
file = "north.csv"
target = "outcome"
[model]
kind = "RVFLClassifier"
n_hidden = 20
random_state = 0
solver = "gram"
"""


def run(folder, *arguments):
    output = folder / "out"
    done = CliRunner().invoke(main, ["privacy", *arguments, "--output", str(output)])
    if done.exit_code != 0:
        assert not output.exists()
        return done, None
    return done, json.loads((output / "audit.json").read_text())


def test_a_networks_file(tmp_path):
    done, found = run(tmp_path, str(ROOT / "examples/network.toml"))
    assert done.exit_code == 0, done.output
    assert found["method"] == "tree"
    assert [e["name"] for e in found["exposures"] if e["coalitions"]] == ["agent-2", "agent-3"]
    assert "By sums over a tree, single agents can compute the values of 2 of 4" in done.output
    assert "'auto' chooses" in done.output
    assert "agent-2 to agent-1" in done.output
    assert "masked sums" in done.output
    for name in ("audit.png", "audit.svg"):
        assert (tmp_path / "out" / name).stat().st_size > 5000


def test_a_sites_file_with_and_without_its_table(tmp_path):
    (tmp_path / "site.toml").write_text(SITE)
    done, found = run(tmp_path, str(tmp_path / "site.toml"))
    assert [e["by"] for e in found["exposures"]] == [[1], [], [1]]
    assert "Count the rows of each site" in done.output
    (tmp_path / "north.csv").write_text("age,outcome\n50,ill\n")
    done, found = run(tmp_path, str(tmp_path / "site.toml"))
    assert "One row only: north." in done.output
    assert "That holds for north." in done.output


def test_a_file_with_another_solver_and_method(tmp_path):
    file = str(ROOT / "examples/network.toml")
    done, found = run(tmp_path, file, "--solver", "admm", "--method", "plain")
    assert found["method"] == "plain"
    assert len(found["views"]) == len(found["digits"]) == 4
    assert "ADMM sends coefficients" in done.output


def test_the_figure_of_the_issue(tmp_path):
    done, found = run(tmp_path, "--graph", "erdos_renyi", "--p", "0.2", "--method", "plain")
    assert [len(view) for view in found["views"]].count(17) == 17
    after_six = [sum(n <= 6 for n in view.values()) for view in found["views"]]
    assert sorted(after_six) == [1, 1, 2, 2, *[17] * 15, 19]
    assert "would expose 11 values instead of 20" in done.output


@pytest.mark.parametrize("solver", ["auto", "gram", "consensus", "admm", "cg", "newton", "next"])
def test_solvers_by_name(tmp_path, solver):
    done, found = run(tmp_path, "--graph", "ring", "--agents", "5", "--solver", solver)
    assert done.exit_code == 0
    assert found["method"] == ("neighbors" if solver == "next" else "tree")


def test_landmarks_and_masks_and_many_colluders(tmp_path):
    _, found = run(tmp_path, "--graph", "ring", "--agents", "5", "--solver", "landmarks")
    assert found["method"] == "everyone"
    ring = ("--graph", "ring", "--agents", "100")
    done, found = run(tmp_path, *ring, "--masks", "sums", "--colluders", "5")
    assert found["masks"] is True
    assert found["connectivity"] == 99
    assert "ask for fewer colluders" in found["other_ways"]["plain gossip"]
    assert "60 more agents are in audit.json" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give either a file or a graph"),
        (("site.toml", "--graph", "ring"), "give either a file or a graph"),
        (("site.toml", "--agents", "4"), "describes the graph itself"),
        (("nowhere.toml",), "there is no file nowhere.toml"),
        (("--graph", "rng"), "did you mean 'ring'?"),
        (("--graph", "ring", "--solver", "best"), "solver 'best' is not known"),
        (("--graph", "ring", "--colluders", "20"), "1 to 19 can be curious"),
        (("--graph", "ring", "--solver", "next", "--method", "plain"), "leave out --method"),
    ],
)
def test_refusals(tmp_path, arguments, said):
    done, _ = run(tmp_path, *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_nothing_is_sent(tmp_path, monkeypatch):
    for call in ("mix", "recur", "flood", "pass_on", "exchange", "mix_and_flood"):
        monkeypatch.setattr(SimulatedNetwork, call, None)
    done, _ = run(tmp_path, str(ROOT / "examples/network.toml"), "--colluders", "2")
    assert done.exit_code == 0
