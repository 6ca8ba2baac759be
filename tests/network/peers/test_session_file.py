"""Session keys on disk, and what a mask may cover after a restart."""

from __future__ import annotations

import json
import os

import pytest

from peerlearn.errors import NetworkError
from peerlearn.network.peers.session_file import SessionFile


def draw():
    return os.urandom(32)


def test_a_restarted_agent_gets_the_same_bytes(tmp_path):
    first = SessionFile(tmp_path)
    kept = [first.keep(what, draw) for what in ("key", "signature a", "key")]
    assert len(set(kept)) == 3
    again = SessionFile(tmp_path)
    assert [again.keep(what, draw) for what in ("signature a", "key", "key")] == [
        kept[1],
        kept[0],
        kept[2],
    ]
    assert again.keep("key", draw) not in kept
    assert again.keep("signature b", draw) not in kept


def test_what_is_drawn_is_private_and_synced_before_it_is_used(tmp_path, monkeypatch):
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(file) or fsync(file))
    file = SessionFile(tmp_path)
    file.keep("key", draw)
    file.commit("a 0 1", b"d")
    path = tmp_path / "secrets.jsonl"
    assert len(synced) == 2
    assert path.stat().st_mode & 0o777 == 0o600
    file.forget()
    assert not path.exists()


def test_a_mask_never_covers_two_contents(tmp_path):
    SessionFile(tmp_path).commit("session 0 agent 1", b"one")
    again = SessionFile(tmp_path)
    again.commit("session 0 agent 1", b"one")
    again.commit("session 1 agent 1", b"two")
    with pytest.raises(NetworkError, match=r"computed other numbers .* nothing was sent"):
        SessionFile(tmp_path).commit("session 1 agent 1", b"three")


def test_a_line_that_was_cut_by_a_kill_is_ignored(tmp_path):
    first = SessionFile(tmp_path)
    drawn = first.keep("key", draw)
    first.keep("key", draw)
    path = tmp_path / "secrets.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    again = SessionFile(tmp_path)
    assert again.keep("key", draw) == drawn
    new = again.keep("key", draw)
    assert [json.loads(line)["content"] for line in path.read_text().splitlines()] == [
        drawn.hex(),
        new.hex(),
    ]


@pytest.mark.parametrize(
    "line", [b"{}", b"no", b'{"kept": "key 0"}', b'{"kept": "key 0", "content": "xx"}', b"[]"]
)
def test_a_damaged_line_is_refused(tmp_path, line):
    path = tmp_path / "secrets.jsonl"
    path.write_bytes(line + b"\n")
    path.chmod(0o600)
    with pytest.raises(NetworkError, match=r"line 1 of .* is damaged"):
        SessionFile(tmp_path)


@pytest.mark.parametrize("how", ["readable", "writable", "link"])
def test_keys_that_others_may_know_are_refused(tmp_path, how):
    """Somebody who may write to the folder would choose the keys."""
    SessionFile(tmp_path).keep("key", draw)
    path = tmp_path / "secrets.jsonl"
    if how == "link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.chmod(0o640 if how == "readable" else 0o602)
    with pytest.raises(NetworkError, match="others can read or write it"):
        SessionFile(tmp_path)


def test_nothing_is_used_that_could_not_be_written(tmp_path, monkeypatch):
    file = SessionFile(tmp_path)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(NetworkError, match="No space left"):
        file.keep("key", draw)
    with pytest.raises(NetworkError, match="No space left"):
        file.commit("s 0 1", b"d")
