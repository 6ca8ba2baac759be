"""What an agent replays after it was killed."""

from __future__ import annotations

import logging
import threading
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

from peerlearn.errors import Mismatch, NetworkError
from peerlearn.network.distributed import DistributedNetwork
from peerlearn.network.peers import replay as memories
from peerlearn.network.peers.frame import VERSION, Kind, receipt_of
from peerlearn.network.peers.journal import JOURNAL, NAMES, Checkpoint, Journal
from peerlearn.network.peers.link import Link, Speaker
from peerlearn.network.peers.replay import Replay
from tests.support.journals import Full


class Agent:
    """An agent with two neighbors whose rounds happen at once: what it hears depends on the round
    alone.
    """

    def __init__(self, folder, *, run="run", name="north", settings=None, own=None):
        self.me = Speaker(run, 0, name, {"alpha": "1"} if settings is None else settings)
        self.links = {k: Link(self.me, k, f"agent-{k}", 20) for k in (1, 2)}
        self.folder, self.bytes_sent = folder, 0
        self.memory = Replay(
            self.me,
            self.links,
            Journal(folder),
            lock=threading.Lock(),
            own_settings=own or {"rows": "7"},
            save_every=1e9,
            bytes_sent=lambda: self.bytes_sent,
        )

    @property
    def saved(self):
        """What neighbors are told."""
        (told,) = {link.saved[0] for link in self.links.values()}
        return told

    def round(self):
        """One round outside of the contract: frames go out, rows come in."""
        n = self.me.done + 1
        frames = self.me.frames(Kind.ROW, np.array([float(n)]), n)
        for link in self.links.values():
            link.send(n, frames)
            link.receipt = receipt_of([bytes([n])], link.receipt)
            link.inbox.finish(n)
        self.me.done = n
        return np.array([[n, n / 2]])

    def mix(self, what="mix"):
        (x,) = self.memory.call(what, 1, lambda: (self.round(),))
        return x.tolist()

    def run(self, rounds, save=()):
        for n in range(1, rounds + 1):
            self.mix()
            if n in save:
                self.memory.save()
        return self


def tear(folder, number):
    (folder / NAMES[number % 2]).write_bytes(b"torn")


