"""What real sites are like: agents are killed and stopped, links cut, disks full, strangers at the
door.

Every run must end with the bits of an undisturbed simulation and the same ledger.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time

import numpy as np
import pytest

from peerlearn.network.peers.certificates import make
from peerlearn.network.peers.frame import CHUNK, Kind
from tests.support.fault_agents import AGENTS, FAILED, GAVE_UP, LONG, Ring
from tests.support.proxy import Proxy
from tests.support.strangers import (
    call,
    call_as_agent,
    call_in_the_clear,
    expired_identity,
    nonsense_of_agent_1,
    speaker_of_agent_1,
)
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.processes

MIDDLE = LONG // 2  # in the long call
EARLY = 150  # among the many short calls of a solver
HUNG_UP = (
    "OK",
    "UNAVAILABLE",
    "PERMISSION_DENIED",
    "INVALID_ARGUMENT",
    "ALREADY_EXISTS",
)  # ways in which an agent ends a stream


@pytest.fixture
def ring(tmp_path):
    with Ring(tmp_path) as agents:
        yield agents


def test_undisturbed(ring):
    ring.start()
    ring.must_end_as_expected()
    assert not list((ring.path(0) / "checkpoints").glob("sent-*")), (
        "a finished run leaves no frames behind"
    )


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
    ring.wait_for_log(2, "agent agent-3 has been silent for ")
    ring.signal(3, signal.SIGCONT)
    ring.must_end_as_expected()


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
    newest = max(
        (ring.path(3) / "checkpoints").glob("checkpoint-*.bin"),
        key=lambda path: path.stat().st_mtime_ns,
    )
    newest.write_bytes(newest.read_bytes()[:-20])
    ring.start(3)
    ring.must_end_as_expected()
    assert "a checkpoint was damaged" in ring.log(3)


def test_a_lost_checkpoint_is_said_to_whoever_lost_it(ring):
    ring.start(silence=0.4)
    ring.wait_until_deleted(3)
    ring.kill(3)
    kept = ring.path(3) / "checkpoints"
    kept.rename(ring.path(3) / "elsewhere")
    ring.start(3, silence=0.4)
    ring.processes[3].join(20)
    assert ring.processes[3].exitcode == GAVE_UP
    assert "agent agent-3 is back in round 1" in ring.log(3)
    assert "give agent agent-3 its checkpoint back" in ring.log(3)
    for file in kept.iterdir():
        file.unlink()
    kept.rmdir()
    (ring.path(3) / "elsewhere").rename(kept)
    ring.start(3, silence=0.4)
    ring.must_end_as_expected()


def test_a_full_disk_is_no_reason_to_stop(ring):
    ring.start(0, 1, 3, 4)
    ring.start(2, file_limit=20_000)
    ring.must_end_as_expected()
    assert "no checkpoint could be written" in ring.log(2)


def test_survivors_give_up_together_and_all_can_go_on_later(ring):
    ring.start(give_up_after=15.0)
    ring.wait_for_round(EARLY)
    ring.kill(1)
    codes = ring.ends()
    assert [codes[k] for k in (0, 2, 3, 4)] == [GAVE_UP] * 4
    assert "gave up after agent agent-1 had been silent for" in ring.log(0)
    assert all("agent agent-1 had been silent" in ring.log(k) for k in (3, 4)), (
        "who is far away is told why"
    )
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
        "is not signed by our authority": lambda: call(
            port, ring.folder, tmp_path / "foreign" / "agent-1"
        ),
        "certificate has expired": lambda: call(port, ring.folder, expired / "agent-1"),
        "does not speak TLS": lambda: call_in_the_clear(port),
        "refused agent visitor, which is not a neighbor": lambda: call_as_agent(
            port, ring.folder, "visitor"
        ),
    }.items():
        assert knock() in ("hung up", "PERMISSION_DENIED"), sign
        ring.wait_for_log(2, sign)
    ring.start(1)
    ring.must_end_as_expected()


def test_a_neighbor_that_talks_nonsense_harms_nobody(ring):
    """It has a valid certificate and is expected, but sends garbage, frames of others, claims that
    are lies.
    """
    ring.start(0, 2, 3, 4)
    ring.wait_for_log(3, "connected to agent agent-4")
    for nonsense in nonsense_of_agent_1():
        ended = call_as_agent(ring.ports[2], ring.folder, "agent-1", nonsense)
        assert ended in HUNG_UP, nonsense
    assert ring.processes[2].is_alive()
    assert ring.log(2).count("the connection is opened anew") >= 4
    ring.start(1)
    ring.must_end_as_expected()


def test_nonsense_beside_an_honest_agent_is_refused_and_harms_nobody(ring):
    ring.start()
    ring.wait_for_round(EARLY)
    connected = ring.log(2).count("connected to agent agent-1")
    for nonsense in nonsense_of_agent_1():
        assert call_as_agent(ring.ports[2], ring.folder, "agent-1", nonsense) in HUNG_UP, nonsense
    assert ring.log(2).count("connected to agent agent-1") == connected, "the honest link stays up"
    ring.must_end_as_expected()
    assert "refused a second process of agent agent-1, whose first one is connected" in ring.log(2)


@pytest.mark.parametrize("claimed", [1, EARLY, 2**48 - 1, 2**64 - 1])
def test_no_claim_makes_the_real_agent_unwelcome(ring, claimed):
    """Somebody with its certificate speaks in its place while it is away: found from outside with
    2^64 - 1.
    """
    ring.start()
    ring.wait_for_round(EARLY, agent=1)
    ring.kill(1)
    liar = speaker_of_agent_1(done=claimed)
    for frames in (
        [liar.hello()],
        [liar.hello(claimed, 7)],
        [liar.hello(), liar.word(Kind.ALIVE, claimed, 7)],
    ):
        assert call_as_agent(ring.ports[2], ring.folder, "agent-1", frames) in HUNG_UP
    ring.start(1)
    ring.must_end_as_expected()


def test_what_somebody_else_sent_does_not_stand_in_the_way(ring):
    """The first chunk of a larger row, left behind while the agent was away, blocked its own rows
    for good.
    """
    ring.start()
    ring.wait_for_round(EARLY, agent=1)
    ring.kill(1)
    time.sleep(1)
    liar = speaker_of_agent_1(done=ring.round(2))
    chunk = liar.frames(Kind.ROW, np.zeros(CHUNK // 8 + 1), ring.round(2) + 1)[0]
    assert call_as_agent(ring.ports[2], ring.folder, "agent-1", [liar.hello(), chunk]) in HUNG_UP
    ring.start(1)
    ring.must_end_as_expected()


def test_a_hello_of_somebody_else_after_a_restart_bars_nobody(ring):
    """The first hello used to say how far the agent can be."""
    ring.start()
    ring.wait_for_round(MIDDLE, agent=2)
    ring.kill(1, 2)
    ring.start(2)
    ring.wait_for_log(2, "going on from the checkpoint")
    liar = speaker_of_agent_1(done=3)
    ring.wait_until(
        lambda: call_as_agent(ring.ports[2], ring.folder, "agent-1", [liar.hello()]) == "OK",
        "agent 2 to listen",
    )
    ring.start(1)
    ring.must_end_as_expected()


def test_an_agent_that_stood_still_does_not_blame_its_neighbors(ring):
    ring.start(0, 1, 2, 4)
    ring.start(3, give_up_after=10.0)
    ring.wait_for_round(EARLY, agent=3)
    ring.signal(3, signal.SIGSTOP)
    time.sleep(12)  # longer than give_up_after: this time has to pass
    ring.signal(3, signal.SIGCONT)
    ring.must_end_as_expected()


def test_a_second_process_in_the_same_folder_touches_nothing(ring):
    ring.start()
    ring.wait_for_round(MIDDLE, agent=1)
    ring.start_again(1, "agent-1", listen=f"127.0.0.1:{ring.ports[1]}")
    ring.seconds[0].join(PATIENCE)
    assert ring.seconds[0].exitcode == FAILED
    assert "this agent cannot listen on" in ring.log(1)
    ring.must_end_as_expected()


def test_an_empty_second_stream_does_not_hurt_the_first(ring):
    """Found from outside: it killed the honest link for good, and in the end the whole ring."""
    ring.start()
    ring.wait_for_round(EARLY)
    silent = threading.Event()

    def nothing():
        silent.wait(PATIENCE)
        yield from ()

    threads = [
        threading.Thread(
            target=call_as_agent,
            args=(ring.ports[2], ring.folder, "agent-1", nothing()),
            daemon=True,
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    ring.must_end_as_expected()
    silent.set()
    assert ring.log(2).count("connected to agent agent-1") == 1


def test_an_agent_that_is_started_twice_is_told_so_and_the_first_goes_on(ring):
    ring.start()
    ring.wait_for_round(EARLY, agent=1)
    ring.start_again(1, "agent-1-elsewhere")
    ring.wait_for_log(
        2,
        "refused a second process of agent agent-1, whose first one is connected (started twice?)",
    )
    ring.must_end_as_expected()
    assert ring.log(2).count("connected to agent agent-1") == 1
    second = ring.folder / "agent-1-elsewhere" / "agent.log"
    assert "agent agent-2 refused a second process of agent agent-1" in second.read_text()


def test_a_second_process_ends_by_itself_if_the_first_stays(ring):
    ring.start(hang_at=40)
    ring.wait_for_round(40, agent=1)
    ring.start_again(1, "agent-1-elsewhere", silence=0.5)
    ring.seconds[0].join(PATIENCE)
    assert ring.seconds[0].exitcode == GAVE_UP
    said = (ring.folder / "agent-1-elsewhere" / "agent.log").read_text()
    assert "stop one of the two, and start this one again if it is the right one" in said
    assert all(process.is_alive() for process in ring.processes.values()), (
        "the others need not hear of it"
    )


def test_a_stream_that_is_replaced_ends_with_a_status(ring):
    """The handler used to be cancelled, which sends no status: the dialer never learned that its
    stream was over.
    """
    ring.start(0, 2, 3, 4)
    ring.wait_for_log(3, "connected to agent agent-4")
    agent, enough = speaker_of_agent_1(), threading.Event()

    def hello_and_no_more():
        yield agent.hello()
        enough.wait(PATIENCE)

    ended = []
    streams = [
        threading.Thread(
            target=lambda: ended.append(
                call_as_agent(
                    ring.ports[2], ring.folder, "agent-1", hello_and_no_more(), within=PATIENCE
                )
            )
        )
        for _ in range(2)
    ]
    for number, stream in enumerate(streams, start=1):
        stream.start()
        ring.wait_until(
            lambda n=number: ring.log(2).count("connected to agent agent-1") == n,
            "the stream to be up",
        )
    streams[0].join(PATIENCE)
    assert ended == ["UNAVAILABLE"]
    enough.set()
    streams[1].join(PATIENCE)
    ring.start(1)
    ring.must_end_as_expected()


def test_an_agent_comes_back_though_another_process_took_its_place_while_it_was_silent(ring):
    ring.start()
    ring.wait_for_round(EARLY)
    ring.signal(1, signal.SIGSTOP)
    ring.wait_for_log(2, "agent agent-1 has been silent for")
    place_taken, stands = threading.Event(), ring.round(2)

    def hello_and_no_more():
        yield speaker_of_agent_1(done=stands).hello()
        place_taken.wait(4)

    thread = threading.Thread(
        target=call_as_agent,
        args=(ring.ports[2], ring.folder, "agent-1", hello_and_no_more()),
        daemon=True,
    )
    thread.start()
    ring.wait_until(
        lambda: ring.log(2).count("connected to agent agent-1") == 2,
        "the second process to be let in",
    )
    ring.signal(1, signal.SIGCONT)
    thread.join()
    ring.must_end_as_expected()


def test_a_neighbor_that_is_alive_and_sends_nothing_is_named_and_given_up_in_the_end(ring):
    ring.start(0, 2, 3, 4, silence=1.0, give_up_after=15.0, longest_round=6.0)
    ring.start(1, silence=1.0, give_up_after=15.0, hang_at=40)
    ring.wait_for_log(2, "has waited for agent agent-1 for 1.")
    assert "it is there, but its message has not come" in ring.log(2)
    assert "agent agent-1 has been silent" not in ring.log(2)
    ring.wait_until(
        lambda: "waiting for agent-1: no message of this round for 3 s" in ring.state(2),
        "the state",
    )
    ring.wait_until(
        lambda: "which waits for agent-1" in ring.state(3),
        "agent 3 to know whom its neighbor waits for",
    )
    codes = ring.ends(but=(1,))
    assert [codes[k] for k in (0, 2, 3, 4)] == [GAVE_UP] * 4
    assert "had waited for agent" in ring.log(0)
    assert "agent-1" in ring.log(0).rpartition("gave up after round")[2], (
        "whoever gives up first knows who it is"
    )
    ring.kill(1)
    ring.start()
    ring.must_end_as_expected()


def test_a_program_that_makes_fewer_calls_is_named_at_once(ring):
    ring.start(0, 2, 3, 4)
    ring.start(1, program={"last": False})
    codes = ring.ends()
    assert all(codes[k] for k in (0, 2, 3, 4))
    assert "agent agent-1 has finished its work, and agent agent-" in ring.log(0) + ring.log(2)
    assert "run the same program, with the same number of calls" in ring.log(3) + ring.log(4)


def test_a_program_that_makes_other_calls_is_named_and_ends_the_run(ring):
    """What it sends has another shape, however often it is asked to send it again."""
    ring.start(0, 2, 3, 4)
    ring.start(1, program={"shorter": 1})
    assert all(ring.ends())
    assert (
        "agent agent-1 sent a row of float64 (301,), but 300 numbers of float64 were expected"
        in ring.log(0) + ring.log(2)
    )
    assert "it probably runs another program; run the same one at all agents" in ring.log(3)


def test_idle_connections_do_not_keep_neighbors_out(ring):
    """1,500 of them, without a certificate, at the usual limit of 1,024 open files."""
    ring.start(0, 2, 3, 4, open_files=1024)
    ring.wait_for_log(3, "connected to agent agent-4")
    with contextlib.ExitStack() as opened:
        for _ in range(1500):
            opened.enter_context(socket.create_connection(("127.0.0.1", ring.ports[2]), PATIENCE))
        ring.start(1)
        ring.must_end_as_expected()
    assert "connections of callers that did not show a certificate" in ring.log(2)


def test_settings_that_differ_end_both_with_key_and_values(ring):
    ring.start(0, 1, 2, 3)
    ring.start(4, settings={"alpha": 2.0})
    codes = ring.ends()
    assert codes[4] == FAILED
    assert "disagree on alpha: nothing at agent-0, 2.0 at agent-4" in ring.log(0) + ring.log(4)
    assert all(codes)
