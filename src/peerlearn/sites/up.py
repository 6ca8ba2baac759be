"""All agents of a network as real processes on this machine, and an eye on them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peerlearn.errors import InputError, NetworkError, PeerlearnError
from peerlearn.experiments.predictions import predict
from peerlearn.sites.plan import Plan

LOOK_EVERY = 0.25  # seconds
STOP_WITHIN = 15.0  # seconds for agents to save and end
MOST_STARTS = 4  # of one agent that somebody keeps killing


@dataclass
class Agent:
    """One process, and what is known of it."""

    name: str
    folder: Path
    starts: int = 0
    process: subprocess.Popen[bytes] | None = None
    status: dict[str, Any] = field(default_factory=dict)

    def start(self) -> None:
        self.starts += 1
        with (self.folder / "output.txt").open("ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "peerlearn", "agent", str(self.folder / "site.toml")],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,  # Ctrl-C is for `up`, which then ends the agents in order
            )

    @property
    def state(self) -> str:
        code = self.process.poll() if self.process else None
        if code is None:
            return str(self.status.get("state", "starting"))
        return "done" if code == 0 else "killed" if code < 0 else "failed"

    def look(self) -> None:
        with suppress(OSError, ValueError):
            self.status = json.loads((self.folder / "status.json").read_text(encoding="utf-8"))

    def last_words(self) -> str:
        """The last line it said."""
        try:
            lines = (self.folder / "output.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1].removeprefix("peerlearn: ") if lines else "it said nothing"


def run_up(plan: Plan, watch: Callable[[Sequence[Agent]], None]) -> list[Agent]:
    """Start all agents and wait for them; `watch` is shown how they are doing. Killed agents are started again."""
    agents = [Agent(name, plan.folder(name)) for name in plan.agents]
    for agent in agents:
        (agent.folder / "status.json").unlink(missing_ok=True)
    try:
        for agent in agents:
            agent.start()
        while any(agent.state not in ("done", "failed") for agent in agents):
            for agent in agents:
                agent.look()
                if agent.state == "killed":
                    if agent.starts >= MOST_STARTS:
                        raise NetworkError(f"agent {agent.name} was killed {agent.starts} times: see {agent.folder}")
                    agent.start()
            watch(agents)
            if failed := [agent for agent in agents if agent.state == "failed"]:
                first = failed[0]
                raise NetworkError(f"agent {first.name} failed: {first.last_words()}; see {first.folder / 'agent.log'}")
            time.sleep(LOOK_EVERY)
        for agent in agents:
            agent.look()
        watch(agents)
    finally:
        end(agents)
    return agents


def end(agents: Sequence[Agent]) -> None:
    """Ask all that still run to save and end, and see that they do."""
    running = [agent.process for agent in agents if agent.process and agent.process.poll() is None]
    for process in running:
        process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + STOP_WITHIN
    for process in running:
        try:
            process.wait(max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def scores(plan: Plan) -> dict[str, str]:
    """What each agent's model makes of the rows that nobody trained on."""
    told = {}
    for name in plan.agents:
        try:
            told[name] = predict(plan.folder(name) / "model.npz", plan.test).score or "no score"
        except (PeerlearnError, InputError) as error:
            told[name] = str(error)
    return told
