"""One [[expect]] about many runs: `each` lists values, and every combination is expected.

    each = { alpha = [0.1, 0.01] }, where = { model = "ESN" }, value = [0.35, 0.21]

is two numbers, of ESN with alpha 0.1 and with 0.01. The values are conditions of both sides of a
claim, but for those that `to` has itself. What the combinations differ in is a list with an item
for each; the last key of `each` runs fastest.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

from peerlearn.toml_reader import TomlTable

OWN = ("source", "value", "spread", "within", "at", "reason")  # may differ between combinations


def for_each(table: TomlTable) -> list[TomlTable]:
    """Return one table per combination; the table itself if it has no `each`."""
    if "each" not in table.values:
        return [table]
    axes, where, to = (table.take(key, dict, {}) for key in ("each", "where", "to"))
    _check(table, axes, where)
    combinations = [dict(zip(axes, chosen, strict=True)) for chosen in product(*axes.values())]
    rest = {key: value for key, value in table.values.items() if key not in ("each", "where", "to")}
    found = []
    for place, conditions in enumerate(combinations):
        values = {
            key: _own(table, key, value, place, len(combinations)) for key, value in rest.items()
        }
        values["where"] = where | conditions
        if to:
            values["to"] = conditions | to
        found.append(TomlTable(values, table.path, table.prefix))
    return found


def count_expectations(entries: list[dict[str, Any]]) -> int:
    """Return how many expectations these entries of a file are."""
    return sum(prod(len(listed) for listed in entry.get("each", {}).values()) for entry in entries)


def _check(table: TomlTable, axes: Mapping[str, Any], where: Mapping[str, Any]) -> None:
    if not axes:
        raise table.wrong(
            "each", "is empty: give lists of values, as in { alpha = [0.1, 0.01] }, or leave it out"
        )
    for key, listed in axes.items():
        if not isinstance(listed, list) or not listed:
            raise table.wrong(f"each.{key}", f"is {listed!r:.80}: give a list of values")
        if key in where:
            raise table.wrong(f"each.{key}", "stands in `where` as well: leave out one of them")


def _own(table: TomlTable, key: str, value: Any, place: int, count: int) -> Any:
    """Return the item of this combination if the value is a list, else the shared value."""
    if key not in OWN or not isinstance(value, list):
        return value
    if len(value) != count:
        raise table.wrong(
            key, f"has {len(value)} items, and `each` makes {count} combinations: give one for each"
        )
    return value[place]
