"""Checks of the settings that completions share."""

from __future__ import annotations

from typing import Any

import numpy as np

from peerlearn.arrays import is_real, is_whole
from peerlearn.errors import InputError


def check_rank(rank: Any) -> None:
    """Refuse a rank that is neither a whole number of 1 or more nor None."""
    if rank is not None and (not is_whole(rank) or rank < 1):
        raise InputError(
            f"rank is {rank!r}: give a whole number of 1 or more, "
            "or None for that of the rows' columns"
        )


def check_iterations(iterations: Any) -> None:
    """Refuse a limit of iterations that is not a whole number of 1 or more."""
    if not is_whole(iterations) or iterations < 1:
        raise InputError(f"iterations is {iterations!r}: give a whole number of 1 or more")


def check_step(step: Any) -> None:
    """Refuse a step that is neither a number above 0 nor None."""
    if step is not None and (not is_real(step) or not 0 < step < np.inf):
        raise InputError(f"step is {step!r}: give a number above 0")
