"""The sentence that a data set is refused with."""

from __future__ import annotations

import pytest

from peerlearn.data import load
from peerlearn.errors import DataError


def sentence(name, folder=None):
    with pytest.raises(DataError) as caught:
        load(name, folder)
    text = str(caught.value)
    assert ": " in text
    assert "\n" not in text
    return text
