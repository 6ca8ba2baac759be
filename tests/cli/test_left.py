"""peerlearn privacy --left: the chain is checked first, and then summed up."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from peerlearn.cli import main
from peerlearn.network.base import MASKED, PLAIN
from peerlearn.network.peers.left_ledger import LeftLedger

NAMES = ("north", "south", "west")


def call(folder):
    return CliRunner().invoke(main, ["privacy", "--left", str(folder)])


@pytest.fixture
def site(tmp_path):
    """The output folder of an agent after two runs, of which the first was killed."""
    for counted in (False, True):
        left = LeftLedger(
            tmp_path, "study", "north", NAMES, (1, 2), resumed=False, greeting={"alpha": "1"}
        )
        sends = [
            ("class labels", {"labels": np.zeros((1, 3))}, (1, 2), PLAIN, 1),
            ("Gram matrix", {"masked": np.zeros((1, 15, 1), dtype=np.uint64)}, (1,), MASKED, 400),
        ]
        for quantity, message, to, protection, rounds in sends:
            line, size = left.announce(to, message, quantity, protection)
            line.count(rounds, size)
        if counted:
            head = left.record_counts()
            (tmp_path / "report.json").write_text(json.dumps({"left": {"head": head}}))
    return tmp_path


def test_an_auditor_reads_two_tables(site):
    done = call(site)
    assert done.exit_code == 0, done.output
    said = "Agent north sent 402 messages with 48,048 bytes to south, west, in 2 runs"
    assert said in done.output
    lines = [" ".join(line.split()) for line in done.output.splitlines()]
    assert "Gram matrix masked sum south masked 15 x 1 400 48,000" in lines
    assert "class labels plain south, west labels 3 2 48" in lines
    assert "1 run not counted to the end" in done.output
    assert "settings that agents compare: alpha" in done.output


def test_a_folder_of_several_agents(site, tmp_path):
    other = tmp_path / "whole"
    for name in ("north", "south"):
        (other / name).mkdir(parents=True)
        (other / name / "left.jsonl").write_bytes((site / "left.jsonl").read_bytes())
    done = call(other)
    assert done.exit_code == 0
    assert done.output.count("The chain of") == 2


def test_a_changed_ledger_ends_with_code_1(site):
    path = site / "left.jsonl"
    path.write_bytes(path.read_bytes().replace(b"masked sum", b"plain"))
    done = call(site)
    assert done.exit_code == 1
    assert "line 3 was edited" in done.output


def test_lines_dropped_at_the_end_are_missed_by_the_report(site):
    path = site / "left.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    done = call(site)
    assert done.exit_code == 1
    assert "lines at its end were dropped" in done.output


def test_a_torn_line_is_no_reason_to_worry(site):
    with (site / "left.jsonl").open("ab") as file:
        file.write(b'{"line": 8, "ev')
    done = call(site)
    assert done.exit_code == 0
    assert "The last 15 bytes are a line that was not finished" in done.output


def test_a_folder_without_a_ledger(tmp_path):
    done = call(tmp_path)
    assert done.exit_code == 2
    assert "has no left.jsonl" in done.output
    done = CliRunner().invoke(main, ["privacy", "site.toml", "--left", str(tmp_path)])
    assert done.exit_code == 2
    assert "leave out the file" in done.output
