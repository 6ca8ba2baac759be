"""Numpy's global generator, from which estimators without a seed draw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sklearn.utils import check_random_state


@contextmanager
def seed_globally(seed: int) -> Iterator[None]:
    """Seed numpy's global generator inside the block and restore its state afterwards."""
    generator = check_random_state(None)
    before = generator.get_state()
    generator.seed(seed)
    try:
        yield
    finally:
        generator.set_state(before)
