"""Numpy's common generator, from which estimators draw that were given no seed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sklearn.utils import check_random_state


@contextmanager
def drawing_from(seed: int) -> Iterator[None]:
    """What is drawn from it here follows from the seed alone, and what is drawn afterwards does not notice."""
    common = check_random_state(None)
    before = common.get_state()
    common.seed(seed)
    try:
        yield
    finally:
        common.set_state(before)
