"""Disks that are full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from peerlearn.network.peers import journal as journals


class Full:
    """A disk that is full for some operations."""

    def __init__(self, monkeypatch):
        self.monkeypatch = monkeypatch

    def __call__(self, what):
        def refuse(*_, **__):
            raise OSError(errno.ENOSPC, "No space left on device")

        owner, name = {
            "open": (journals, "open_private"),
            "fsync": (os, "fsync"),
            "replace": (Path, "replace"),
        }[what]
        context = self.monkeypatch.context()
        patch = context.__enter__()
        patch.setattr(owner, name, refuse)
        return lambda: context.__exit__(None, None, None)
