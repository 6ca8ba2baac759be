"""What real sites are like: agents are killed and stopped, links cut, disks full, strangers at the door.

Every run must end with the bits of an undisturbed simulation and the same ledger.
"""

from __future__ import annotations

import signal
import time

import pytest

from peerlearn.network.peers.certificates import make
from tests.fault_agents import AGENTS, FAILED, GAVE_UP, LONG, Ring
from tests.proxy import Proxy
from tests.strangers import call, call_as_agent, call_in_the_clear, expired_identity, nonsense_of_agent_1

MIDDLE = LONG // 2  # in the long call
EARLY = 150  # among the many short calls of a solver


@pytest.fixture
def ring(tmp_path):
    with Ring(tmp_path) as agents:
        yield agents


def test_undisturbed(ring):
    ring.start()
    ring.must_end_as_expected()
    assert not list((ring.path(0) / "checkpoints").glob("sent-*")), "a finished run leaves no frames behind"


@pytest.mark.parametrize("moment", [EARLY, MIDDLE])
def test_an_agent_is_killed_and_started_again(ring, moment):
    ring.start()
    ring.wait_for_round(moment, agent=2)
    ring.kill(2)
    time.sleep(0.3)
    ring.start(2)
    ring.must_end_as_expected()
    assert "going on from the checkpoint" in ring.log(2)


@pytest.mark.parametrize("killed", [(1, 2), tuple(range(AGENTS))], ids=["neighbors", "everybody"])
def test_several_agents_are_killed_at_once(ring, killed):
    ring.start()
    ring.wait_for_round(MIDDLE)
    ring.kill(*killed)
    ring.start(*killed)
    ring.must_end_as_expected()


def test_a_stopped_agent_is_missed_and_awaited(ring):
    ring.start()
    ring.wait_for_round(EARLY, agent=3)
    ring.signal(3, signal.SIGSTOP)
    time.sleep(8)
    ring.signal(3, signal.SIGCONT)
    ring.must_end_as_expected()
    assert "agent agent-3 has been silent for 2." in ring.log(2)


def test_sigterm_saves_and_the_others_wait(ring):
    ring.start()
    ring.wait_for_round(MIDDLE)
    ring.signal(4, signal.SIGTERM)
    ring.processes[4].join(10)
    assert ring.processes[4].exitcode == GAVE_UP
    assert all(ring.processes[k].is_alive() for k in range(4))
    ring.start(4)
    ring.must_end_as_expected()


def test_frames_come_twice_late_and_in_another_order(ring):
    ring.start(mischief=True)
    ring.must_end_as_expected()


@pytest.mark.parametrize("how", ["cut", "swallow"])
def test_a_link_fails_and_heals(ring, how):
    proxy = Proxy(ring.ports[2])
    try:
        ring.start(0, 2, 3, 4)
        ring.start(1, addresses={2: f"127.0.0.1:{proxy.port}"})
        ring.wait_for_round(EARLY)
        getattr(proxy, how)()
        ring.wait_for_log(1, "agent agent-2 has been silent for")
        standing = ring.round(1)
        proxy.heal()
        ring.wait_for_round(standing + 20, agent=1)
        ring.must_end_as_expected()
    finally:
        proxy.close()


def test_a_link_that_is_cut_again_and_again(ring):
    proxy = Proxy(ring.ports[2])
    try:
        ring.start(0, 2, 3, 4)
        ring.start(1, addresses={2: f"127.0.0.1:{proxy.port}"})
        for moment in range(100, 600, 100):
            ring.wait_for_round(moment)
            proxy.cut()
            proxy.heal()
        ring.must_end_as_expected()
    finally:
        proxy.close()


def test_a_torn_checkpoint_is_noticed_and_the_one_before_will_do(ring):
    ring.start()
    ring.wait_for_round(MIDDLE)
    ring.kill(3)
    newest = max((ring.path(3) / "checkpoints").glob("checkpoint-*.bin"), key=lambda path: path.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:-20])
    ring.start(3)
    ring.must_end_as_expected()
    assert "a checkpoint was damaged" in ring.log(3)


def test_a_lost_checkpoint_is_said_to_whoever_lost_it(ring):
    ring.start()
    ring.wait_for_round(MIDDLE)
    ring.kill(3)
    kept = ring.path(3) / "checkpoints"
    kept.rename(ring.path(3) / "elsewhere")
    ring.start(3)
    ring.processes[3].join(20)
    assert ring.processes[3].exitcode == GAVE_UP
    assert "agent agent-3 is back in round 1" in ring.log(3)
    assert "give agent agent-3 its checkpoint back" in ring.log(3)
    for file in kept.iterdir():
        file.unlink()
    kept.rmdir()
    (ring.path(3) / "elsewhere").rename(kept)
    ring.start(3)
    ring.must_end_as_expected()


def test_a_full_disk_is_no_reason_to_stop(ring):
    ring.start(0, 1, 3, 4)
    ring.start(2, file_limit=20_000)
    ring.must_end_as_expected()
    assert "no checkpoint could be written" in ring.log(2)


def test_survivors_give_up_together_and_all_can_go_on_later(ring):
    ring.start(give_up_after=3.0)
    ring.wait_for_round(EARLY)
    ring.kill(1)
    codes = ring.ends()
    assert [codes[k] for k in (0, 2, 3, 4)] == [GAVE_UP] * 4
    assert "gave up after agent agent-1 had been silent for" in ring.log(0)
    assert all("agent agent-1 had been silent" in ring.log(k) for k in (3, 4)), "who is far away is told why"
    ring.start()
    ring.must_end_as_expected()


def test_strangers_are_turned_away_each_with_a_sentence(ring, tmp_path):
    make(tmp_path / "foreign", ["agent-1"])
    make(ring.folder, ["visitor"])
    expired = tmp_path / "expired"
    expired_identity(ring.folder, expired, "agent-1")
    ring.start(0, 2, 3, 4)
    ring.wait_for_log(3, "connected to agent agent-4")
    port = ring.ports[2]
    for sign, knock in {
        "the caller has no certificate": lambda: call(port, ring.folder),
        "is not signed by our authority": lambda: call(port, ring.folder, tmp_path / "foreign" / "agent-1"),
        "certificate has expired": lambda: call(port, ring.folder, expired / "agent-1"),
        "does not speak TLS": lambda: call_in_the_clear(port),
        "refused agent visitor, which is not a neighbor": lambda: call_as_agent(port, ring.folder, "visitor"),
    }.items():
        knock()
        ring.wait_for_log(2, sign)
    ring.start(1)
    ring.must_end_as_expected()


def test_a_neighbor_that_talks_nonsense_harms_nobody(ring):
    """It has a valid certificate and is expected, but sends garbage, frames of others, numbers that are none."""
    ring.start(0, 2, 3, 4)
    ring.wait_for_log(3, "connected to agent agent-4")
    for nonsense in nonsense_of_agent_1():
        call_as_agent(ring.ports[2], ring.folder, "agent-1", nonsense)
    assert ring.processes[2].is_alive()
    assert ring.log(2).count("the connection is opened anew") >= 4
    ring.start(1)
    ring.must_end_as_expected()


def test_settings_that_differ_end_both_with_key_and_values(ring):
    ring.start(0, 1, 2, 3)
    ring.start(4, settings={"alpha": 2.0})
    codes = ring.ends()
    assert codes[4] == FAILED
    assert "disagree on alpha: nothing at agent-0, 2.0 at agent-4" in ring.log(0) + ring.log(4)
    assert all(codes)
