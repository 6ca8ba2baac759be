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
from contextlib import contextmanager

log = logging.getLogger("peerlearn.peers")

_HANDSHAKE = re.compile(r"Handshake failed with error [^:]*: (?:error:\w+:SSL routines:OPENSSL_internal:)?(?P<why>.*)")
_REASONS = (
    ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "the caller has no certificate"),
    ("certificate has expired", "the other end's certificate has expired"),
    ("certificate is not yet valid", "the other end's certificate is not valid yet: are the clocks right?"),
    ("CERTIFICATE_VERIFY_FAILED", "the other end's certificate is not signed by our authority"),
    ("WRONG_VERSION_NUMBER", "the other end does not speak TLS"),
    ("HTTP_REQUEST", "the other end does not speak TLS"),
)
QUIET = 1.0  # seconds in which the same sentence is not said again: a stranger must not fill the disk


def sentence(line: str) -> str | None:
    """What a line of gRPC's says about a refused connection, or None if it says nothing of the kind."""
    found = _HANDSHAKE.search(line)
    if found is None:
        return None
    why = next((said for sign, said in _REASONS if sign in found["why"]), found["why"].strip())
    return f"refused a connection: {why}"


@contextmanager
def refusals_in_the_log() -> Iterator[None]:
    """While this lasts, lines about handshakes on standard error become sentences of the log."""
    sys.stderr.flush()
    real, (reading, writing) = os.dup(2), os.pipe()
    own, sys.stderr = sys.stderr, os.fdopen(os.dup(real), "w", buffering=1)  # what Python says needs no reading
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
    with os.fdopen(reading, "r", errors="replace") as lines:
        for line in lines:
            if (told := sentence(line)) is None:
                os.write(real, line.encode())
            elif time.monotonic() - said.get(told, -QUIET) >= QUIET:
                said[told] = time.monotonic()
                log.warning("%s", told)
