"""A whole network of real processes on this machine, from one file."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from peerlearn import SimulatedNetwork
from peerlearn.algorithms.standardise import mean_and_deviation
from peerlearn.cli import main
from peerlearn.errors import Stopped
from peerlearn.models import archive
from peerlearn.sites import up
from peerlearn.sites.plan import read_plan
from peerlearn.sites.site_folders import write_site_folders
from peerlearn.sites.training import make_model
from peerlearn.sites.view import LiveView, live, table
from peerlearn.system.folder_lock import is_taken, lock_folder
from tests.support.pages import ROOT
from tests.support.site_processes import ends, is_running, started, status, wait_for, wait_for_round
from tests.support.waiting import PATIENCE

NAMES = ["agent-0", "agent-1", "agent-2"]
SMALLER = {  # than the example, and some thousand rounds
    "agents = 4": "agents = 3",
    '"ring"': '"linear"',
    "n_hidden = 200": "n_hidden = 30",
    'solver = "auto"': 'solver = { name = "admm", tolerance = 1e-3, averaging = "chebyshev" }',
    "../peerlearn-up": "out",
}


@pytest.fixture
def network(tmp_path):
    """examples/network.toml, shrunk."""
    text = (ROOT / "examples/network.toml").read_text()
    for old, new in SMALLER.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    path = tmp_path / "network.toml"
    path.write_text(text + "\n[patience]\nsave_every = 0.2\n")
    return path


@pytest.mark.processes
def test_stopped_by_ctrl_c_and_an_agent_killed(network, tmp_path):
    out, command = tmp_path / "out", ("up", "network.toml")
    with started(command, folder=tmp_path) as running:
        wait_for_round(out / "agent-1", 100, running)
        running[0].send_signal(signal.SIGINT)
        ((code, words),) = ends(running, tmp_path)
    assert (code, words) == (
        130,
        "peerlearn: stopped by Ctrl-C; the same command goes on where this ended\n",
    )
    for name in NAMES:
        assert not is_running(out / name)
        assert status(out / name)["state"] == "stopped"
        assert list((out / name / "checkpoints").glob("checkpoint-*.bin"))
        assert not (out / name / "model.npz").exists()
    stopped = status(out / "agent-1")["round"]

    with started(command, folder=tmp_path) as running:
        wait_for_round(out / "agent-1", stopped + 100, running)
        killed = int((out / "agent-1" / ".lock").read_text())
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: is_running(out / "agent-1"), "agent-1 started again", running)
        ((code, words),) = ends(running, tmp_path)
    assert code == 0, words
    assert int((out / "agent-1" / ".lock").read_text()) != killed
    header, _, *lines = [line.split() for line in words.splitlines() if line.strip()]
    assert header == [
        "agent",
        "state",
        "round",
        "residual",
        "MB",
        "sent",
        "starts",
        "test",
        "accuracy",
    ]
    assert [line[:2] for line in lines[:3]] == [[name, "done"] for name in NAMES]
    assert [line[5] for line in lines[:3]] == ["1", "2", "1"]
    assert all(float(line[6]) > 70 and line[7] == "%" for line in lines[:3])
    assert [line[:2] for line in lines[3:6]] == [
        ["Test", "accuracy"],
        ["alone", lines[4][1]],
        ["together", lines[0][6]],
    ]
    assert lines[6][:3] == ["in", "one", "place"]
    assert float(lines[4][1]) < float(lines[0][6])
    assert lines[7][-1] == "out"
    assert max(map(len, words.splitlines())) <= 80
    models = [archive.load(out / name / "model.npz").model.coefficients_[0] for name in NAMES]
    for other in models[1:]:
        assert np.linalg.norm(other - models[0]) <= 2e-3 * np.linalg.norm(models[0])
    for name in NAMES:
        assert not is_running(out / name)
        assert status(out / name)["state"] == "done"
        assert "trained with ADMM" in (out / name / "agent.log").read_text()


def is_gone(process):
    """Whether a process that is not our child has ended; one that nobody waits for stays as a
    zombie.
    """
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.processes
def test_a_killed_up_leaves_no_agents_and_the_next_one_goes_on(network, tmp_path):
    """The next one is started at once, while the agents of the first are still saving."""
    out, command = tmp_path / "out", ("up", "network.toml")
    with started(command, folder=tmp_path) as running:
        wait_for_round(out / "agent-1", 100, running)
        agents = [int((out / name / ".lock").read_text()) for name in NAMES]
        assert not any(map(is_gone, agents))
        running[0].kill()
        running[0].wait()
        with started(command, folder=tmp_path) as again:
            wait_for(lambda: all(map(is_gone, agents)), "the end of the agents", again)
            ((code, words),) = ends(again, tmp_path)
    assert code == 0, words
    plan = read_plan(network)
    simulated = SimulatedNetwork(plan.graph, plan.weights, exact_order=True)
    mean, deviation = mean_and_deviation(simulated, [X for X, _ in plan.rows.shares])
    shares = [((X - mean[k]) / deviation[k], y) for k, (X, y) in enumerate(plan.rows.shares)]
    wanted = make_model(plan.model, simulated).fit(shares).coefficients_
    for k, name in enumerate(NAMES):
        log = (out / name / "agent.log").read_text()
        assert "peerlearn up is gone: saving and ending" in log
        assert "going on from the checkpoint of round" in log
        assert np.array_equal(
            archive.load(out / name / "model.npz").model.coefficients_[0], wanted[k]
        )


def test_agents_of_an_earlier_run_are_waited_for(tmp_path):
    agent, released = up.Agent("north", tmp_path), threading.Event()
    assert not is_taken(tmp_path)
    with lock_folder(tmp_path, "agent north"):
        assert is_taken(tmp_path)
        view, stop = LiveView(), threading.Event()
        waiting = threading.Thread(
            target=lambda: (up._wait_for_orphans([agent], view, stop), released.set())
        )
        waiting.start()
        sentence = "waiting for agent north of an earlier run to save and stop"
        wait_for(lambda: sentence in str(shown(view)), "the sentence", [])
        assert not released.is_set()
        stop_now = threading.Event()
        stop_now.set()
        with pytest.raises(Stopped):
            up._wait_for_orphans([agent], view, stop_now)
    assert released.wait(PATIENCE)
    waiting.join()


@pytest.mark.processes
def test_an_agent_that_does_not_end_in_time_is_ended():
    deaf = """
