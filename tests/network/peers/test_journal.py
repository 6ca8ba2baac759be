"""What an agent must not forget: saved, torn, damaged, on a full disk, of another run, of another
program.
"""

from __future__ import annotations

import errno
import os
import shutil

import numpy as np
import pytest

from peerlearn.errors import NetworkError
from peerlearn.network.peers.journal import JOURNAL, NAMES, Call, Checkpoint, Journal
from tests.support.journals import Full


def saved(folder, rounds=2):
    """A journal with so many checkpoints, each with one more call."""
    journal = Journal(folder)
    for n in range(1, rounds + 1):
        journal.add(Call("mix", (np.full((1, 2), float(n)),)))
        journal.save(
            Checkpoint({"round": n}, {"now": np.full(2, float(n))}, {n: {"frames": np.array([n])}})
        )
    return journal


def rounds_of(journal):
    """Where the loaded run stands, and what its calls gave: 3 where the third checkpoint
    was taken.
    """
    checkpoint = journal.load()
    calls = list(journal.calls())
    n = checkpoint.about["round"]
    assert [(call.what, call.arrays[0].tolist()) for call in calls] == [
        ("mix", [[k, k]]) for k in range(1, n + 1)
    ]
    assert checkpoint.arrays["now"].tolist() == [n, n]
    return n


def newest(folder, rounds):
    return folder / NAMES[rounds % 2]


