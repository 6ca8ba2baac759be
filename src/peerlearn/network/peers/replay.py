"""How an agent that was killed goes on: what its calls gave, where it stood, and what neighbors may ask for again.

    saved = round of the checkpoint before the last        told to neighbors, who keep what they sent after it

so that the last checkpoint may be torn and the one before still suffices. Neighbors believe it only
with the receipt of all that they sent up to that round, so receipts are in the checkpoint too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from peerlearn.arrays import Array
from peerlearn.errors import Mismatch, NetworkError
from peerlearn.network.codec import AnyArray
from peerlearn.network.distributed import Arrays
from peerlearn.network.peers.frame import VERSION, split
from peerlearn.network.peers.journal import Call, Checkpoint, Journal
from peerlearn.network.peers.link import Link, Speaker

Receipts = dict[int, int]  # by neighbor, see frame.py

log = logging.getLogger("peerlearn.peers")

SAVE_AT = (
    1 << 27
)  # bytes sent that make a checkpoint due before its time: neighbors must keep what is not saved


class NoReplay:
    """An agent without checkpoints: what it has done is done, and it would not come back."""

    restored = finished = False  # whether there was a checkpoint, and of a run that was done
    bytes_before = 0  # sent until the checkpoint

    def __init__(self, me: Speaker, links: Mapping[int, Link]) -> None:
        self._me, self._links = me, links

    def call(self, what: str, rounds: int, compute: Callable[[], Arrays]) -> Arrays:
        arrays = compute()
        self._claim(self._me.done, self._receipts())
        return arrays

    def resumed(self, rounds: int, shape: tuple[int, ...]) -> tuple[int, Array, Array] | None:
        return None

    def reached(self, done: int, now: Array, before: Array) -> None:
        self._claim(self._me.done, self._receipts())

    def _receipts(self) -> Receipts:
        """Of all that was taken from each neighbor until now."""
        return {neighbor: link.receipt for neighbor, link in self._links.items()}

    def _claim(self, saved: int, receipts: Receipts) -> None:
        """Tell neighbors from now on that they need not keep rounds up to this one."""
        for neighbor, link in self._links.items():
            link.saved = (
                saved,
                receipts[neighbor],
            )  # at once: another thread may be about to send it

    def save(self, *, finished: bool = False) -> None:
        pass

    def forget(self) -> None:
        pass


class Replay(NoReplay):
    """The checkpoints of one agent."""

    def __init__(
        self,
        me: Speaker,
        links: Mapping[int, Link],
        journal: Journal,
        *,
        lock: AbstractContextManager[Any],
        own_settings: Mapping[str, str],
        save_every: float,
        bytes_sent: Callable[[], int],
    ) -> None:
        super().__init__(me, links)
        self._journal, self._lock, self._bytes_sent = journal, lock, bytes_sent
        self._own, self._save_every = own_settings, save_every
        self._calls: Iterator[Call] = iter(())
        self._known: Call | None = None  # the next call that will be given back
        self._replayed = 0  # rounds of the calls that were
        self._inside: tuple[int, Array, Array] | None = (
            None  # rounds done in `recur`, rows now, rows before
        )
        self._stands = self._last = (
            0  # rounds at the last point to go on from, and at the last checkpoint
        )
        self._stands_receipts = self._last_receipts = self._receipts()  # the same of what was taken
        self._next = self._look = time.monotonic() + save_every
        self._full = False
        self._sent: dict[int, int] = {}  # files of frames that count, and the last round in each
        self._bytes = 0  # sent until the last checkpoint
        if (checkpoint := journal.load()) is not None:
            self._restore(checkpoint)

    def call(self, what: str, rounds: int, compute: Callable[[], Arrays]) -> Arrays:
        if self._known is not None:
            return self._given_back(self._known, what, rounds)
        if self._inside is not None and what != "recur":
            raise self._another_program("recur", what)
        arrays = compute()
        self._inside = None
        self._stands, self._stands_receipts = self._me.done, self._receipts()
        self._journal.add(Call(what, arrays))
        self._save_if_due()
        return arrays

    def resumed(self, rounds: int, shape: tuple[int, ...]) -> tuple[int, Array, Array] | None:
        if self._inside is not None and (
            self._inside[0] > rounds or self._inside[1].shape != shape
        ):
            done, now, _ = self._inside
            raise self._another_program(
                f"{done} rounds of {now.shape} numbers", f"{rounds} rounds of {shape}"
            )
        return self._inside

    def reached(self, done: int, now: Array, before: Array) -> None:
        self._inside = (done, now, before)
        self._stands, self._stands_receipts = self._me.done, self._receipts()
        self._save_if_due()

    def save(self, *, finished: bool = False) -> None:
        """A checkpoint now. A full disk is no reason to stop: the run goes on, and the next attempt may succeed.

        That a run is finished is written twice: neighbors may forget it then, so that no older
        checkpoint will do.
        """
        if self._known is not None:
            return  # nothing is new while calls are still being given back
        for _ in range(2 if finished else 1):
            self._write(finished)

    def _write(self, finished: bool) -> None:
        checkpoint = self._checkpoint(finished)
        try:
            self._journal.save(checkpoint)
        except OSError as error:
            if not self._full:
                log.warning(
                    "no checkpoint could be written to %s (%s); going on",
                    self._journal.folder,
                    error.strerror,
                )
            self._full = True
        else:
            if self._full:
                log.warning("checkpoints are written to %s again", self._journal.folder)
            if self._journal.sequence in checkpoint.sent:
                self._sent[self._journal.sequence] = self._stands
            self._full = False
            self._claim(self._last, self._last_receipts)
            self._last, self._last_receipts = self._stands, self._stands_receipts
            self._bytes = self._bytes_sent()
        self._next = time.monotonic() + self._save_every

    def forget(self) -> None:
        """The run is over for everybody: its calls need not stay on disk."""
        try:
            self._journal.forget(Checkpoint(self._about(finished=True)))
        except OSError as error:
            log.warning(
                "checkpoints in %s could not be cleared (%s)", self._journal.folder, error.strerror
            )

    def _save_if_due(self) -> None:
        now = time.monotonic()
        if now < self._look:
            return
        self._look = now + 0.2 * self._save_every
        if now >= self._next or self._bytes_sent() - self._bytes > SAVE_AT:
            self.save()

    def _given_back(self, known: Call, what: str, rounds: int) -> Arrays:
        if known.what != what:
            raise self._another_program(known.what, what)
        self._replayed += rounds
        self._advance()
        return tuple(np.array(array) for array in known.arrays)

    def _advance(self) -> None:
        """To the next call that is known; after the last one the run stands where the checkpoint says."""
        self._known = next(self._calls, None)
        if self._known is not None:
            return
        self._replayed += self._inside[0] if self._inside else 0
        if self._replayed != self._stands:
            raise self._another_program(f"round {self._stands}", f"round {self._replayed}")

    def _another_program(self, said: str, says: str) -> NetworkError:
        return NetworkError(
            f"the checkpoint in {self._journal.folder} is of another program, {said} there and {says} here: go on with "
            "the one that began, or start all agents anew with empty folders"
        )

    def _about(self, finished: bool) -> dict[str, Any]:
        return {
            "wire": VERSION,
            "run": self._me.run,
            "agent": self._me.name,
            "settings": {**self._me.settings, **self._own},
            "round": self._stands,
            "saved": self._last,
            "inside": self._inside[0] if self._inside else 0,
            "links": {
                str(neighbor): {
                    "dropped": link.outbox.dropped,
                    "dropped receipt": link.outbox.dropped_receipt,
                    "receipt": self._stands_receipts[neighbor],
                    "saved receipt": self._last_receipts[neighbor],
                }
                for neighbor, link in self._links.items()
            },
            "bytes sent": self._bytes_sent(),
            "finished": finished,
        }

    def _checkpoint(self, finished: bool) -> Checkpoint:
        with self._lock:
            kept = [
                (neighbor, round, parts)
                for neighbor, link in self._links.items()
                for round, parts in link.outbox.entries(self._last, self._stands)
            ]
            needed = min((link.outbox.dropped for link in self._links.values()), default=0)
            about = self._about(finished)
        self._sent = {number: last for number, last in self._sent.items() if last > needed}
        sent: dict[int, dict[str, AnyArray]] = {number: {} for number in self._sent}
        if kept:
            sent[self._journal.sequence + 1] = _frames(kept)
        arrays: dict[str, AnyArray] = {}
        if self._inside is not None:
            arrays = {"now": self._inside[1], "before": self._inside[2]}
        return Checkpoint(about, arrays, sent)

    def _restore(self, checkpoint: Checkpoint) -> None:
        about, arrays = checkpoint.about, checkpoint.arrays
        self._must_be_of_this_run(about)
        if self._journal.warning:
            log.warning(
                "a checkpoint was damaged (%s); going on from the one before", self._journal.warning
            )
        self.restored, self.finished = True, bool(about["finished"])
        self._me.restored = True
        self._stands = self._last = int(about["round"])
        self._bytes = self.bytes_before = int(about["bytes sent"])
        if about["inside"]:
            self._inside = int(about["inside"]), np.array(arrays["now"]), np.array(arrays["before"])
        for neighbor, link in self._links.items():
            kept = about["links"][str(neighbor)]
            link.outbox.dropped = int(kept["dropped"])
            link.outbox.dropped_receipt = int(kept["dropped receipt"])
            link.receipt = int(kept["receipt"])
            link.saved = int(about["saved"]), int(kept["saved receipt"])
        self._stands_receipts = self._last_receipts = self._receipts()
        for number, frames in sorted(checkpoint.sent.items()):
            for neighbor, round, parts in _kept(frames):
                self._links[neighbor].outbox.add(round, parts)
                self._sent[number] = max(round, self._sent.get(number, 0))
        self._me.done = (
            self._stands
        )  # what neighbors are told from the start, also while calls are given back
        for link in self._links.values():
            link.inbox.finish(self._stands)
        if not self.finished:
            self._calls = self._journal.calls()
            self._advance()
        log.info(
            "going on from the checkpoint of round %d in %s", self._stands, self._journal.folder
        )

    def _must_be_of_this_run(self, about: dict[str, Any]) -> None:
        if about.get("wire") != VERSION:
            raise Mismatch(
                f"the checkpoint in {self._journal.folder} was written by another release of peerlearn (wire format "
                f"{about.get('wire', 1)} there, {VERSION} here): go on with that release, or start all agents anew "
                "with empty folders"
            )
        mine = {
            "the run": self._me.run,
            "the agent": self._me.name,
            **self._me.settings,
            **self._own,
        }
        its = {"the run": about["run"], "the agent": about["agent"], **about["settings"]}
        for key in sorted({*mine, *its}):
            if mine.get(key) != its.get(key):
                raise Mismatch(
                    f"the checkpoint in {self._journal.folder} is of a run that differs in {key}: {its.get(key)} "
                    f"there, {mine.get(key)} here; set it back, or start all agents anew with empty folders"
                )


def _frames(kept: Sequence[tuple[int, int, Sequence[bytes]]]) -> dict[str, AnyArray]:
    """Neighbor, round and frames as arrays; frames that went to several neighbors are kept once."""
    unique = {id(parts): parts for *_, parts in kept}
    which = {key: number for number, key in enumerate(unique)}
    joined = [b"".join(parts) for parts in unique.values()]
    return {
        "sent": np.array(
            [(neighbor, round, which[id(parts)]) for neighbor, round, parts in kept], dtype=np.int64
        ),
        "sizes": np.array(list(map(len, joined)), dtype=np.int64),
        "frames": np.frombuffer(b"".join(joined), np.uint8),
    }


def _kept(arrays: Mapping[str, AnyArray]) -> Iterator[tuple[int, int, list[bytes]]]:
    """What `_frames` was given."""
    parts = [
        split(part.data) for part in np.split(arrays["frames"], np.cumsum(arrays["sizes"])[:-1])
    ]
    for neighbor, round, which in arrays["sent"].tolist():
        yield neighbor, round, parts[which]
