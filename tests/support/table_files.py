"""Files of tables, and what is said of those that cannot be used."""

from __future__ import annotations

import pytest

from peerlearn.data import table_file
from peerlearn.errors import DataError


def written(folder, text, name="t.csv"):
    path = folder / name
    path.write_bytes(text.encode())
    return path


def refused(path, sentence, target=None):
    with pytest.raises(DataError, match=sentence) as caught:
        table_file.read(path, target)
    assert path.name in str(caught.value)
