"""Sites with their files in a folder, and their agents as real processes; none is left behind."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from peerlearn.toml_reader import toml
from tests.support.pages import ROOT
from tests.support.peer_processes import free_ports
from tests.support.waiting import PATIENCE


def write_sites(folder, names, model, *, certificates=True, **tables):
    """NAME.toml for agents in a line; `tables` are added to each, `data` by name of the agent."""
    ports = free_ports(len(names)).split(",")
    data = tables.pop("data")
    for k, name in enumerate(names):
        papers = {
            "authority": "papers/authority.pem",
            "certificate": f"papers/{name}.pem",
            "key": f"papers/{name}.key",
        }
        site = {
            "run": "study",
            "name": name,
            "address": f"127.0.0.1:{ports[k]}",
            "output": name,
            "network": {
                "agents": names,
                "links": [list(pair) for pair in itertools.pairwise(names)],
            },
            "neighbors": {names[k + 1]: f"127.0.0.1:{ports[k + 1]}"} if k + 1 < len(names) else {},
            **({"certificates": papers} if certificates else {}),
            "data": data[name],
            "model": model,
            **tables,
        }
        (folder / f"{name}.toml").write_text(toml(site), encoding="utf-8")


@contextmanager
def started(*commands, folder):
    """peerlearn *command for each, in the folder; killed at the end if they still run."""
    running = []
    ctrl_c = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a script in the background ignores it
    try:
        for number, command in enumerate(commands):
            with (folder / f"said-{number}.txt").open("wb") as said:
                running.append(
                    subprocess.Popen(
                        [sys.executable, "-W", "error", "-m", "peerlearn", *map(str, command)],
                        cwd=folder,
                        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")},
                        stdout=said,
                        stderr=subprocess.STDOUT,
                    )
                )
        signal.signal(signal.SIGINT, ctrl_c)
        yield running
    finally:
        for process in running:
            process.kill()
            process.wait()


def ends(running, folder):
    """Exit code and words of each, when all have ended."""
    said = [folder / f"said-{number}.txt" for number in range(len(running))]
    deadline = time.monotonic() + PATIENCE
    try:
        for process in running:
            process.wait(max(deadline - time.monotonic(), 0.1))
    except subprocess.TimeoutExpired:
        told = "\n".join(f"{path.name}:\n{path.read_text()}" for path in said)
        raise AssertionError(f"not all processes ended within {PATIENCE} s\n{told}") from None
    return [
        (process.returncode, path.read_text()) for process, path in zip(running, said, strict=True)
    ]


def run(*commands, folder):
    with started(*commands, folder=folder) as running:
        return ends(running, folder)


def wait_for(met, what, running):
    """Until something comes about, while these processes run."""
    deadline = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < deadline, f"{what} did not come about within {PATIENCE} s"
        assert all(process.poll() is None for process in running), (
            f"a process ended before {what} came about"
        )
        time.sleep(0.02)


def status(folder: Path):
    try:
        return json.loads((folder / "status.json").read_text())
    except FileNotFoundError:
        return {}


def wait_for_round(folder: Path, number: int, running):
    wait_for(
        lambda: status(folder).get("round", 0) >= number,
        f"round {number} of {folder.name}",
        running,
    )


def is_running(folder: Path):
    """Whether the process that last ran the agent of a folder is there."""
    try:
        os.kill(int((folder / ".lock").read_text()), 0)
    except ProcessLookupError:
        return False
    return True