class TestMemory:
    def test_a_restarted_agent_is_where_its_checkpoint_was_before_its_program_begins(
        self, tmp_path
    ):
        """A neighbor may be greeted at any moment, also while calls are being given back."""
        Agent(tmp_path).run(7, save=(3, 5))
        agent = Agent(tmp_path)
        assert (agent.me.done, agent.saved) == (5, 3)
        assert all(link.inbox.done == 5 for link in agent.links.values())

    def test_calls_are_given_back_and_then_computed(self, tmp_path):
        Agent(tmp_path).run(7, save=(3, 5))
        agent = Agent(tmp_path)
        assert [agent.mix() for _ in range(5)] == [[[n, n / 2]] for n in range(1, 6)]
        assert agent.me.done == 5
        assert agent.mix() == [[6, 3.0]]
        assert agent.me.done == 6

    def test_a_torn_checkpoint_leaves_the_one_before_and_says_so(self, tmp_path, caplog):
        Agent(tmp_path).run(7, save=(3, 5))
        tear(tmp_path, 2)
        agent = Agent(tmp_path)
        assert (agent.me.done, agent.saved) == (3, 0)
        assert "a checkpoint was damaged" in caplog.text
        assert [agent.mix() for _ in range(7)] == [[[n, n / 2]] for n in range(1, 8)]

    def test_neighbors_are_never_told_more_than_the_checkpoint_before_the_last_has(self, tmp_path):
        agent, told = Agent(tmp_path), []
        for _ in range(5):
            agent.mix()
            agent.memory.save()
            told.append(agent.saved)
        assert told == [0, 1, 2, 3, 4]

    @pytest.mark.parametrize("torn", [False, True])
    def test_frames_that_neighbors_may_ask_for_again_are_still_there(self, tmp_path, torn):
        first = Agent(tmp_path).run(6, save=(2, 4, 6))
        if torn:
            tear(tmp_path, 3)
        second, stands = Agent(tmp_path), 4 if torn else 6
        for k, link in second.links.items():
            assert link.outbox.entries(0, stands) == first.links[k].outbox.entries(0, stands)
            assert link.outbox.after(stands) == []

    def test_frames_that_neighbors_have_saved_are_not_kept(self, tmp_path):
        agent, receipts = Agent(tmp_path), []
        for n in range(1, 9):
            agent.mix()
            for link in agent.links.values():
                receipts.append(link.outbox.receipt)
                assert n < 3 or link.outbox.drop_saved(
                    n - 2, receipts[-5]
                )  # two rounds ago, of two neighbors
            agent.memory.save()
        assert len(list(tmp_path.glob("sent-*"))) <= 4
        again = Agent(tmp_path)
        assert all(link.outbox.dropped == 6 for link in again.links.values())
        assert [n for n, _ in again.links[1].outbox.entries(6, 99)] == [7, 8]

    def test_of_another_release_is_refused(self, tmp_path, monkeypatch):
        Agent(tmp_path).run(3, save=(2, 3))
        monkeypatch.setattr(memories, "VERSION", VERSION + 1)
        with pytest.raises(
            Mismatch,
            match=rf"another release of peerlearn \(wire format {VERSION} there, {VERSION + 1}",
        ):
            Agent(tmp_path)

    def test_of_a_release_before_versions_were_kept_is_refused(self, tmp_path):
        agent = Agent(tmp_path).run(3)
        about = agent.memory._about(finished=False)
        del about["wire"]
        Journal(tmp_path).save(Checkpoint(about))
        with pytest.raises(
            Mismatch,
            match=r"wire format 1 there, 2 here.: go on with that release, or start all agents",
        ):
            Agent(tmp_path)

    def test_bytes_that_were_sent_are_counted_on(self, tmp_path):
        agent = Agent(tmp_path)
        agent.bytes_sent = 1000
        agent.run(3, save=(2, 3))
        assert Agent(tmp_path).memory.bytes_before == 1000
        assert Agent(tmp_path / "new").memory.bytes_before == 0

    def test_receipts_of_what_was_taken_come_back(self, tmp_path):
        first = Agent(tmp_path).run(6, save=(2, 4, 6))
        second = Agent(tmp_path)
        for k, link in second.links.items():
            assert (link.receipt, link.saved) == (first.links[k].receipt, first.links[k].saved)
            assert link.outbox.receipt == first.links[k].outbox.receipt
            assert link.saved[0] == 4

    def test_a_full_disk_does_not_stop_a_run(self, tmp_path, monkeypatch, caplog):
        agent = Agent(tmp_path).run(2, save=(1, 2))
        enough = Full(monkeypatch)("replace")
        agent.mix()
        agent.memory.save()
        agent.memory.save()
        assert (agent.me.done, agent.saved) == (3, 1)
        enough()
        assert Agent(tmp_path).me.done == 2
        agent.mix()
        agent.memory.save()
        assert (Agent(tmp_path).me.done, agent.saved) == (4, 2)
        assert [n for n, _ in Agent(tmp_path).links[1].outbox.entries(0, 99)] == [1, 2, 3, 4]
        warnings = [
            record.message for record in caplog.records if record.levelno == logging.WARNING
        ]
        assert len(warnings) == 2  # once when it begins and once when it ends
        assert "no checkpoint could be written" in warnings[0]
        assert "are written to" in warnings[1]

    def test_checkpoints_are_due_by_the_clock(self, tmp_path, monkeypatch):
        clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
        monkeypatch.setattr(memories, "time", clock)
        agent = Agent(tmp_path)
        agent.mix()
        assert not list(tmp_path.glob("checkpoint*"))
        clock.now = 2e9
        agent.mix()
        assert Agent(tmp_path).me.done == 2

    def test_a_finished_run_is_known_to_be_finished(self, tmp_path):
        agent = Agent(tmp_path).run(3, save=(2,))
        assert not agent.memory.finished
        agent.memory.save(finished=True)
        again = Agent(tmp_path)
        assert (again.memory.finished, again.me.done) == (True, 3)
        assert again.links[1].outbox.after(0) == agent.links[1].outbox.after(0)
        again.memory.forget()
        assert not (tmp_path / JOURNAL).exists()
        assert not list(tmp_path.glob("sent-*"))
        last = Agent(tmp_path)
        assert (last.memory.finished, last.me.done) == (True, 3)

    def test_a_finished_run_is_known_to_be_finished_though_its_last_checkpoint_is_torn(
        self, tmp_path
    ):
        """Its neighbors have heard that it is done, and may have forgotten the run."""
        agent = Agent(tmp_path).run(3, save=(1, 2))
        agent.memory.save(finished=True)
        tear(tmp_path, agent.memory._journal.sequence)
        assert Agent(tmp_path).memory.finished

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            ({"run": "walk"}, "the run: run there, walk here"),
            ({"name": "west"}, "the agent: north there, west here"),
            ({"settings": {"alpha": "2"}}, "alpha: 1 there, 2 here"),
            ({"settings": {}}, "alpha: 1 there, None here"),
            ({"settings": {"alpha": "1", "beta": "3"}}, "beta: None there, 3 here"),
            ({"own": {"rows": "8"}}, "rows: 7 there, 8 here"),
        ],
        ids=["run", "agent", "value", "lacking", "more", "own"],
    )
    def test_a_checkpoint_of_another_run_is_refused_with_the_key(self, tmp_path, changed, said):
        Agent(tmp_path).run(2, save=(2,))
        with pytest.raises(
            Mismatch,
            match=f"is of a run that differs in {said}; set it back, or start all agents anew",
        ):
            Agent(tmp_path, **changed)

    def test_another_program_is_refused(self, tmp_path):
        Agent(tmp_path).run(3, save=(3,))
        with pytest.raises(
            NetworkError,
            match="is of another program, mix there and flood here: go on with the one",
        ):
            Agent(tmp_path).mix("flood")

    def test_a_program_with_other_rounds_is_refused(self, tmp_path):
        Agent(tmp_path).run(3, save=(3,))
        agent = Agent(tmp_path)
        agent.mix()
        agent.memory.call("mix", 2, lambda: ())
        with pytest.raises(
            NetworkError, match="is of another program, round 3 there and round 4 here"
        ):
            agent.mix()


