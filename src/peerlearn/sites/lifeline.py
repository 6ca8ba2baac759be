"""Pipe by which agents end with the `peerlearn up` that started them, even if it is killed.

`up` holds the writing end of a pipe and never writes. Its agents have the reading end as standard
input. They reach its end when `up` is gone, however it ended, and then save and end as by SIGTERM.
An agent that a person starts does not look at its standard input.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger("peerlearn.peers")

STOP_WITHIN = 15.0  # seconds for an agent to save and end
KILLED = 128 + signal.SIGTERM


@contextmanager
def lifeline() -> Iterator[int]:
    """Yield a pipe for the standard input of agents, which end when this process or block ends."""
    # Python does not let children inherit the writing end, or agents would keep each other alive.
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(writing)
        os.close(reading)


def end_with_standard_input() -> None:
    """End this process as by SIGTERM when its standard input ends, by force if that is slow."""
    threading.Thread(
        target=_watch, args=(sys.stdin.fileno(),), name="peerlearn-lifeline", daemon=True
    ).start()


def _watch(file: int) -> None:
    while os.read(file, 1024):
        pass
    log.warning("peerlearn up is gone: saving and ending")
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_WITHIN)
    os._exit(KILLED)
