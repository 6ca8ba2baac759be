"""Ledger of what left a site: one line per quantity and set of receivers, before it leaves.

    left.jsonl      a chain of lines (chain_file.py), for all runs of an agent
        start       a run begins or is resumed: its name and id, and what the greeting shows
        leaves      what, by which module, its arrays and bytes, to whom, under which protection
        counts      messages and bytes of every such line, since the run began
        reason      what neighbors were told when the run ended by an error

A quantity that is sent in a thousand rounds has one line. The line is on disk before the first of
these messages leaves; if it cannot be written, nothing leaves. Counts follow at the end, or when
the agent stops, and are those of `Network.ledger`. If a process is killed, they are missing until
the run is resumed. A resumed run has the id of before. Its counts are those of the whole run: a
message that is sent again after a restart has the same bytes, and is counted once. A run that
starts anew, because no checkpoint had been written, has another id and is counted by itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from peerlearn.network.base import Message
from peerlearn.network.peers.chain_file import ChainFile
from peerlearn.network.peers.quantities import name_of_sender

NAME = "left.jsonl"
MOST_SHAPES = 500  # lines of one run that differ in shape; further shapes are put together


@dataclass
class Quantity:
    """One line of the ledger, and how much of it was sent since the run began."""

    line: int
    receivers: int
    messages: int = 0
    bytes: int = 0

    def count(self, rounds: int, size: int) -> None:
        """Count rounds in which a message of `size` bytes went to every receiver."""
        self.messages += rounds * self.receivers
        self.bytes += rounds * self.receivers * size


class LeftLedger:
    """Writer of an agent's left.jsonl during one run.

    folder: its folder. run, agent: names. names: of all agents. resumed: whether the run goes on
    from a checkpoint. greeting: settings that neighbors are shown.
    """

    def __init__(
        self,
        folder: Path,
        run: str,
        agent: str,
        names: Sequence[str],
        neighbors: Collection[int],
        *,
        resumed: bool,
        greeting: Mapping[str, str],
    ) -> None:
        self._file = ChainFile(folder / NAME)
        self._names = names
        self._neighbors = [names[k] for k in neighbors]
        self._quantities: dict[tuple[Any, ...], Quantity] = {}
        self._recorded: dict[str, list[int]] = {}
        earlier = [entry for entry in self._file.entries if entry["event"] == "start"]
        self._id = os.urandom(8).hex()
        if resumed and earlier and earlier[-1]["run"] == run:
            self._id = earlier[-1]["id"]
        # Lines of this run from before it was resumed, by what they say.
        self._known = {
            _as_key(entry): int(entry["line"])
            for entry in self._file.entries
            if entry["event"] == "leaves" and entry["id"] == self._id
        }
        start = {
            "run": run,
            "agent": agent,
            "resumed": resumed,
            "to": self._neighbors,
            "greeting": sorted(greeting),
            "bytes": len(json.dumps(greeting)),
        }
        if self._file.torn:
            start["torn bytes cut off"] = self._file.torn
        self._append("start", start)

    def announce(
        self, receivers: Collection[int], message: Message, quantity: str, protection: str
    ) -> tuple[Quantity, int]:
        """Return the line of what is about to be sent, and the bytes of one message.

        The line is written first if it is new. message: its arrays, with a leading axis for the
        agent. quantity: its name; "" takes that of the code that
        sends. protection: how it is protected.
        """
        sender = ""
        if not quantity:
            quantity, sender = name_of_sender()
            if "answer" in message:
                quantity = f"answer to {quantity}"
        shapes = tuple([(name, array.shape[1:]) for name, array in message.items()])
        size = sum([array.nbytes for array in message.values()])
        key = (quantity, sender, protection, tuple(receivers), shapes)
        known = self._quantities.get(key)
        if known is None:
            if len(self._quantities) >= MOST_SHAPES:
                key = (*key[:4], ())
            known = self._quantities.get(key) or self._begin(key, size)
        return known, size

    def record_counts(self) -> str:
        """Write how much was sent since the run began, if that is news, and return the head."""
        counts = {str(each.line): [each.messages, each.bytes] for each in self._quantities.values()}
        if counts != self._recorded:
            self._append("counts", {"counts": counts})
            self._recorded = counts
        return self._file.head

    def record_reason(self, reason: str) -> None:
        """Write what neighbors are about to be told about the end of the run."""
        self._append("reason", {"to": self._neighbors, "text": reason})

    def _begin(self, key: tuple[Any, ...], size: int) -> Quantity:
        quantity, sender, protection, receivers, shapes = key
        entry = {
            "quantity": quantity,
            "by": sender,
            "protection": protection,
            "arrays": {name: list(shape) for name, shape in shapes} or "of other shapes",
            "bytes": size if shapes else None,
            "to": [self._names[k] for k in receivers],
        }
        line = self._known.get(_as_key(entry)) or self._append("leaves", entry)
        self._quantities[key] = Quantity(line, len(receivers))
        return self._quantities[key]

    def _append(self, event: str, entry: Mapping[str, Any]) -> int:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        return self._file.append({"event": event, "at": at, "id": self._id, **entry})


def _as_key(entry: Mapping[str, Any]) -> str:
    """Return what a line says about a quantity, as one text."""
    fields = ("quantity", "by", "protection", "arrays", "bytes", "to")
    return json.dumps([entry[field] for field in fields])
