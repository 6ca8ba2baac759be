"""Compiling a hot loop with numba, with its machine code kept for the next start where there is a place to keep it."""

from __future__ import annotations

from collections.abc import Callable

from numba import njit


def compiled(function: Callable[..., None]) -> Callable[..., None]:
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:  # nowhere to keep compiled code, as in a container that nobody may write to
        return njit(nogil=True)(function)
