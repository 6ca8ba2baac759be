"""Runner of a whole network on this machine: starts, watches and ends one process per agent."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from peerlearn.errors import InputError, NetworkError, Stopped
from peerlearn.private_files import open_private
from peerlearn.sites.lifeline import STOP_WITHIN, lifeline
from peerlearn.sites.plan import Plan, read_plan
from peerlearn.sites.site_folders import write_site_folders
from peerlearn.system.files import result_folder
from peerlearn.system.folder_lock import is_taken, lock_folder
from peerlearn.system.stop_signals import CODES, stop_on_signals

LOOK_EVERY = 0.25  # seconds
MOST_STARTS = 4  # of one agent that is killed again and again
UNUSABLE = 2  # exit code of an agent that cannot begin
TOLD_TO_STOP = 3  # exit code of an agent that others made stop


@dataclass
class Agent:
    """One agent's process and its last status."""

    name: str
    folder: Path
    lifeline: int = subprocess.DEVNULL  # its standard input
    options: tuple[str, ...] = ()  # of peerlearn agent
    starts: int = 0
    process: subprocess.Popen[bytes] | None = None
    status: dict[str, Any] = field(default_factory=dict)

    def start(self) -> None:
        """Start the process."""
        self.starts += 1
        self.status = {}
        (self.folder / "status.json").unlink(missing_ok=True)  # it is of the process before
        with open(self.output, "ab", opener=open_private) as output:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "peerlearn",
                    "agent",
                    "--end-with-stdin",
                    *self.options,
                    str(self.folder / "site.toml"),
                ],
                stdin=self.lifeline,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for `up`, which then ends the agents in order
            )

    @property
    def output(self) -> Path:
        """File of what it printed. Unlike agent.log, it exists even if the agent cannot begin."""
        return self.folder / "output.txt"

    @property
    def code(self) -> int | None:
        """Exit code of the process, if it has ended."""
        return self.process.poll() if self.process else None

    @property
    def outcome(self) -> str | None:
        """How the process ended: "done", "killed" or "failed"; None while it runs."""
        code = self.code
        if code is None:
            return None
        if code == 0:
            return "done"
        return "killed" if code < 0 or code in CODES else "failed"

    @property
    def state(self) -> str:
        """State for people. An agent that is done may stay for its neighbors."""
        return self.outcome or str(self.status.get("state", "starting"))

    def look(self) -> None:
        """Read the status file, if it is there."""
        with suppress(OSError, ValueError):
            self.status = json.loads((self.folder / "status.json").read_text(encoding="utf-8"))

    def last_words(self) -> str:
        """Return the last line that it printed."""
        with suppress(OSError):
            text = self.output.read_text(encoding="utf-8", errors="replace")
            for line in reversed(text.splitlines()):
                if line.strip():
                    return line.removeprefix("peerlearn: ")
        return "it printed nothing"


class View(Protocol):
    """Display of what `up` is doing."""

    def say(self, doing: str) -> None: ...

    def show(self, agents: Sequence[Agent]) -> None: ...


def run_up(file: Path, view: View, *, consent: bool = False) -> tuple[Plan, list[Agent]]:
    """Run a whole network to its end.

    An agent that is killed is started again. An agent that fails ends all. consent: of all agents,
    see `run_agent`.
    """
    with stop_on_signals() as stops:
        view.say("reading the data")
        plan = read_plan(file)
        with (
            lock_folder(result_folder(plan.output, private=True), "this network", private=True),
            lifeline() as line,
        ):
            write_site_folders(plan, view.say)
            options = ("--consent",) if consent else ()
            agents = [Agent(name, plan.folder(name), line, options) for name in plan.agents]
            try:
                _run(agents, view, stops)
            finally:
                end(agents, view)
            return plan, agents


def _run(
    agents: Sequence[Agent], view: View, stops: Callable[[Callable[[str], None]], None]
) -> None:
    stop = threading.Event()
    stops(lambda reason: stop.set())  # so that no process is being started when all are ended
    _wait_for_orphans(agents, view, stop)
    view.say("starting the agents")
    for agent in agents:
        agent.output.unlink(missing_ok=True)
        agent.start()
    view.show(agents)
    view.say("Ctrl-C saves and stops")
    while any(agent.outcome != "done" for agent in agents):
        if stop.wait(LOOK_EVERY):
            raise Stopped("stopped")
        for agent in agents:
            agent.look()
            if agent.outcome == "killed":
                if agent.starts >= MOST_STARTS:
                    raise NetworkError(
                        f"agent {agent.name} was killed {agent.starts} times: see {agent.folder}"
                    )
                agent.start()
        if any(agent.outcome == "failed" for agent in agents):
            end(agents, view)
            raise _failure(agents)
    for agent in agents:
        agent.look()


def _wait_for_orphans(agents: Sequence[Agent], view: View, stop: threading.Event) -> None:
    """Wait for agents of an earlier `up` that was killed. They save and end by themselves."""
    deadline = time.monotonic() + STOP_WITHIN + 1
    for agent in agents:
        while is_taken(agent.folder) and time.monotonic() < deadline:
            view.say(f"waiting for agent {agent.name} of an earlier run to save and stop")
            if stop.wait(LOOK_EVERY):
                raise Stopped("stopped")


def _failure(agents: Sequence[Agent]) -> InputError | NetworkError:
    """Return the error of the first agent that failed by itself."""
    failed = sorted(
        (agent for agent in agents if agent.outcome == "failed"),
        key=lambda each: each.code == TOLD_TO_STOP,
    )
    first = failed[0]
    kind = InputError if first.code == UNUSABLE else NetworkError
    return kind(f"agent {first.name} failed: {first.last_words()}; its output is in {first.output}")


def end(agents: Sequence[Agent], view: View) -> None:
    """Ask all running agents to save and end, and kill them if they do not.

    They are killed at once if this is interrupted.
    """
    running = [agent.process for agent in agents if agent.process and agent.process.poll() is None]
    if not running:
        return
    view.say("agents save and stop")
    deadline = time.monotonic() + STOP_WITHIN
    try:
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(max(deadline - time.monotonic(), 0.1))
    except subprocess.TimeoutExpired:
        pass
    finally:
        for process in running:
            process.kill()
            process.wait()
