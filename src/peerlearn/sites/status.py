"""Status file of an agent: its state and progress, for programs that watch it."""

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
def keep_status_file(path: Path) -> Iterator[Callable[[PeerNetwork], None]]:
    """Write the status to this file twice a second, until the block ends.

    Yields a function that takes the network when it has been made. The state is that of the
    network, and at the end "done" or "stopped".
    """
    networks: list[PeerNetwork] = []
    over = threading.Event()

    def write_status(state: str | None = None) -> None:
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
        with suppress(InputError):  # a full disk must not end the run
            write(path, json.dumps(status) + "\n", private=True)

    def repeat() -> None:
        while not over.wait(EVERY):
            write_status()

    write_status()
    writer = threading.Thread(target=repeat, name="peerlearn-status", daemon=True)
    writer.start()
    end = "stopped"
    try:
        yield networks.append
        end = "done"
    finally:
        over.set()
        writer.join()
        write_status(end)
