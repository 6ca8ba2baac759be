"""A file that says how far an agent is, written anew now and then; whoever watches reads it."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from peerlearn.errors import InputError
from peerlearn.network.peers.network import PeerNetwork
from peerlearn.system.files import write

EVERY = 0.5  # seconds


@contextmanager
def told(path: Path) -> Iterator[Callable[[PeerNetwork], None]]:
    """Yields where to hand in the network once it is there. States: those of the network, then done or stopped."""
    networks: list[PeerNetwork] = []
    over = threading.Event()

    def tell(state: str | None = None) -> None:
        status: dict[str, Any] = {"state": state or "connecting"}
        for network in networks:
            residual = network.residual
            status = {
                "state": state or network.state,
                "round": network.round,
                "residual": residual if residual is not None and math.isfinite(residual) else None,
                "bytes": network.bytes_sent,
            }
            if state is None and (waiting := network.waiting) is not None:
                since = datetime.fromtimestamp(waiting.since, UTC).isoformat(timespec="seconds")
                status["waiting"] = {"for": list(waiting.names), "since": since}
        with suppress(InputError):  # a full disk must not end the run: the next one may have room
            write(path, json.dumps(status) + "\n", private=True)

    def tell_on() -> None:
        while not over.wait(EVERY):
            tell()

    tell()
    teller = threading.Thread(target=tell_on, name="peerlearn-status", daemon=True)
    teller.start()
    end = "stopped"
    try:
        yield networks.append
        end = "done"
    finally:
        over.set()
        teller.join()
        tell(end)
