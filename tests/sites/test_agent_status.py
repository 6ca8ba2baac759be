"""What an agent's status file says while it runs."""

from __future__ import annotations

import json
from types import SimpleNamespace

from peerlearn.network.peers.rounds import Waiting
from peerlearn.sites import agent


def test_who_is_waited_for_and_since_when_stands_in_the_status(tmp_path, monkeypatch):
    monkeypatch.setattr(agent, "STATUS_EVERY", 0.01)
    path = tmp_path / "status.json"
    waiting = Waiting(("south", "west"), since=1_800_000_000.0, silent=False)
    network = SimpleNamespace(
        residual=None, state=str(waiting), round=7, bytes_sent=90, waiting=waiting
    )

    def written():
        return json.loads(path.read_text())

    with agent.keep_status_file(path) as tell:
        assert written() == {"state": "connecting"}
        tell(network)
        while "waiting" not in written():
            pass
        assert written()["waiting"] == {
            "for": ["south", "west"],
            "since": "2027-01-15T08:00:00+00:00",
        }
        assert written()["state"].startswith(
            "waiting for south, west: no message of this round for"
        )
    assert written() == {"state": "done", "round": 7, "residual": None, "bytes": 90}
