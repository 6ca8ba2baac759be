"""Files of an agent's checkpoints, from which it resumes after it was killed at any moment.

    journal.bin         results of all network calls, appended record by record
    sent-7.bin, ..      frames sent since the checkpoint before; neighbors may ask for them again
    checkpoint-1.bin,   written in turn: position of the run, valid length of the journal, and
    checkpoint-2.bin    numbers of the valid sent files; written to a new file, synced, and renamed

A restarted agent runs its algorithm from the start. Calls that are in the journal return at once
with the same bits, so no algorithm has to know how to resume. Every record carries its length and
checksum. If the newest checkpoint is torn, the one before it is used. Agents tell their neighbors
the round of the older one, so that it is always enough.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from zlib import crc32

import numpy as np

from peerlearn.errors import NetworkError, WireError
from peerlearn.network import codec
from peerlearn.network.codec import AnyArray
from peerlearn.private_files import make_private_folder, open_private

_HEAD = struct.Struct("<4sIQ")  # magic, checksum, length
MAGIC = b"PLCK"
NAMES = ("checkpoint-1.bin", "checkpoint-2.bin")
JOURNAL = "journal.bin"


@dataclass(frozen=True)
class Call:
    """Name and results of a network call that is done."""

    what: str
    arrays: tuple[AnyArray, ...]


@dataclass(frozen=True)
class Checkpoint:
    """State of a run at one moment.

    about: plain values.
    arrays: arrays of numbers.
    sent: frames, by the number of the file that holds them.
    """

    about: dict[str, Any]
    arrays: dict[str, AnyArray] = field(default_factory=dict)
    sent: dict[int, dict[str, AnyArray]] = field(default_factory=dict)


class Journal:
    """Checkpoints of one agent in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.warning = ""  # what is wrong with the newest checkpoint, if an older one is used
        self._new: list[bytes] = []  # records that are not on disk yet
        self.sequence = 0  # number of the last checkpoint
        self._frame_files: list[set[int]] = [set(), set()]  # used by the last two checkpoints
        self._length = 0  # bytes of the journal that belong to the last checkpoint
        try:
            make_private_folder(folder)
        except OSError as error:
            raise NetworkError(
                f"checkpoints cannot be kept in {folder} ({error.strerror}): name another folder"
            ) from None

    def load(self) -> Checkpoint | None:
        """Return the newest undamaged checkpoint, or None if there is no checkpoint at all."""
        found: list[Checkpoint] = []
        damaged = []
        for name in NAMES:
            path = self.folder / name
            if path.exists():
                try:
                    found.append(self._read_checkpoint(path))
                except (WireError, OSError, ValueError, KeyError) as error:
                    damaged.append(f"{name}: {error}")
        for checkpoint in sorted(found, key=lambda each: -int(each.about["sequence"])):
            try:
                self._length = int(checkpoint.about["journal"])
                for _ in self.calls():
                    pass
            except (WireError, OSError) as error:
                damaged.append(f"{JOURNAL}: {error}")
                continue
            self.sequence = int(checkpoint.about["sequence"])
            numbers = [path.stem.removeprefix("sent-") for path in self.folder.glob("sent-*.bin")]
            on_disk = {int(each) for each in numbers if each.isdecimal()}
            self._frame_files = [on_disk, set(checkpoint.sent)]
            self.warning = "; ".join(damaged)
            return checkpoint
        if damaged:
            raise NetworkError(
                f"no checkpoint in {self.folder} is whole ({'; '.join(damaged)}): bring a copy "
                "back, or empty the checkpoint folders of all agents and start anew"
            )
        return None

    def calls(self) -> Iterator[Call]:
        """Yield the calls that belong to the loaded checkpoint, in order."""
        if self._length == 0:
            return
        with (self.folder / JOURNAL).open("rb") as stream:
            while stream.tell() < self._length:
                content = codec.unpack(_read_record(stream))
                what = str(content.pop("what").tobytes(), "utf-8")
                yield Call(what, tuple(content.values()))
            if stream.tell() != self._length:
                raise WireError("its records do not end where the checkpoint says")

    def add(self, call: Call) -> None:
        """Add a call; it is on disk after the next `save`."""
        what = np.frombuffer(call.what.encode(), np.uint8)
        content = codec.pack(
            {"what": what, **{str(n): array for n, array in enumerate(call.arrays)}}
        )
        self._new.append(_make_record(content))

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint and the calls added since the last one.

        OSError leaves the earlier checkpoints intact. Only the frames of the file with this
        checkpoint's number are written; the others are on disk already.
        """
        number = self.sequence + 1
        length = self._append_new_records()
        about = {
            **checkpoint.about,
            "sequence": number,
            "journal": length,
            "sent": sorted(checkpoint.sent),
        }
        text = np.frombuffer(json.dumps(about).encode(), np.uint8)
        if number in checkpoint.sent:
            frames = codec.pack(checkpoint.sent[number])
            _replace(self._frames_path(number), _make_record(frames))
        state = codec.pack({"about": text, **checkpoint.arrays})
        _replace(self.folder / NAMES[number % 2], _make_record(state))
        self._length = length
        self.sequence = number
        self._new.clear()
        older, newer = self._frame_files
        self._frame_files = [newer, set(checkpoint.sent)]
        for unused in older - newer - set(checkpoint.sent):
            self._frames_path(unused).unlink(missing_ok=True)

    def forget(self, checkpoint: Checkpoint) -> None:
        """Delete the calls of a finished run; keep only this checkpoint, which says so."""
        self._length = 0
        self._new = []
        self.save(checkpoint)
        self.save(checkpoint)  # twice, so that neither of the two files needs the journal
        (self.folder / JOURNAL).unlink(missing_ok=True)

    def _frames_path(self, number: int) -> Path:
        return self.folder / f"sent-{number}.bin"

    def _read_checkpoint(self, path: Path) -> Checkpoint:
        """Read a checkpoint and its frames, or raise WireError if a file is damaged."""
        arrays = _read_arrays(path)
        about = json.loads(arrays.pop("about").tobytes())
        if not isinstance(about, dict) or not {"sequence", "journal", "sent"} <= set(about):
            raise WireError("it does not describe a run")
        frames = {number: _read_arrays(self._frames_path(number)) for number in about["sent"]}
        return Checkpoint(about, arrays, frames)

    def _append_new_records(self) -> int:
        """Append new records to the journal, sync it, and return its length."""
        if not self._new:
            return self._length
        path = self.folder / JOURNAL
        with open(path, "r+b" if path.exists() else "w+b", opener=open_private) as stream:
            stream.truncate(self._length)  # a failed attempt may have left more
            stream.seek(self._length)
            stream.writelines(self._new)
            stream.flush()
            os.fsync(stream.fileno())
            return stream.tell()


def _make_record(content: bytes) -> bytes:
    """Return the content with its checksum and length in front."""
    return _HEAD.pack(MAGIC, crc32(content), len(content)) + content


def _read_record(stream: IO[bytes]) -> bytes:
    """Read the content of the next record, or raise WireError if it is damaged."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise WireError("it ends in the middle of a record")
    magic, checksum, length = _HEAD.unpack(head)
    left = os.fstat(stream.fileno()).st_size - stream.tell()
    if magic != MAGIC or length > left:
        raise WireError("it was cut short or damaged")
    content = stream.read(length)
    if crc32(content) != checksum:
        raise WireError("it was damaged: its checksum is wrong")
    return content


def _read_arrays(path: Path) -> dict[str, AnyArray]:
    with path.open("rb") as stream:
        return codec.unpack(_read_record(stream))


def _replace(path: Path, content: bytes) -> None:
    """Replace a file in one step: write another one beside it, sync it, and rename it."""
    beside = path.with_suffix(".new")
    try:
        with open(beside, "wb", opener=open_private) as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
