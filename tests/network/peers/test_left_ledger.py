"""The ledger of what left: lines before messages, counts after them, kills and full disks."""

from __future__ import annotations

import os
from errno import ENOSPC

import numpy as np
import pytest

from peerlearn.errors import NetworkError
from peerlearn.network.base import MASKED, PLAIN
from peerlearn.network.peers import left_ledger
from peerlearn.network.peers.chain_file import read_chain
from peerlearn.network.peers.left_ledger import LeftLedger

NAMES = ("north", "south", "west")


def ledger(folder, run="study", resumed=False):
    return LeftLedger(folder, run, "north", NAMES, (1, 2), resumed=resumed, greeting={"alpha": "1"})


def send(left, rounds, shape=(3, 2), to=(1, 2), quantity="Gram", protection=PLAIN):
    line, size = left.announce(to, {"row": np.zeros((1, *shape))}, quantity, protection)
    line.count(rounds, size)


def lines(folder, event):
    return [each for each in read_chain(folder / "left.jsonl").entries if each["event"] == event]


def test_a_thousand_rounds_are_one_line_and_one_count(tmp_path):
    left = ledger(tmp_path)
    for _ in range(1000):
        send(left, 3)
    send(left, 2, to=(2,))
    send(left, 1, quantity="diagonal", protection=MASKED)
    assert left.record_counts() == read_chain(tmp_path / "left.jsonl").head
    leaves = lines(tmp_path, "leaves")
    assert [each["quantity"] for each in leaves] == ["Gram", "Gram", "diagonal"]
    assert [each["to"] for each in leaves] == [["south", "west"], ["west"], ["south", "west"]]
    assert [each["protection"] for each in leaves] == [PLAIN, PLAIN, MASKED]
    assert leaves[0]["arrays"] == {"row": [3, 2]}
    assert leaves[0]["bytes"] == 48
    (counts,) = lines(tmp_path, "counts")
    assert list(counts["counts"].values()) == [[6000, 288_000], [2, 96], [2, 96]]
    head = left.record_counts()
    assert len(lines(tmp_path, "counts")) == 1, "no news, no line"
    assert head == read_chain(tmp_path / "left.jsonl").head


def test_a_line_is_on_disk_before_the_message_leaves(tmp_path, monkeypatch):
    left = ledger(tmp_path)

    def fail(*_):
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(NetworkError, match="nothing leaves this agent"):
        left.announce((1,), {"row": np.zeros((1, 3))}, "Gram", PLAIN)
    assert not lines(tmp_path, "leaves")


def test_a_resumed_run_counts_everything_once(tmp_path):
    first = ledger(tmp_path)
    send(first, 5)
    first.record_counts()
    send(first, 2)  # killed: these are not counted
    again = ledger(tmp_path, resumed=True)
    send(again, 5)  # replayed
    send(again, 2)
    send(again, 1, shape=(4,))
    again.record_counts()
    assert len(lines(tmp_path, "leaves")) == 2
    starts = lines(tmp_path, "start")
    assert [each["resumed"] for each in starts] == [False, True]
    assert len({each["id"] for each in starts}) == 1
    assert list(lines(tmp_path, "counts")[-1]["counts"].values()) == [[14, 672], [2, 64]]


def test_a_run_that_starts_anew_is_another_one(tmp_path):
    send(ledger(tmp_path), 1)
    send(ledger(tmp_path), 1)
    send(ledger(tmp_path, run="other", resumed=True), 1)  # its own ledger was lost
    assert len({each["id"] for each in lines(tmp_path, "start")}) == 3
    assert len(lines(tmp_path, "leaves")) == 3


def test_many_shapes_are_put_together_and_still_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(left_ledger, "MOST_SHAPES", 3)
    left = ledger(tmp_path)
    for rows in range(1, 9):
        send(left, 1, shape=(rows,))
    left.record_counts()
    assert [each["arrays"] for each in lines(tmp_path, "leaves")][-1] == "of other shapes"
    counts = list(lines(tmp_path, "counts")[-1]["counts"].values())
    assert counts == [[2, 16], [2, 32], [2, 48], [10, 2 * 8 * (4 + 5 + 6 + 7 + 8)]]


def test_reasons_and_greetings_are_recorded(tmp_path):
    ledger(tmp_path).record_reason("agent north ended the run: row 17")
    (start,) = lines(tmp_path, "start")
    assert (start["run"], start["agent"], start["greeting"]) == ("study", "north", ["alpha"])
    (reason,) = lines(tmp_path, "reason")
    assert reason["text"].endswith("row 17")


def test_a_mended_ledger_says_so(tmp_path):
    send(ledger(tmp_path), 1)
    path = tmp_path / "left.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    ledger(tmp_path)
    assert lines(tmp_path, "start")[-1]["torn bytes cut off"] > 0
