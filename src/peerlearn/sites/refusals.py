"""Connections that fail before there is anybody to talk to, in sentences.

Whoever has no certificate, a foreign or an expired one, or speaks no TLS is turned away inside gRPC, which tells only
standard error. A process that runs an agent therefore reads its own standard error: what is about handshakes becomes a
sentence in the agent's log, all else passes through.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from peerlearn.network.peers.reasons import short

log = logging.getLogger("peerlearn.peers")

_HANDSHAKE = re.compile(r"Handshake failed with error [^:]*: (?:error:\w+:SSL routines:OPENSSL_internal:)?(?P<why>.*)")
_NAME = re.compile(r"No match found for server name: (?P<name>[\w.-]+)")
QUIET = 1.0  # seconds in which the same sentence is not said again: a stranger must not fill the disk


def sentence(line: str) -> str | None:
    """What a line of gRPC's says about a refused connection, or None if it says nothing of the kind."""
    if found := _NAME.search(line):
        return f"refused a connection: whoever listens there is not agent {found['name']}"
    if found := _HANDSHAKE.search(line):
        return f"refused a connection: {short(found['why'])}"
    return None


@contextmanager
def refusals_in_the_log() -> Iterator[None]:
    """While this lasts, lines about handshakes on standard error become sentences of the log."""
    sys.stderr.flush()
    real, (reading, writing) = os.dup(2), os.pipe()
    own = sys.stderr
    sys.stderr = os.fdopen(os.dup(real), "w", 1, errors="backslashreplace")  # what Python says needs no reading
    os.dup2(writing, 2)
    os.close(writing)
    reader = threading.Thread(target=_read, args=(reading, real), name="peerlearn-stderr", daemon=True)
    reader.start()
    try:
        yield
    finally:
        os.dup2(real, 2)  # closes the last writing end: the reader comes to an end
        reader.join(timeout=1.0)
        sys.stderr.close()
        sys.stderr = own


def _read(reading: int, real: int) -> None:
    said: dict[str, float] = {}
    with os.fdopen(reading, "r", errors="replace") as lines, os.fdopen(real, "wb", buffering=0) as out:
        for line in lines:
            if (told := sentence(line)) is None:
                with suppress(OSError):  # a full disk: reading goes on, or whoever writes would stand still
                    out.write(line.encode())
            elif time.monotonic() - said.get(told, -QUIET) >= QUIET:
                said[told] = time.monotonic()
                log.warning("%s", told)
