"""Log entries for connections that fail in the TLS handshake.

gRPC itself refuses callers without a certificate, with a foreign or expired one, or without TLS,
and writes only to standard error. A process that runs an agent therefore reads its own standard
error. Lines about handshakes become sentences in the log, other lines of gRPC go to the agent's log
file alone, and all other lines pass through.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from peerlearn.errors import MissingExtra
from peerlearn.network.peers.grpc_errors import short_reason
from peerlearn.network.peers.streams import grpc

log = logging.getLogger("peerlearn.peers")

_HANDSHAKE = re.compile(
    r"Handshake failed with error [^:]*: (?:error:\w+:SSL routines:OPENSSL_internal:)?(?P<why>.*)"
)
_NAME = re.compile(r"No match found for server name: (?P<name>[\w.-]+)")
_GRPC = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (?P<where>[\w./-]+:\d+)\] (?P<what>.*)")
QUIET = 1.0  # seconds before a sentence is logged again: a stranger must not fill the disk


def sentence(line: str) -> str | None:
    """Return the sentence for a line of gRPC about a refused connection, or None for others."""
    if found := _NAME.search(line):
        return f"refused a connection: the process that listens there is not agent {found['name']}"
    if found := _HANDSHAKE.search(line):
        return f"refused a connection: {short_reason(found['why'])}"
    return None


@contextmanager
def refusals_in_the_log(note: Callable[[str], object] = log.debug) -> Iterator[None]:
    """Log refusals that gRPC writes to standard error; give its other lines to `note`."""
    with suppress(MissingExtra):
        grpc(quiet=False)  # before PeerNetwork imports it, which would make it write nothing
    sys.stderr.flush()
    real = os.dup(2)
    reading, writing = os.pipe()
    own = sys.stderr
    # What Python itself writes need not be read: it goes to the real standard error.
    sys.stderr = os.fdopen(os.dup(real), "w", 1, errors="backslashreplace")
    os.dup2(writing, 2)
    os.close(writing)
    reader = threading.Thread(
        target=_read, args=(reading, real, note), name="peerlearn-stderr", daemon=True
    )
    reader.start()
    try:
        yield
    finally:
        os.dup2(real, 2)  # closes the last writing end: the reader comes to an end
        reader.join(timeout=1.0)
        sys.stderr.close()
        sys.stderr = own


def _read(reading: int, real: int, note: Callable[[str], object]) -> None:
    """Sort the lines of standard error into the log, the log file and the real standard error."""
    log_times: dict[str, float] = {}

    def is_new(text: str) -> bool:
        if time.monotonic() - log_times.get(text, -QUIET) < QUIET:
            return False
        log_times[text] = time.monotonic()
        return True

    with (
        os.fdopen(reading, "r", errors="replace") as lines,
        os.fdopen(real, "wb", buffering=0) as out,
    ):
        for line in lines:
            refusal = sentence(line)
            other = _GRPC.match(line)
            if refusal is not None:
                if is_new(refusal):
                    log.warning("%s", refusal)
            elif other is not None:
                if is_new(other["where"]):
                    note(f"gRPC: {other['where']}: {other['what']}")
            else:
                # The disk may be full. Reading goes on, or the writers would block.
                with suppress(OSError):
                    out.write(line.encode())
