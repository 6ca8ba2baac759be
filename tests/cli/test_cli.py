"""The command: help that teaches, sentences instead of tracebacks, and exit codes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import peerlearn
from peerlearn.cli import main
from peerlearn.cli.demo import run as demos
from peerlearn.errors import NetworkError
from peerlearn.toml_reader import toml

SMALL = {"n_hidden": 20, "alpha": 1.0, "activation": "sigmoid"}


def run(*arguments, **environment):
    return CliRunner().invoke(main, list(arguments), env={"PEERLEARN_DATA": None, **environment})


@pytest.fixture
def no_work(monkeypatch):
    """Fails the test if the demo starts to learn."""
    monkeypatch.setattr(
        demos, "_learn", lambda *_: pytest.fail("work was done before the options were checked")
    )


def test_version():
    assert peerlearn.__version__ in run("--version").stdout


def test_help_shows_where_to_start():
    assert all(
        f"peerlearn {command}" in run("--help").stdout
        for command in ("demo", "graph", "data", "up", "agent")
    )
    assert run("-h").stdout == run("--help").stdout


@pytest.mark.parametrize("command", list(main.commands))
def test_every_command_has_help_with_an_example(command):
    shown = run(command, "--help")
    assert shown.exit_code == 0
    assert f"\n    peerlearn {command}" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80


@pytest.mark.parametrize("agents", ["1", "0", "-3", "101"])
def test_impossible_numbers_of_agents(no_work, tmp_path, agents):
    done = run("demo", "--agents", agents, "--output", str(tmp_path / "new"))
    assert done.exit_code == 2
    assert done.stderr == f"peerlearn: the demo cannot have {agents} agents: choose 4 to 100\n"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "arguments",
    [("--agents", "many"), ("--agents", "2.5"), ("--seed", "x"), ("--fast",), ("more",)],
)
def test_options_that_are_not_understood(no_work, arguments):
    done = run("demo", *arguments)
    assert done.exit_code == 2
    assert "Error: " in done.stderr


@pytest.mark.parametrize("seed", ["-1", str(2**32)])
def test_impossible_seeds(no_work, tmp_path, seed):
    done = run("demo", "--seed", seed, "--output", str(tmp_path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"seed {seed} cannot be used" in done.stderr


def test_an_output_that_is_a_file(no_work, tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    for output in (file, file / "below"):
        done = run("demo", "--output", str(output))
        assert done.exit_code == 2
        assert done.stderr.startswith("peerlearn: ")
        assert "another" in done.stderr
    assert file.read_text() == "mine"


def test_an_output_that_is_not_writable(no_work, monkeypatch, tmp_path):
    def denied(*_args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(
        Path, "touch", denied
    )  # folder rights would not stop a test that runs as root
    done = run("demo", "--output", str(tmp_path))
    assert done.exit_code == 2
    assert "results cannot be written" in done.stderr


def test_ctrl_c_ends_with_a_sentence(monkeypatch, tmp_path):
    def interrupted(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr(demos, "_learn", interrupted)
    done = run("demo", "--output", str(tmp_path))
    assert done.exit_code == 130
    assert done.stderr == "peerlearn: stopped by Ctrl-C; files already written are whole\n"
    assert list(tmp_path.iterdir()) == []


def test_what_goes_wrong_later_is_a_sentence_too(monkeypatch, tmp_path):
    def broken(*_args):
        raise NetworkError("the network is gone: start it again")

    monkeypatch.setattr(demos, "_learn", broken)
    done = run("demo", "--output", str(tmp_path))
    assert (done.exit_code, done.stderr) == (1, "peerlearn: the network is gone: start it again\n")


@pytest.mark.processes
@pytest.mark.parametrize(
    "command",
    [("graph", "ring", "--agents", "4"), ("demo", "--agents", "4"), ("run", "tiny.toml")],
    ids=lambda c: c[0],
)
def test_a_home_that_the_shell_left_to_us_is_printed_in_full(command, monkeypatch, tmp_path):
    """As in --output=~/results, which bash does not expand: all paths that are printed exist."""
    model = {"name": "c", "kind": "RVFL", "where": "centralised"}
    comparison = {"title": "T", "folds": 2, "data": [{"name": "iris"}], "models": [model]}
    (tmp_path / "tiny.toml").write_text(toml(comparison))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demos, "PROBLEMS", {"g50c": SMALL})
    done = run(*command, "--output=~/results", HOME=str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "~" not in done.stdout
    paths = re.findall(rf"{re.escape(str(tmp_path))}[\w./-]*", done.stdout)
    assert str(tmp_path / "results") in paths
    assert all(Path(path).exists() for path in paths)


def test_data_lists_what_can_be_loaded():
    done = run("data")
    assert done.exit_code == 0
    for info in peerlearn.data.available():
        line = next(line for line in done.stdout.splitlines() if line.startswith(f"{info.name} "))
        assert line.split()[-2:] == [f"{info.rows:,}", f"{info.columns:,}"]
    assert "PEERLEARN_DATA (not set)" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("by", ["option", "variable"])
def test_data_lists_the_files_of_a_folder(tmp_path, by):
    np.savez(tmp_path / "mine[1].npz", X=np.zeros((7, 3)), y=np.arange(7))
    (tmp_path / "bad.npz").write_text("nothing")
    where = str(tmp_path)
    done = run("data", "--folder", where) if by == "option" else run("data", PEERLEARN_DATA=where)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["mine[1]", "classification", "file", "7", "3"] in lines
    assert ["bad", "-", "file", "-", "-"] in lines
    assert "bad cannot be loaded: " in done.stdout
    assert f"in {where}" in done.stdout


def test_data_of_wide_terminals_says_what_the_sets_are():
    assert "two Gaussian clouds" in run("data", COLUMNS="160").stdout


def test_data_of_narrow_terminals_does_not_break():
    assert run("data", COLUMNS="20").exit_code == 0


def test_a_folder_that_is_missing(tmp_path):
    done = run("data", "--folder", str(tmp_path / "missing"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "is not a folder: name the one that holds the .npz files" in done.stderr