import signal, time
from peerlearn.sites import lifeline
lifeline.STOP_WITHIN = 0.2
signal.signal(signal.SIGTERM, signal.SIG_IGN)
lifeline.end_with_standard_input()
print(flush=True)
time.sleep(600)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", deaf],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        process.stdout.readline()
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(PATIENCE) == 128 + signal.SIGTERM


@pytest.mark.processes
def test_an_agent_that_a_person_starts_does_not_look_at_standard_input(network, tmp_path):
    write_site_folders(read_plan(network))
    command = [
        sys.executable,
        "-m",
        "peerlearn",
        "agent",
        str(tmp_path / "out" / "agent-0" / "site.toml"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    agent = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(
            lambda: status(tmp_path / "out" / "agent-0") == {"state": "connecting"},
            "connecting",
            [agent],
        )
        with pytest.raises(subprocess.TimeoutExpired):
            agent.wait(1.0)
    finally:
        agent.kill()
        agent.wait()


@pytest.mark.processes
def test_an_agent_that_fails_ends_all(network, tmp_path, monkeypatch):
    def bad_data(plan, say):
        write_site_folders(plan, say)
        (plan.folder("agent-1") / "share.npz").write_text("nothing")

    monkeypatch.setattr(up, "write_site_folders", bad_data)
    done = CliRunner().invoke(main, ["up", str(network)])
    assert (done.exit_code, done.stdout) == (2, "")
    folder = tmp_path / "out" / "agent-1"
    assert done.stderr.startswith(f"peerlearn: agent agent-1 failed: {folder / 'share.npz'} ")
    assert done.stderr.endswith(f"; its output is in {folder / 'output.txt'}\n")
    assert "share.npz" in (folder / "output.txt").read_text()
    assert done.stderr.count("\n") == 1
    for name in ("agent-0", "agent-2"):
        lock = tmp_path / "out" / name / ".lock"
        assert not lock.exists() or not is_running(
            lock.parent
        )  # it may have been ended before it came that far


def test_mistakes_are_sentences_before_anything_is_started(network, tmp_path):
    network.write_text(network.read_text().replace('"linear"', '"circle"'))
    done = CliRunner().invoke(main, ["up", str(network)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"peerlearn: network.graph in {network} is 'circle', which is not known: there are"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.processes
def test_the_agent_that_failed_first_is_named(tmp_path):
    """Others stop because of it; they have another exit code."""
    agents = []
    for name, code, words in [
        ("north", 3, "agent south ended the run"),
        ("south", 2, "no such column"),
        ("west", -9, ""),
    ]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "output.txt").write_text(f"some line\npeerlearn: {words}\n\n")
        ending = (
            f"import os; os.kill(os.getpid(), {-code})" if code < 0 else f"raise SystemExit({code})"
        )
        agents.append(
            up.Agent(
                name,
                tmp_path / name,
                process=subprocess.Popen([sys.executable, "-S", "-c", ending]),
            )
        )
    for agent in agents:
        agent.process.wait()
    assert [agent.outcome for agent in agents] == ["failed", "failed", "killed"]
    assert str(up._failure(agents)).startswith(
        "agent south failed: no such column; its output is in "
    )
    assert str(up._failure(agents[:1])).startswith(
        "agent north failed: agent south ended the run; its output is in "
    )


@pytest.mark.processes
def test_ending_agents_kills_those_that_do_not(tmp_path, monkeypatch):
    monkeypatch.setattr(up, "STOP_WITHIN", 0.1)
    deaf = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); "
        "signal.pause()"
    )
    process = subprocess.Popen([sys.executable, "-S", "-c", deaf], stdout=subprocess.PIPE)
    process.stdout.readline()
    up.end([up.Agent("north", tmp_path, process=process), up.Agent("south", tmp_path)], LiveView())
    process.stdout.close()
    assert process.returncode == -signal.SIGKILL


def shown(renderable, width=80):
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(renderable)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_view_has_room_in_80_columns(tmp_path):
    agents = [up.Agent(f"hospital-of-the-north-{k}", tmp_path, starts=2) for k in range(3)]
    for agent in agents:
        agent.status = {
            "state": "waiting for hospital-of-the-north-1, hospital-of-the-north-2",
            "round": 1_234_567,
            "residual": 1.23e-10,
            "bytes": 12_345_678_901,
        }
    lines = shown(
        table(agents, dict.fromkeys((agent.name for agent in agents), "100.0 %"), "test accuracy")
    )
    assert len([line for line in lines if line]) == 5  # header, rule, and one line each
    assert "100.0 %" in lines[-2]
    assert "12,346" in lines[-2]
    assert "1,234,567" in lines[-2]


def test_the_view_says_what_is_done_before_there_are_agents(tmp_path):
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    with live(console) as view:
        view.say("making certificates")
    assert "making certificates" in console.file.getvalue()
    view.show([up.Agent("north", tmp_path)])
    assert any("north" in line and "starting" in line for line in shown(view))
    with live(Console(file=io.StringIO())) as silent:
        silent.say("reading the data")
