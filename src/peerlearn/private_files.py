"""Files and folders for their owner alone: 0600 and 0700, whatever the umask.

Private are models, streams and checkpoints, because rows can be computed from them; shares and test
rows, which are rows; and everything else that an agent writes at its site. What a user asks for in
order to show it is an ordinary file, with the rights that the umask leaves: figures, tables and
reports of comparisons, predictions, and public data sets.

A file gets its rights when it is created, so that it never has wider ones. On Windows, which has no
such rights, files and folders are ordinary.
"""

from __future__ import annotations

import os
from pathlib import Path

OWNER_READS_AND_WRITES = 0o600
OWNER_ENTERS = 0o700


def open_private(path: str, flags: int) -> int:
    """Open a file for its owner alone: the `opener` of Python's `open`, for modes that write.

    A file that is there already, from an older release or another program, loses wider rights
    before it is written to.
    """
    file = os.open(path, flags, OWNER_READS_AND_WRITES)
    if hasattr(os, "fchmod"):
        try:
            os.fchmod(file, OWNER_READS_AND_WRITES)
        except OSError:
            os.close(file)
            raise
    return file


def make_private_folder(folder: Path) -> None:
    """Make the folder, and missing ones above it, for their owner alone.

    A folder that is there keeps its rights: somebody may share it on purpose, and private files in
    it stay private.
    """
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(mode=OWNER_ENTERS, exist_ok=True)
