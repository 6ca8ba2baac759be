"""Files of chained lines: every change is named, a torn line is cut off, a full disk is said."""

from __future__ import annotations

import json
import os
import resource
from errno import ENOSPC

import pytest

from peerlearn.errors import NetworkError
from peerlearn.network.peers.chain_file import START, BrokenChain, ChainFile, read_chain


@pytest.fixture
def path(tmp_path):
    file = ChainFile(tmp_path / "site" / "left.jsonl")
    for number in range(5):
        assert file.append({"what": f"Gram {number}", "bytes": 8 * number}) == number + 1
    return file.path


def change(path, changed):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(changed(lines)))


def test_lines_are_chained_and_private_and_go_on_in_the_next_process(path):
    chain = read_chain(path)
    assert [entry["what"] for entry in chain.entries] == [f"Gram {number}" for number in range(5)]
    assert [entry["before"] for entry in chain.entries] == [START, *chain.digests[:-1]]
    assert path.stat().st_mode & 0o777 == 0o600
    again = ChainFile(path)
    again.append({"what": "more"})
    assert read_chain(path).digests[:5] == chain.digests
    assert again.head == read_chain(path).head


@pytest.mark.parametrize("line", range(5))
def test_an_edited_line_is_named(path, line):
    def edit(lines):
        lines[line] = lines[line].replace(b"Gram", b"gram")
        return lines

    change(path, edit)
    with pytest.raises(BrokenChain, match=f"line {line + 1} was edited"):
        read_chain(path)
    with pytest.raises(BrokenChain, match="Bring a copy back"):
        ChainFile(path)


def test_a_line_written_anew_with_its_digest_is_named(path, tmp_path):
    other = ChainFile(tmp_path / "other.jsonl")
    for number in range(5):
        other.append({"what": f"other {number}", "bytes": 8 * number})
    forged = other.path.read_bytes().splitlines(keepends=True)
    change(path, lambda lines: [forged[0], *lines[1:]])
    with pytest.raises(BrokenChain, match="line 1 was edited, with a new digest"):
        read_chain(path)


@pytest.mark.parametrize("line", range(4))
def test_a_dropped_line_is_named(path, line):
    change(path, lambda lines: lines[:line] + lines[line + 1 :])
    with pytest.raises(BrokenChain, match=f"line {line + 1} was dropped"):
        read_chain(path)


def test_a_moved_line_is_named(path):
    change(path, lambda lines: [lines[0], lines[2], lines[1], *lines[3:]])
    with pytest.raises(BrokenChain, match="line 3 was moved to place 2"):
        read_chain(path)


@pytest.mark.parametrize("line", [b"no\n", b"[]\n", b"{}\n", b'{"line": "1"}\n', b"\n"])
def test_a_damaged_line_is_named(path, line):
    change(path, lambda lines: [*lines[:2], line, *lines[3:]])
    with pytest.raises(BrokenChain, match="line 3 is damaged"):
        read_chain(path)


def test_a_line_torn_by_a_kill_is_cut_off_at_any_byte(path):
    whole = path.read_bytes()
    head = read_chain(path).digests[3]
    start = whole.rindex(b"\n", 0, -1) + 1
    for end in range(start + 1, len(whole) - 1, 7):
        path.write_bytes(whole[:end])
        assert read_chain(path).torn == end - start
        file = ChainFile(path)
        assert file.torn == end - start
        assert file.head == head
        file.append({"what": "after the kill"})
        assert read_chain(path).entries[-1]["what"] == "after the kill"


def test_a_line_is_on_disk_or_refused(path, monkeypatch):
    before = path.read_bytes()
    file = ChainFile(path)
    fsync = os.fsync

    def fail(*_):
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(NetworkError, match=r"No space left.* nothing leaves .* make room"):
        file.append({"what": "lost"})
    assert path.read_bytes() == before
    monkeypatch.setattr(os, "fsync", fsync)
    assert file.append({"what": "kept"}) == 6
    assert json.loads(path.read_bytes().splitlines()[-1])["what"] == "kept"
    read_chain(path)


def test_a_short_write_leaves_nothing_behind(path):
    """The system writes ten bytes, and no more."""
    before = path.read_bytes()
    file = ChainFile(path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, limits[1]))
    try:
        with pytest.raises(NetworkError, match="No space left"):
            file.append({"what": "lost"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before


def test_two_writers_are_noticed(path):
    first = ChainFile(path)
    second = ChainFile(path)
    first.append({"what": "a"})
    with pytest.raises(NetworkError, match="another process writes"):
        second.append({"what": "b"})
    read_chain(path)
