"""A lock per folder: two processes would overwrite each other's files."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from peerlearn.errors import InputError
from peerlearn.private_files import open_private

log = logging.getLogger("peerlearn.peers")


@contextmanager
def lock_folder(folder: Path, who: str, *, private: bool = False) -> Iterator[None]:
    """Hold the folder's lock, or raise if another process has it; a killed process has not.

    private: the lock is a file for its owner alone, see `private_files`.
    """
    with open(
        folder / ".lock", "a+", encoding="utf-8", opener=open_private if private else None
    ) as lock:
        try:
            _lock(lock)
        except BlockingIOError:
            lock.seek(0)
            process = lock.read().strip() or "another one"
            raise InputError(
                f"{who} runs in {folder} already, as process {process}: wait for it, or end it"
            ) from None
        except (ImportError, OSError) as error:  # a system or a disk that knows no locks
            log.warning(
                "%s cannot be locked (%s): see that nobody else runs %s here", folder, error, who
            )
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def is_taken(folder: Path) -> bool:
    """Return whether another process is in here now."""
    try:
        with (folder / ".lock").open("r", encoding="utf-8") as lock:
            _lock(lock)
    except BlockingIOError:
        return True
    except (ImportError, OSError):  # nobody was here, or there are no locks
        return False
    return False


def _lock(file: IO[str]) -> None:
    import fcntl  # not on every system

    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
