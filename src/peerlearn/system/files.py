"""Result files: each is written beside its place and then moved, so that none is half there."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from peerlearn.errors import InputError
from peerlearn.private_files import make_private_folder, open_private


def result_folder(path: str | os.PathLike[str], *, private: bool = False) -> Path:
    """Return the folder, made if it is missing; raise if nothing can be written there.

    private: a folder that is made is for its owner alone, see `private_files`.
    """
    folder = Path(path).expanduser()
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, but results need a folder: name another one")
    trial = folder / f".trial.{os.getpid()}.tmp"
    try:
        if private:
            make_private_folder(folder)
        else:
            folder.mkdir(parents=True, exist_ok=True)
        trial.touch(0o600)
        trial.unlink()
    except OSError as error:
        raise InputError(
            f"results cannot be written to {folder} ({error.strerror}): name another folder"
        ) from error
    return folder


def write(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Replace the file at once: readers see the old or the new one, never half of one.

    private: for its owner alone, see `private_files`.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(beside, "wb", opener=open_private if private else None) as file:
            file.write(content.encode() if isinstance(content, str) else content)
        beside.replace(path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror}): make room or name another folder"
        ) from error
    finally:
        with suppress(OSError):
            beside.unlink()  # still there only if something went wrong


def clear(path: Path) -> None:
    """Delete temporary files of writers that were killed."""
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        with suppress(OSError):
            left.unlink()


def file_name(name: str) -> str:
    """Return a name as a file can have it on any system."""
    return re.sub(r"[^\w.=+-]+", "-", name).strip("-.") or "unnamed"


def write_table(path: Path, records: Sequence[Any], digits: int = 5) -> None:
    """Write a CSV file with a line per record (a dataclass) and its fields as columns."""
    lines = [
        {name: _text(value, digits) for name, value in asdict(record).items()} for record in records
    ]
    text = io.StringIO()
    table = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(lines)
    write(path, text.getvalue())


def read_table(path: Path, words: Sequence[str], numbers: Sequence[str]) -> list[dict[str, Any]]:
    """Read a CSV file that must have these columns, the last ones as numbers."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    if not lines or not {*words, *numbers} <= set(lines[0]):
        raise InputError(
            f"{path.name} needs a line and the columns {', '.join((*words, *numbers))}: make it "
            f"again"
        )
    return [{**line, **{name: float(line[name]) for name in numbers}} for line in lines]


def _text(value: Any, digits: int) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)
