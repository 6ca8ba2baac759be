"""Refusal of processes that a test without the marker `processes` starts.

Every way to start a process raises an audit event or goes through multiprocessing, so a test
cannot forget the marker: it fails where it starts its first process.
"""

from __future__ import annotations

import os
import sys
from multiprocessing.process import BaseProcess

import pytest

EVENTS = ("subprocess.Popen", "os.system", "os.posix_spawn", "os.fork", "os.forkpty")
TOOLS = (
    "uname",
    "lscpu",
    "ldconfig",
    "gcc",
    "cc",
    "ld",
    "objdump",
    "fc-list",
)  # libraries ask them

_running: list[pytest.Item] = []  # the test that runs now, if any
_start = BaseProcess.start


def install() -> None:
    """Refuse processes from now on while a test without the marker runs."""
    sys.addaudithook(_check_event)
    BaseProcess.start = _start_checked  # type: ignore[method-assign]


def enter(item: pytest.Item) -> None:
    """Note that a test begins: its fixtures belong to it."""
    _running.append(item)


def leave() -> None:
    """Note that the test has ended."""
    _running.pop()


def _check_event(event: str, arguments: tuple[object, ...]) -> None:
    if _running and event in EVENTS:
        program = str(arguments[0]) if arguments else event
        if os.path.basename(program) not in TOOLS:
            _demand_marker(program)


def _start_checked(process: BaseProcess) -> None:
    if _running:
        _demand_marker(type(process).__name__)
    _start(process)


def _demand_marker(what: str) -> None:
    item = _running[-1]
    if item.get_closest_marker("processes") is None:
        pytest.fail(f"{item.nodeid} starts a process ({what}): mark it with pytest.mark.processes")
