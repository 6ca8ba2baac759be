"""Cases that every engine must agree on, found in the code.

A case takes a network and returns named arrays whose leading axis is the hosted agents. What an
agent has depends on its number alone. There is a case for every call of a network, every way to
average, and every solver, learner and model of the package: a new one is found.
"""

from __future__ import annotations

from functools import cache

from peerlearn.testing.cases import (
    agreement,
    calls,
    distances,
    models,
    preparing,
    readout,
    search,
    smooth,
)
from peerlearn.testing.cases.case import Case

__all__ = ["Case", "algorithm_cases", "call_cases"]

call_cases = calls.cases


@cache
def algorithm_cases() -> dict[str, Case]:
    """Return the cases of all algorithms and models, by name."""
    found: dict[str, Case] = {}
    for module in (agreement, readout, distances, smooth, models, search, preparing):
        found |= module.cases()
    return found
