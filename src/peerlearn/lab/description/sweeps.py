"""Sweeps: a list where one value belongs stands for as many entries, each of which knows which value it has.

    { kind: RVFL, solver: { name: admm, max_iterations: [5, 10] } }  ->  two, swept over "solver.max_iterations"

A list that is the value itself is written as the only item of another, [[1, 2]]. Several lists are
combined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any


def written_out(values: Mapping[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Every combination of the values listed: the values, and of those which were swept by dotted key."""
    lists = dict(_lists(values))
    axes = {key: listed for key, listed in lists.items() if not _is_value(listed)}
    for key, listed in lists.items():
        if _is_value(listed):
            values = with_key(values, key, listed[0])
    found = []
    for chosen in product(*axes.values()):
        swept, entry = dict(zip(axes, chosen, strict=True)), dict(values)
        for key, value in swept.items():
            entry = with_key(entry, key, value)
        found.append((entry, swept))
    return found


def combinations(values: Mapping[str, Any]) -> int:
    """How many there are, counted without writing them out."""
    return prod(len(listed) for _, listed in _lists(values) if not _is_value(listed))


def empty_lists(values: Mapping[str, Any]) -> list[str]:
    """Dotted keys that leave nothing to run."""
    return [key for key, listed in _lists(values) if not listed]


def repeated(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Dotted keys that list a value more than once, and that value."""
    lists = [(key, listed) for key, listed in _lists(values) if not _is_value(listed)]
    return [(key, each) for key, listed in lists for each in _twice(listed)]


def with_key(values: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """The same values but for that of a dotted key; a name alone becomes a table, as solver in "solver.tolerance"."""
    first, _, rest = key.partition(".")
    if not rest:
        return {**values, first: value}
    inner = values.get(first, {})
    return {
        **values,
        first: with_key({"name": inner} if isinstance(inner, str) else inner, rest, value),
    }


def has_key(values: Mapping[str, Any], key: str) -> bool:
    """Whether there is a value under a dotted key."""
    first, _, rest = key.partition(".")
    if not rest:
        return first in values
    inner = values.get(first)
    return isinstance(inner, Mapping) and has_key(inner, rest)


def is_swept(values: Mapping[str, Any], key: str) -> bool:
    """Whether the value under a dotted key is a list of values to run."""
    return key in {each for each, listed in _lists(values) if not _is_value(listed)}


def _lists(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Every list by its dotted key."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _lists(value, f"{before}{key}.")
        elif isinstance(value, list | tuple):
            yield f"{before}{key}", list(value)


def _twice(listed: list[Any]) -> list[Any]:
    """Lists and tables are compared one by one, which would take long of thousands of numbers."""
    compared = (list, tuple, dict)
    counts = Counter(each for each in listed if not isinstance(each, compared))
    return [
        each
        for each in listed
        if (listed.count(each) if isinstance(each, compared) else counts[each]) > 1
    ]


def _is_value(listed: list[Any]) -> bool:
    return len(listed) == 1 and isinstance(listed[0], list | tuple)
