"""A model that refuses what it is given stays as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def restored_on_error(model: Any) -> Iterator[None]:
    """Attributes that are set inside are taken back if an error leaves it."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise
