"""One process per agent on this machine, with free ports; none is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from peerlearn.sites import site_folders
from tests.support.pages import ROOT
from tests.support.waiting import PATIENCE

LINGER = 30.0  # seconds for the others to end, and to say why, when one has failed


def free_ports(count: int) -> str:
    """Return so many ports that nobody listens on: "7101,7102,..".

    They lie below those that the system gives to outgoing connections and to `bind(0)`. A port of
    that range can be taken again between the look and the agent that listens.
    """
    return ",".join(map(str, site_folders.free_ports(count)))


def run(programs: Sequence[Sequence[str]], folder: Path, timeout: float = PATIENCE) -> None:
    """python *program at once for each; all must end well, and what they printed is shown if one
    does not.
    """
    said = [folder / f"process-{number}.txt" for number in range(len(programs))]
    running: list[subprocess.Popen[bytes]] = []
    try:
        for program, path in zip(programs, said, strict=True):
            with path.open("wb") as file:
                running.append(_started(program, file))
        _wait(running, timeout)
    finally:
        for process in running:
            process.kill()
            process.wait()
    codes = [process.returncode for process in running]
    told = "\n".join(
        f"exit code {code}:\n{path.read_text()}" for code, path in zip(codes, said, strict=True)
    )
    assert set(codes) == {0}, told


def _started(program: Sequence[str], output: BinaryIO) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", *program],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")},
        stdout=output,
        stderr=subprocess.STDOUT,
    )


def _wait(running: Sequence[subprocess.Popen[bytes]], timeout: float) -> None:
    """Until all have ended, or some time after one has ended badly."""
    deadline, failed = time.monotonic() + timeout, False
    while any(process.poll() is None for process in running) and time.monotonic() < deadline:
        if not failed and any(process.returncode for process in running):
            failed, deadline = True, time.monotonic() + LINGER
        time.sleep(0.05)