class TestJournal:
    def test_an_empty_folder_has_no_checkpoint(self, tmp_path):
        journal = Journal(tmp_path / "new" / "folder")
        assert journal.load() is None
        assert list(journal.calls()) == []

    def test_a_folder_that_cannot_be_made_gets_its_sentence(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(
            NetworkError, match=r"checkpoints cannot be kept in .*file.*: name another folder"
        ):
            Journal(tmp_path / "file" / "folder")

    def test_what_was_saved_is_loaded_bit_by_bit(self, tmp_path):
        journal, x = Journal(tmp_path), np.random.default_rng(0).standard_normal((2, 3))
        ends, letter = np.array([[0, 1]]), np.arange(5, dtype=np.uint8)
        journal.add(Call("mix", (x,)))
        journal.add(Call("exchange", (ends, letter)))
        journal.add(Call("pass_on", ()))
        journal.save(Checkpoint({"round": 3}, {"now": x.T}, {1: {"frames": letter}}))
        other = Journal(tmp_path)
        checkpoint = other.load()
        assert checkpoint.about["round"] == 3
        assert checkpoint.arrays["now"].tobytes() == x.T.tobytes()
        assert checkpoint.sent[1]["frames"].tobytes() == letter.tobytes()
        first, second, third = other.calls()
        assert (first.what, second.what, third.what) == ("mix", "exchange", "pass_on")
        assert first.arrays[0].tobytes() == x.tobytes()
        assert [each.tobytes() for each in second.arrays] == [ends.tobytes(), letter.tobytes()]
        assert third.arrays == ()

    @pytest.mark.parametrize("rounds", [1, 2, 3, 4])
    def test_the_newest_checkpoint_wins(self, tmp_path, rounds):
        saved(tmp_path, rounds)
        journal = Journal(tmp_path)
        assert rounds_of(journal) == rounds
        assert journal.warning == ""

    def test_what_was_added_and_not_saved_is_not_there(self, tmp_path):
        saved(tmp_path).add(Call("mix", (np.ones((1, 2)),)))
        assert rounds_of(Journal(tmp_path)) == 2

    def test_a_journal_goes_on_where_it_was_loaded(self, tmp_path):
        saved(tmp_path)
        journal = Journal(tmp_path)
        journal.load()
        journal.add(Call("mix", (np.full((1, 2), 3.0),)))
        journal.save(Checkpoint({"round": 3}, {"now": np.full(2, 3.0)}))
        assert rounds_of(Journal(tmp_path)) == 3

    def test_a_newest_checkpoint_torn_anywhere_leaves_the_one_before(self, tmp_path):
        saved(tmp_path, 3)
        path = newest(tmp_path, 3)
        content = path.read_bytes()
        for length in range(len(content)):
            path.write_bytes(content[:length])
            journal = Journal(tmp_path)
            assert rounds_of(journal) == 2
            assert journal.warning.startswith(path.name)

    def test_a_newest_checkpoint_damaged_anywhere_leaves_the_one_before(self, tmp_path):
        saved(tmp_path, 3)
        path = newest(tmp_path, 3)
        content = path.read_bytes()
        for at in range(len(content)):
            path.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
            assert rounds_of(Journal(tmp_path)) == 2

    @pytest.mark.parametrize("what", ["torn", "damaged", "gone"])
    def test_frames_that_are_not_whole_leave_the_checkpoint_before(self, tmp_path, what):
        saved(tmp_path, 3)
        path = tmp_path / "sent-3.bin"
        content = path.read_bytes()
        path.unlink()
        if what != "gone":
            path.write_bytes(content[:-1] if what == "torn" else content[:-1] + b"x")
        assert rounds_of(Journal(tmp_path)) == 2

    def test_a_damaged_last_record_of_the_journal_leaves_the_checkpoint_before(self, tmp_path):
        saved(tmp_path, 3)
        path = tmp_path / JOURNAL
        content = path.read_bytes()
        record = len(content) // 3
        for at in range(2 * record, len(content)):
            for wrong in (
                content[:at],
                content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :],
            ):
                path.write_bytes(wrong)
                journal = Journal(tmp_path)
                assert rounds_of(journal) == 2
                assert JOURNAL in journal.warning

    def test_after_a_torn_checkpoint_the_run_goes_on_and_saves(self, tmp_path):
        saved(tmp_path, 3)
        newest(tmp_path, 3).write_bytes(b"torn")
        journal = Journal(tmp_path)
        assert rounds_of(journal) == 2
        journal.add(Call("mix", (np.full((1, 2), 3.0),)))
        journal.save(Checkpoint({"round": 3}, {"now": np.full(2, 3.0)}))
        assert rounds_of(Journal(tmp_path)) == 3

    def test_where_nothing_is_whole_the_sentence_has_the_way_out(self, tmp_path):
        saved(tmp_path)
        way_out = (
            r"no checkpoint in .* is whole \(.*\): bring a copy back, or empty the checkpoint "
            r"folders of all agents"
        )
        shutil.copytree(tmp_path, tmp_path / "copy")
        (tmp_path / JOURNAL).unlink()
        with pytest.raises(NetworkError, match=way_out):
            Journal(tmp_path).load()
        for name in NAMES:
            (tmp_path / "copy" / name).write_bytes(b"torn")
        with pytest.raises(NetworkError, match=way_out):
            Journal(tmp_path / "copy").load()

    @pytest.mark.parametrize("what", ["open", "fsync", "replace"])
    def test_a_full_disk_leaves_what_was_there_and_the_next_save_works(
        self, tmp_path, monkeypatch, what
    ):
        journal = saved(tmp_path)
        journal.add(Call("mix", (np.full((1, 2), 3.0),)))
        third = Checkpoint(
            {"round": 3}, {"now": np.full(2, 3.0)}, {2: {}, 3: {"frames": np.ones(3)}}
        )
        for _ in range(2):
            enough = Full(monkeypatch)(what)
            with pytest.raises(OSError, match="No space left"):
                journal.save(third)
            enough()
            assert rounds_of(Journal(tmp_path)) == 2
            assert not list(tmp_path.glob("*.new"))
        journal.save(third)
        assert rounds_of(Journal(tmp_path)) == 3
        assert list(Journal(tmp_path).load().sent) == [2, 3]

    @pytest.mark.parametrize("fails_at", range(5))
    def test_a_disk_that_gets_full_at_any_moment_of_a_save_leaves_a_checkpoint(
        self, tmp_path, monkeypatch, fails_at
    ):
        journal, times = saved(tmp_path), iter(range(100))
        journal.add(Call("mix", (np.full((1, 2), 3.0),)))
        third = Checkpoint({"round": 3}, {"now": np.full(2, 3.0)}, {3: {"frames": np.ones(3)}})

        def fsync(_):
            if next(times) == fails_at:
                raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fsync)
            with pytest.raises(OSError, match="No space left"):
                journal.save(third)
        assert rounds_of(Journal(tmp_path)) in (2, 3)
        journal.save(third)
        assert rounds_of(Journal(tmp_path)) == 3

    def test_frames_that_nobody_counts_on_are_removed(self, tmp_path):
        journal = Journal(tmp_path)
        for n in range(1, 7):
            kept = {k: ({"frames": np.array([k])} if k == n else {}) for k in (n - 1, n) if k}
            journal.save(Checkpoint({"round": n}, {}, kept))
        # The last two checkpoints count on 4 and 5, and on 5 and 6.
        assert sorted(path.name for path in tmp_path.glob("sent-*")) == [
            "sent-4.bin",
            "sent-5.bin",
            "sent-6.bin",
        ]

    def test_frames_that_nobody_counts_on_are_removed_after_a_restart_too(self, tmp_path):
        for n in range(1, 9):
            journal = Journal(tmp_path)  # killed after every checkpoint
            journal.load()
            journal.save(Checkpoint({"round": n}, {}, {n: {"frames": np.array([n])}}))
        assert len(list(tmp_path.glob("sent-*"))) <= 3

    def test_forgetting_leaves_a_word_and_nothing_else(self, tmp_path):
        journal = saved(tmp_path, 5)
        journal.forget(Checkpoint({"round": 5, "finished": True}))
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(NAMES)
        for name in NAMES:
            other = Journal(tmp_path)
            assert other.load().about["finished"]
            assert list(other.calls()) == []
            (tmp_path / name).write_bytes(b"torn")
            if name == NAMES[0]:
                assert Journal(tmp_path).load().about["finished"]  # either of them suffices


def test_a_journal_record_is_never_larger_than_what_is_there(tmp_path):
    """A length that was damaged does not make us read, or allocate, what is not there."""
    saved(tmp_path)
    path = tmp_path / JOURNAL
    content = bytearray(path.read_bytes())
    content[8:16] = (1 << 62).to_bytes(8, "little")
    path.write_bytes(content)
    with pytest.raises(NetworkError, match="cut short or damaged"):
        Journal(tmp_path).load()
