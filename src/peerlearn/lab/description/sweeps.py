"""Sweeps: a list in place of a value makes one entry per value, which keeps its value.

    { kind: RVFL, solver: { name: admm, max_iterations: [5, 10] } }

are two entries, swept over "solver.max_iterations".

A list that is the value itself is written as the only item of another, [[1, 2]]. Several lists are
combined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any


def write_out(values: Mapping[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return every combination of the listed values, with the swept ones by dotted key."""
    lists = dict(_lists(values))
    axes = {key: listed for key, listed in lists.items() if not _is_value(listed)}
    for key, listed in lists.items():
        if _is_value(listed):
            values = with_key(values, key, listed[0])
    found = []
    for chosen in product(*axes.values()):
        swept = dict(zip(axes, chosen, strict=True))
        entry = dict(values)
        for key, value in swept.items():
            entry = with_key(entry, key, value)
        found.append((entry, swept))
    return found


def combinations(values: Mapping[str, Any]) -> int:
    """Return how many combinations there are, without writing them out."""
    return prod(len(listed) for _, listed in _lists(values) if not _is_value(listed))


def empty_lists(values: Mapping[str, Any]) -> list[str]:
    """Return the dotted keys that leave nothing to run."""
    return [key for key, listed in _lists(values) if not listed]


def find_repeated(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the dotted keys that list a value more than once, with that value."""
    lists = [(key, listed) for key, listed in _lists(values) if not _is_value(listed)]
    return [(key, each) for key, listed in lists for each in _twice(listed)]


def with_key(values: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return the values with another value at a dotted key.

    A name alone becomes a table, as solver does for "solver.tolerance".
    """
    first, _, rest = key.partition(".")
    if not rest:
        return {**values, first: value}
    inner = values.get(first, {})
    return {
        **values,
        first: with_key({"name": inner} if isinstance(inner, str) else inner, rest, value),
    }


def has_key(values: Mapping[str, Any], key: str) -> bool:
    """Return whether there is a value under a dotted key."""
    first, _, rest = key.partition(".")
    if not rest:
        return first in values
    inner = values.get(first)
    return isinstance(inner, Mapping) and has_key(inner, rest)


def is_swept(values: Mapping[str, Any], key: str) -> bool:
    """Return whether the value under a dotted key is a list of values to run."""
    return key in {each for each, listed in _lists(values) if not _is_value(listed)}


def _lists(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Yield every list by its dotted key."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _lists(value, f"{before}{key}.")
        elif isinstance(value, list | tuple):
            yield f"{before}{key}", list(value)


def _twice(listed: list[Any]) -> list[Any]:
    """Return the repeated values; lists and tables are compared one by one, which is slow."""
    compared = (list, tuple, dict)
    counts = Counter(each for each in listed if not isinstance(each, compared))
    return [
        each
        for each in listed
        if (listed.count(each) if isinstance(each, compared) else counts[each]) > 1
    ]


def _is_value(listed: list[Any]) -> bool:
    return len(listed) == 1 and isinstance(listed[0], list | tuple)
