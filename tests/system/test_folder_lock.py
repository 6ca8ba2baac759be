"""Two processes do not share a folder."""

from __future__ import annotations

import os

import pytest

from peerlearn.errors import InputError
from peerlearn.system.folder_lock import lock_folder


def test_two_processes_do_not_share_a_folder(tmp_path):
    already = f"agent north runs in .* already, as process {os.getpid()}: "
    with (
        lock_folder(tmp_path, "agent north"),
        pytest.raises(InputError, match=already),
        lock_folder(tmp_path, "agent north"),
    ):
        pass
    with lock_folder(tmp_path, "agent north"):
        pass
