"""One process per folder: two would write over each other's checkpoints."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from peerlearn.errors import InputError

try:
    import fcntl
except ImportError:  # not on this system: nobody is kept out
    fcntl = None  # type: ignore[assignment]


@contextmanager
def alone(folder: Path, who: str) -> Iterator[None]:
    """Refuse to begin while another process is in here; a process that is killed is no longer."""
    with (folder / ".lock").open("a+", encoding="utf-8") as lock:
        try:
            with suppress(AttributeError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            process = lock.read().strip() or "another one"
            raise InputError(f"{who} runs in {folder} already, as process {process}: wait for it, or end it") from None
        except OSError:
            pass  # a disk that knows no locks
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield
