"""TOML is read as it was written."""

from __future__ import annotations

import math
import tomllib

from hypothesis import given
from hypothesis import strategies as st

from peerlearn.toml_reader import toml

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
PLAIN = st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=5))
def test_toml_is_read_as_it_was_written(values):
    assert tomllib.loads(toml(values)) == values


def test_toml_keeps_kinds_apart():
    assert (
        str(tomllib.loads(toml({"a": 1, "b": 1.0, "c": True, "d": math.nan})))
        == "{'a': 1, 'b': 1.0, 'c': True, 'd': nan}"
    )
