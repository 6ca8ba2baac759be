"""Files and folders that only their owner can read: modes 0600 and 0700, whatever the umask.

Private files are models, streams and checkpoints, because rows can be computed from them; shares
and test rows; and everything else that an agent writes at its site. Files that a user makes in
order to show them are ordinary, with the mode that the umask leaves: figures, tables and reports of
comparisons, predictions, and public data sets.

A file gets its mode when it is created, so it is never readable by others. Windows has no such
modes; files and folders are ordinary there.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

OWNER_READS_AND_WRITES = 0o600
OWNER_ENTERS = 0o700


def open_private(path: str, flags: int) -> int:
    """Open a file that only its owner can read. Pass it to Python's `open` as `opener` to write.

    A file that exists already, from an older release or another program, is made private before it
    is written to.
    """
    file = os.open(path, flags, OWNER_READS_AND_WRITES)
    if hasattr(os, "fchmod"):
        try:
            os.fchmod(file, OWNER_READS_AND_WRITES)
        except OSError:
            os.close(file)
            raise
    return file


def is_private(path: Path) -> bool:
    """Return whether a file is this user's own, and nobody else can read or write it."""
    if not hasattr(os, "getuid"):
        return True
    status = path.lstat()
    return (
        stat.S_ISREG(status.st_mode)
        and stat.S_IMODE(status.st_mode) & ~OWNER_READS_AND_WRITES == 0
        and status.st_uid == os.getuid()
    )


def make_private_folder(folder: Path) -> None:
    """Make a folder, and missing ones above it, that only their owner can enter.

    An existing folder keeps its mode: it may be shared on purpose, and private files in it stay
    private.
    """
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(mode=OWNER_ENTERS, exist_ok=True)