class Alone(DistributedNetwork):
    """One agent, no neighbors, and the memory of `PeerNetwork`; saves in the rounds it is
    told to.
    """

    def __init__(self, folder, save_at=()):
        super().__init__(nx.empty_graph(1), "metropolis", np.zeros(1, np.intp), 0)
        self.me, self.save_at, self.computed = Speaker("run", 0, "north", {}), save_at, 0
        self.memory = Replay(
            self.me,
            {},
            Journal(folder),
            lock=threading.Lock(),
            own_settings={},
            save_every=1e9,
            bytes_sent=lambda: 0,
        )

    def _new_halo(self, links, width, dtype):
        def swap():
            self.me.done += 1
            self.computed += 1

        return SimpleNamespace(rows=np.zeros((1, width), dtype), swap=swap, free=lambda: None)

    def _post(self, letters):
        return []

    def _call(self, what, rounds, compute, sending):
        return self.memory.call(what, rounds, compute)

    def _resume(self, rounds, shape):
        return self.memory.resume(rounds, shape)

    def _record_progress(self, done, now, before):
        self.memory.record_progress(done, now, before)
        if done in self.save_at:
            self.memory.save()


STEPS = np.array(
    [[1.0, 0.5, 0.0], [0.5, 0.1, 0.3], [1.5, -0.2, 0.1], [0.3, 0.3, 0.3], [1.1, 0.1, -0.4]]
)


class TestRecurrence:
    @pytest.mark.parametrize("killed_after", [1, 2, 3, 4, 5])
    def test_goes_on_in_the_round_in_which_it_was_saved(self, tmp_path, killed_after):
        """Also in the last one: the call has not returned, and all its rounds are done."""
        x = np.array([[1.0, -2.0, 0.7]])
        expected = Alone(tmp_path / "calm").recur(x, STEPS)
        Alone(tmp_path, save_at=(killed_after,)).recur(x, STEPS)
        again = Alone(tmp_path)
        assert again.me.done == killed_after
        np.testing.assert_array_equal(again.recur(x, STEPS), expected)
        assert (again.computed, again.me.done) == (5 - killed_after, 5)

    def test_a_second_one_after_it_begins_anew(self, tmp_path):
        x = np.array([[1.0, -2.0, 0.7]])
        expected = Alone(tmp_path / "calm").recur(Alone(tmp_path / "first").recur(x, STEPS), STEPS)
        Alone(tmp_path, save_at=(3,)).recur(x, STEPS)
        again = Alone(tmp_path)
        np.testing.assert_array_equal(again.recur(again.recur(x, STEPS), STEPS), expected)

    def test_of_another_program_is_refused(self, tmp_path):
        x = np.array([[1.0, -2.0, 0.7]])
        Alone(tmp_path, save_at=(3,)).recur(x, STEPS)
        with pytest.raises(NetworkError, match="another program, recur there and mix here"):
            Alone(tmp_path).mix(x)

    @pytest.mark.parametrize(
        ("width", "rounds"), [(3, 2), (1, 5)], ids=["fewer rounds", "other rows"]
    )
    def test_of_fewer_rounds_or_other_rows_is_refused(self, tmp_path, width, rounds):
        Alone(tmp_path, save_at=(3,)).recur(np.array([[1.0, -2.0, 0.7]]), STEPS)
        with pytest.raises(NetworkError, match="another program"):
            Alone(tmp_path).recur(np.ones((1, width)), STEPS[:rounds])
