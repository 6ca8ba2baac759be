"""No test starts a process without the marker `processes`."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

import pytest

STARTS = {
    "subprocess": lambda: subprocess.run([sys.executable, "-c", ""], check=True),
    "system": lambda: os.system("true"),
    "spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "spawned": lambda: multiprocessing.get_context("spawn").Process(target=print).start(),
    "server": lambda: multiprocessing.get_context("forkserver").Process(target=print).start(),
}


@pytest.mark.parametrize("way", STARTS)
def test_a_test_without_the_marker_cannot_start_a_process(way):
    with pytest.raises(pytest.fail.Exception, match=r"mark it with pytest\.mark\.processes"):
        STARTS[way]()


@pytest.mark.processes
@pytest.mark.parametrize("way", ["subprocess", "system"])
def test_a_test_with_the_marker_can(way):
    STARTS[way]()
