"""Compiling a hot loop with numba, with its machine code kept for the next start where there is a place to keep it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

Result = TypeVar("Result")


def compiled(function: Callable[..., Result]) -> Callable[..., Result]:
    try:
        made = njit(cache=True, nogil=True)(function)
    except RuntimeError:  # nowhere to keep compiled code, as in a container that nobody may write to
        made = njit(nogil=True)(function)
    return cast(Callable[..., Result], made)
