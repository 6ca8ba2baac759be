"""What an agent must not forget: on disk, so that it can be killed at any moment and go on.

    journal.bin                         what every network call gave back, appended record by record
    sent-7.bin, ..                      what neighbors may ask for again: the frames sent since the checkpoint before
    checkpoint-1.bin, checkpoint-2.bin  in turn: where the run stood, how much of the journal and which of the frames
                                        count; written beside its place, synced, and moved

A restarted agent runs its algorithm from the start; calls that the journal knows return at once
with the same bits, so no algorithm has to know how to resume. Every file part carries its length
and checksum: one that was torn is noticed, and the checkpoint before it is taken. Agents tell their
neighbors the round of that one, so that it suffices.
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
    """A network call that is done, and what it gave."""

    what: str
    arrays: tuple[AnyArray, ...]


@dataclass(frozen=True)
class Checkpoint:
    """Where a run stood. `about` holds plain values, `arrays` numbers, `sent` frames by the file they are kept in."""

    about: dict[str, Any]
    arrays: dict[str, AnyArray] = field(default_factory=dict)
    sent: dict[int, dict[str, AnyArray]] = field(default_factory=dict)


class Journal:
    """The checkpoints of one agent in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.warning = ""  # what was wrong with the newest checkpoint, if an older one had to do
        self._new: list[bytes] = []
        self.sequence = 0  # of the last checkpoint
        self._counted: list[set[int]] = [
            set(),
            set(),
        ]  # files of frames that the last two checkpoints count on
        self._length = 0  # bytes of the journal that the last checkpoint counts on
        try:
            make_private_folder(folder)
        except OSError as error:
            raise NetworkError(
                f"checkpoints cannot be kept in {folder} ({error.strerror}): name another folder"
            ) from None

    def load(self) -> Checkpoint | None:
        """The newest checkpoint that is whole, or None where there is none at all."""
        found: list[Checkpoint] = []
        damaged = []
        for name in NAMES:
            path = self.folder / name
            if path.exists():
                try:
                    found.append(self._checkpoint(path))
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
            self._counted = [
                {int(each) for each in numbers if each.isdecimal()},
                set(checkpoint.sent),
            ]
            self.warning = "; ".join(damaged)
            return checkpoint
        if damaged:
            raise NetworkError(
                f"no checkpoint in {self.folder} is whole ({'; '.join(damaged)}): bring a copy back, or empty the "
                "checkpoint folders of all agents and start anew"
            )
        return None

    def calls(self) -> Iterator[Call]:
        """The calls that the loaded checkpoint counts on, in order."""
        if self._length == 0:
            return
        with (self.folder / JOURNAL).open("rb") as stream:
            while stream.tell() < self._length:
                content = codec.unpack(_record(stream))
                what = str(content.pop("what").tobytes(), "utf-8")
                yield Call(what, tuple(content.values()))
            if stream.tell() != self._length:
                raise WireError("its records do not end where the checkpoint says")

    def add(self, call: Call) -> None:
        """Remember a call; it is on disk after the next `save`."""
        what = np.frombuffer(call.what.encode(), np.uint8)
        content = codec.pack(
            {"what": what, **{str(n): array for n, array in enumerate(call.arrays)}}
        )
        self._new.append(_sealed(content))

    def save(self, checkpoint: Checkpoint) -> None:
        """Bring all that was added, and where the run stands, to disk; OSError leaves what was there before.

        Of the frames only those of the file with this checkpoint's number are written, the others
        are there already.
        """
        number, length = self.sequence + 1, self._appended()
        about = {
            **checkpoint.about,
            "sequence": number,
            "journal": length,
            "sent": sorted(checkpoint.sent),
        }
        text = np.frombuffer(json.dumps(about).encode(), np.uint8)
        if number in checkpoint.sent:
            _replace(self._sent(number), _sealed(codec.pack(checkpoint.sent[number])))
        _replace(
            self.folder / NAMES[number % 2],
            _sealed(codec.pack({"about": text, **checkpoint.arrays})),
        )
        self._length, self.sequence = length, number
        self._new.clear()
        unused = self._counted[0] - self._counted[1] - set(checkpoint.sent)
        self._counted = [self._counted[1], set(checkpoint.sent)]
        for each in unused:
            self._sent(each).unlink(missing_ok=True)

    def forget(self, checkpoint: Checkpoint) -> None:
        """The run is over and nobody needs its calls: keep no more than the word that it is."""
        self._length, self._new = 0, []
        self.save(checkpoint)
        self.save(checkpoint)  # both, so that none counts on what goes now
        (self.folder / JOURNAL).unlink(missing_ok=True)

    def _sent(self, number: int) -> Path:
        return self.folder / f"sent-{number}.bin"

    def _checkpoint(self, path: Path) -> Checkpoint:
        """A checkpoint with the frames that it counts on, if all are whole."""
        arrays = _arrays(path)
        about = json.loads(arrays.pop("about").tobytes())
        if not isinstance(about, dict) or not {"sequence", "journal", "sent"} <= set(about):
            raise WireError("it says nothing of its run")
        return Checkpoint(
            about, arrays, {number: _arrays(self._sent(number)) for number in about["sent"]}
        )

    def _appended(self) -> int:
        """Append what is new behind what counts already, and bring it to the disk."""
        if not self._new:
            return self._length
        path = self.folder / JOURNAL
        with open(path, "r+b" if path.exists() else "w+b", opener=open_private) as stream:
            stream.truncate(self._length)  # what a failed attempt may have left
            stream.seek(self._length)
            stream.writelines(self._new)
            stream.flush()
            os.fsync(stream.fileno())
            return stream.tell()


def _sealed(content: bytes) -> bytes:
    return _HEAD.pack(MAGIC, crc32(content), len(content)) + content


def _record(stream: IO[bytes]) -> bytes:
    """The content of the record that begins here, if it is whole."""
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


def _arrays(path: Path) -> dict[str, AnyArray]:
    with path.open("rb") as stream:
        return codec.unpack(_record(stream))


def _replace(path: Path, content: bytes) -> None:
    """Put the file in its place whole: written beside it, synced, and moved."""
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
