"""Recording and replaying of network calls, so that an agent that was killed can resume.

Theory of operation:

An algorithm is a deterministic program whose only input from outside is the results of its network
calls. So it is enough to record these. `Replay.call` passes every call on, and adds its result to
the journal. From time to time it writes a checkpoint (journal.py).

A restarted agent runs the algorithm from its first line. While the journal has calls left, `call`
returns their results without sending anything. After the last one the agent stands exactly where
the checkpoint was written, and its neighbors send it everything later again. A call that differs
from the journal means that the program has changed, which ends the run.

`recur` may take thousands of rounds in one call, so its state is saved in between: the rounds done,
the rows now and the rows one round before (`record_progress`, and `resume` after a restart).

    checkpoint:  calls | state inside recur | frames sent since the last one | receipts
    saved      = round of the checkpoint before the last

`saved` is told to the neighbors. They keep what they sent after it. So the last checkpoint may be
torn, and the one before is still enough. Neighbors believe `saved` only with the receipt of all
that they sent up to that round, so receipts are in the checkpoint too.

The frames that this agent sent are kept on disk as well, since it cannot compute them again without
the rows of that time: a neighbor that comes back after a kill may need them.
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

# Bytes sent after which a checkpoint is written before its time: neighbors must keep what is not
# saved.
SAVE_AT = 1 << 27


class NoReplay:
    """Recorder of an agent without checkpoints, which cannot come back after a kill."""

    restored = False  # whether there was a checkpoint
    finished = False  # whether it was of a finished run
    bytes_before = 0  # bytes sent until the checkpoint

    def __init__(self, me: Speaker, links: Mapping[int, Link]) -> None:
        self._me = me
        self._links = links

    def call(self, what: str, rounds: int, compute: Callable[[], Arrays]) -> Arrays:
        """Return the result of a network call that takes so many rounds."""
        arrays = compute()
        self._claim_all()
        return arrays

    def resume(self, rounds: int, shape: tuple[int, ...]) -> tuple[int, Array, Array] | None:
        """Return where to resume inside a `recur`: rounds done, rows now, rows before."""
        return None

    def record_progress(self, done: int, now: Array, before: Array) -> None:
        """Note that `done` rounds of a `recur` are done."""
        self._claim_all()

    def _claim_all(self) -> None:
        """Tell neighbors from now on that they need not keep any round that is done."""
        done = self._me.done
        for link in self._links.values():
            # One assignment, because another thread may be about to send the pair.
            link.saved = (done, link.receipt)

    def save(self, *, finished: bool = False) -> None:
        """Write a checkpoint now."""

    def forget(self) -> None:
        """Delete what is not needed after the run is over for everybody."""


class Replay(NoReplay):
    """Recorder of an agent with checkpoints.

    me: this agent.
    links: the links to its neighbors.
    journal: the files.
    lock: held while links are read.
    own_settings: settings that must be the same after a restart.
    save_every: seconds between checkpoints.
    bytes_sent: returns the bytes that this agent has sent.
    """

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
        self._journal = journal
        self._lock = lock
        self._bytes_sent = bytes_sent
        self._own_settings = own_settings
        self._save_every = save_every
        self._calls: Iterator[Call] = iter(())
        self._next_call: Call | None = None  # next call to replay
        self._replayed_rounds = 0
        # Inside a `recur`: rounds done, rows now, rows one round before.
        self._inside: tuple[int, Array, Array] | None = None
        # Round and receipts at the last point from which the run can resume.
        self._point = 0
        self._point_receipts = self._receipts()
        # The same at the last checkpoint.
        self._last = 0
        self._last_receipts = self._receipts()
        self._next_save = time.monotonic() + save_every
        self._next_look = self._next_save  # when to check whether a checkpoint is due
        self._disk_full = False
        self._frame_files: dict[int, int] = {}  # last round in each file of frames in use
        self._bytes_at_save = 0  # bytes sent until the last checkpoint
        checkpoint = journal.load()
        if checkpoint is not None:
            self._restore(checkpoint)

    def call(self, what: str, rounds: int, compute: Callable[[], Arrays]) -> Arrays:
        if self._next_call is not None:
            return self._replay_call(self._next_call, what, rounds)
        if self._inside is not None and what != "recur":
            raise self._another_program("recur", what)
        arrays = compute()
        self._inside = None
        self._mark_point()
        self._journal.add(Call(what, arrays))
        self._save_if_due()
        return arrays

    def resume(self, rounds: int, shape: tuple[int, ...]) -> tuple[int, Array, Array] | None:
        if self._inside is None:
            return None
        done, now, _ = self._inside
        if done > rounds or now.shape != shape:
            raise self._another_program(
                f"{done} rounds of {now.shape} numbers", f"{rounds} rounds of {shape}"
            )
        return self._inside

    def record_progress(self, done: int, now: Array, before: Array) -> None:
        self._inside = (done, now, before)
        self._mark_point()
        self._save_if_due()

    def _receipts(self) -> Receipts:
        """Return the receipts of all that was taken from each neighbor until now."""
        return {neighbor: link.receipt for neighbor, link in self._links.items()}

    def _claim(self, saved: int, receipts: Receipts) -> None:
        """Tell neighbors from now on that they need not keep rounds up to this one."""
        for neighbor, link in self._links.items():
            link.saved = (saved, receipts[neighbor])  # one assignment, as in `_claim_all`

    def _mark_point(self) -> None:
        """Note that the run can resume from here."""
        self._point = self._me.done
        self._point_receipts = self._receipts()

    def save(self, *, finished: bool = False) -> None:
        """Write a checkpoint now.

        If the disk is full, the run goes on, and the next attempt may succeed. A finished run is
        written twice: neighbors may then delete what they sent, so an older checkpoint would not be
        enough.
        """
        if self._next_call is not None:
            return  # nothing is new while calls are replayed
        for _ in range(2 if finished else 1):
            self._write(finished)

    def _write(self, finished: bool) -> None:
        checkpoint = self._checkpoint(finished)
        try:
            self._journal.save(checkpoint)
        except OSError as error:
            if not self._disk_full:
                log.warning(
                    "no checkpoint could be written to %s (%s); going on",
                    self._journal.folder,
                    error.strerror,
                )
            self._disk_full = True
        else:
            if self._disk_full:
                log.warning("checkpoints are written to %s again", self._journal.folder)
            if self._journal.sequence in checkpoint.sent:
                self._frame_files[self._journal.sequence] = self._point
            self._disk_full = False
            self._claim(self._last, self._last_receipts)
            self._last = self._point
            self._last_receipts = self._point_receipts
            self._bytes_at_save = self._bytes_sent()
        self._next_save = time.monotonic() + self._save_every

    def forget(self) -> None:
        try:
            self._journal.forget(Checkpoint(self._about(finished=True)))
        except OSError as error:
            log.warning(
                "checkpoints in %s could not be cleared (%s)", self._journal.folder, error.strerror
            )

    def _save_if_due(self) -> None:
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + 0.2 * self._save_every
        if now >= self._next_save or self._bytes_sent() - self._bytes_at_save > SAVE_AT:
            self.save()

    def _replay_call(self, known: Call, what: str, rounds: int) -> Arrays:
        """Return the recorded result of this call."""
        if known.what != what:
            raise self._another_program(known.what, what)
        self._replayed_rounds += rounds
        self._advance()
        return tuple(np.array(array) for array in known.arrays)

    def _advance(self) -> None:
        """Move to the next recorded call; after the last one, check the number of rounds."""
        self._next_call = next(self._calls, None)
        if self._next_call is not None:
            return
        self._replayed_rounds += self._inside[0] if self._inside else 0
        if self._replayed_rounds != self._point:
            raise self._another_program(f"round {self._point}", f"round {self._replayed_rounds}")

    def _another_program(self, there: str, here: str) -> NetworkError:
        return NetworkError(
            f"the checkpoint in {self._journal.folder} is of another program, {there} there and "
            f"{here} here: go on with the one that began, or start all agents anew with empty "
            "folders"
        )

    def _about(self, finished: bool) -> dict[str, Any]:
        """Return the plain values of a checkpoint."""
        return {
            "wire": VERSION,
            "run": self._me.run,
            "agent": self._me.name,
            "settings": {**self._me.settings, **self._own_settings},
            "round": self._point,
            "saved": self._last,
            "inside": self._inside[0] if self._inside else 0,
            "links": {
                str(neighbor): {
                    "dropped": link.outbox.dropped,
                    "dropped receipt": link.outbox.dropped_receipt,
                    "receipt": self._point_receipts[neighbor],
                    "saved receipt": self._last_receipts[neighbor],
                }
                for neighbor, link in self._links.items()
            },
            "bytes sent": self._bytes_sent(),
            "finished": finished,
        }

    def _checkpoint(self, finished: bool) -> Checkpoint:
        with self._lock:
            new_frames = [
                (neighbor, round, parts)
                for neighbor, link in self._links.items()
                for round, parts in link.outbox.entries(self._last, self._point)
            ]
            dropped = min((link.outbox.dropped for link in self._links.values()), default=0)
            about = self._about(finished)
        # Files whose rounds all neighbors have saved are not needed any more.
        self._frame_files = {
            number: last for number, last in self._frame_files.items() if last > dropped
        }
        sent: dict[int, dict[str, AnyArray]] = {number: {} for number in self._frame_files}
        if new_frames:
            sent[self._journal.sequence + 1] = _pack_frames(new_frames)
        arrays: dict[str, AnyArray] = {}
        if self._inside is not None:
            arrays = {"now": self._inside[1], "before": self._inside[2]}
        return Checkpoint(about, arrays, sent)

    def _restore(self, checkpoint: Checkpoint) -> None:
        """Set this agent and its links to the state of a checkpoint."""
        about = checkpoint.about
        arrays = checkpoint.arrays
        self._must_be_of_this_run(about)
        if self._journal.warning:
            log.warning(
                "a checkpoint was damaged (%s); going on from the one before", self._journal.warning
            )
        self.restored = True
        self.finished = bool(about["finished"])
        self._me.restored = True
        self._point = self._last = int(about["round"])
        self._bytes_at_save = self.bytes_before = int(about["bytes sent"])
        if about["inside"]:
            self._inside = int(about["inside"]), np.array(arrays["now"]), np.array(arrays["before"])
        for neighbor, link in self._links.items():
            state = about["links"][str(neighbor)]
            link.outbox.dropped = int(state["dropped"])
            link.outbox.dropped_receipt = int(state["dropped receipt"])
            link.receipt = int(state["receipt"])
            link.saved = int(about["saved"]), int(state["saved receipt"])
        self._point_receipts = self._last_receipts = self._receipts()
        for number, frames in sorted(checkpoint.sent.items()):
            for neighbor, round, parts in _unpack_frames(frames):
                self._links[neighbor].outbox.add(round, parts)
                self._frame_files[number] = max(round, self._frame_files.get(number, 0))
        # Neighbors are told this number from the start, also while calls are replayed.
        self._me.done = self._point
        for link in self._links.values():
            link.inbox.finish(self._point)
        if not self.finished:
            self._calls = self._journal.calls()
            self._advance()
        log.info(
            "going on from the checkpoint of round %d in %s", self._point, self._journal.folder
        )

    def _must_be_of_this_run(self, about: dict[str, Any]) -> None:
        """Raise Mismatch if a checkpoint is of another release, run, agent or setting."""
        if about.get("wire") != VERSION:
            raise Mismatch(
                f"the checkpoint in {self._journal.folder} was written by another release of "
                f"peerlearn (wire format {about.get('wire', 1)} there, {VERSION} here): go on with "
                "that release, or start all agents anew with empty folders"
            )
        mine = {
            "the run": self._me.run,
            "the agent": self._me.name,
            **self._me.settings,
            **self._own_settings,
        }
        its = {"the run": about["run"], "the agent": about["agent"], **about["settings"]}
        for key in sorted({*mine, *its}):
            if mine.get(key) != its.get(key):
                raise Mismatch(
                    f"the checkpoint in {self._journal.folder} is of a run that differs in {key}: "
                    f"{its.get(key)} there, {mine.get(key)} here; set it back, or start all agents "
                    "anew with empty folders"
                )


def _pack_frames(entries: Sequence[tuple[int, int, Sequence[bytes]]]) -> dict[str, AnyArray]:
    """Return neighbor, round and frames as arrays.

    Frames that went to several neighbors are stored once.
    """
    unique = {id(parts): parts for *_, parts in entries}
    which = {key: number for number, key in enumerate(unique)}
    joined = [b"".join(parts) for parts in unique.values()]
    sent = [(neighbor, round, which[id(parts)]) for neighbor, round, parts in entries]
    return {
        "sent": np.array(sent, dtype=np.int64),
        "sizes": np.array(list(map(len, joined)), dtype=np.int64),
        "frames": np.frombuffer(b"".join(joined), np.uint8),
    }


def _unpack_frames(arrays: Mapping[str, AnyArray]) -> Iterator[tuple[int, int, list[bytes]]]:
    """Yield what `_pack_frames` was given."""
    ends = np.cumsum(arrays["sizes"])
    parts = [split(part.data) for part in np.split(arrays["frames"], ends[:-1])]
    for neighbor, round, which in arrays["sent"].tolist():
        yield neighbor, round, parts[which]
