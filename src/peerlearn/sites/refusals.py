"""Connections that fail before there is anybody to talk to, in sentences.

Whoever has no certificate, a foreign or an expired one, or speaks no TLS is turned away inside
gRPC, which tells only standard error. A process that runs an agent therefore reads its own standard
error: what is about handshakes becomes a sentence of the log, other lines of gRPC go to the agent's
log file alone, and all else passes through.
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
from peerlearn.network.peers.grpc_errors import short
from peerlearn.network.peers.streams import grpc

log = logging.getLogger("peerlearn.peers")

_HANDSHAKE = re.compile(
    r"Handshake failed with error [^:]*: (?:error:\w+:SSL routines:OPENSSL_internal:)?(?P<why>.*)"
)
_NAME = re.compile(r"No match found for server name: (?P<name>[\w.-]+)")
_GRPC = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (?P<where>[\w./-]+:\d+)\] (?P<what>.*)")
QUIET = (
    1.0  # seconds in which the same sentence is not said again: a stranger must not fill the disk
)


def sentence(line: str) -> str | None:
    """What a line of gRPC's says about a refused connection, or None if it says nothing of the kind."""
    if found := _NAME.search(line):
        return f"refused a connection: whoever listens there is not agent {found['name']}"
    if found := _HANDSHAKE.search(line):
        return f"refused a connection: {short(found['why'])}"
    return None


@contextmanager
def refusals_in_the_log(note: Callable[[str], object] = log.debug) -> Iterator[None]:
    """Read what gRPC writes to standard error: refusals become sentences of the log, `note` gets the other lines."""
    with suppress(MissingExtra):
        grpc(quiet=False)  # before PeerNetwork imports it, which would make it write nothing
    sys.stderr.flush()
    real, (reading, writing) = os.dup(2), os.pipe()
    own = sys.stderr
    sys.stderr = os.fdopen(
        os.dup(real), "w", 1, errors="backslashreplace"
    )  # what Python says needs no reading
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
    said: dict[str, float] = {}

    def is_new(text: str) -> bool:
        if time.monotonic() - said.get(text, -QUIET) < QUIET:
            return False
        said[text] = time.monotonic()
        return True

    with (
        os.fdopen(reading, "r", errors="replace") as lines,
        os.fdopen(real, "wb", buffering=0) as out,
    ):
        for line in lines:
            if told := sentence(line):
                if is_new(told):
                    log.warning("%s", told)
            elif other := _GRPC.match(line):
                if is_new(other["where"]):
                    note(f"gRPC: {other['where']}: {other['what']}")
            else:
                with suppress(
                    OSError
                ):  # a full disk: reading goes on, or whoever writes would stand still
                    out.write(line.encode())
