"""Undo changes of a model when an error occurs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def restored_on_error(model: Any) -> Iterator[None]:
    """Restore the attributes of the model if an error leaves the block."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise
