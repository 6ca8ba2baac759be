"""A file at a smaller size: what [quick] changes, and what [tiny], for tests, adds.

    repetitions, folds, test_fraction, metrics     in place of the file's
    data, models                    only those of these names
    networks, protocol, search      tables of keys to set, dotted for what lies deeper, as in
                                    "solver.max_iterations" = 10
    model                           likewise, in every model and in every data set's settings
    options                         likewise, in every data set's options

A key is set in every entry that has it, and one that no entry has is refused. Without [quick] there
is one repetition, and there are three folds at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, get_args

from peerlearn.errors import InputError
from peerlearn.lab.description.sweeps import has_key, is_swept, with_key
from peerlearn.toml_reader import TomlTable, near

Size = Literal["full", "quick", "tiny"]
SIZES: tuple[Size, ...] = get_args(Size)
PLAIN: dict[str, Any] = {
    "repetitions": int,
    "folds": int,
    "test_fraction": (int, float),
    "metrics": list,
}
NAMED = ("data", "models")
Values = dict[str, Any]
# Lists of the file, and which table of their entries; an empty name means the entry itself.
Places = tuple[tuple[str, str], ...]
PLACES: dict[str, Places] = {
    "networks": (("networks", ""),),
    "model": (("models", ""), ("data", "settings")),
    "options": (("data", "options"),),
}
KEYS = (*PLAIN, *NAMED, "protocol", "search", *PLACES)


def values_at_size(top: TomlTable, size: Size) -> Values:
    """Return the values of a file at this size."""
    if size not in SIZES:
        raise InputError(f"size is {size!r}{near(str(size), SIZES)}")
    values = dict(top.values)
    names: dict[str, list[str]] = {}
    for name in SIZES[1 : SIZES.index(size) + 1]:
        if name in top.values:
            change = top.table(name).only(*KEYS)
            for key in NAMED:
                asked = _names(values, change, key)
                if asked is not None:
                    names[key] = asked
            values = _apply_size(values, change)
        elif name == "quick":
            values |= {"repetitions": 1, "folds": min(values.get("folds", 1), 3)}
    # At the end, so that [tiny] may name others than [quick].
    return values | {
        key: [entry for entry in values[key] if entry["name"] in asked]
        for key, asked in names.items()
    }


@contextmanager
def about_size(top: TomlTable, size: Size) -> Iterator[None]:
    """Name in objections to a smaller comparison the keys that made it so."""
    try:
        yield
    except InputError as error:
        said = str(error)
        keys = list(_keys(top.values.get(size, {})))
        told = [key for key in keys if re.search(rf"\b{re.escape(key.rpartition('.')[2])}\b", said)]
        what = f"{size}.{told[0]}" if told else f"[{size}]"
        raise InputError(f"{what} in {top.path} leads to what cannot be run: {said}") from None


def _keys(change: Mapping[str, Any]) -> Iterator[str]:
    """Yield all keys of a size, those of its tables dotted."""
    for key, value in change.items():
        yield from [f"{key}.{inner}" for inner in value] if isinstance(value, Mapping) else [key]


def _names(values: Values, change: TomlTable, key: str) -> list[str] | None:
    known = [entry["name"] for entry in values[key]]
    asked: list[str] | None = change.take(key, list, None, what="a list of names")
    for name in asked or ():
        if name not in known:
            raise change.wrong(
                key, f"has {name!r}, which is no name in [[{key}]]{near(str(name), known)}"
            )
    if asked == []:
        raise change.wrong(
            key, f"is empty, which leaves nothing to run: name some of {', '.join(known)}"
        )
    return asked


def _apply_size(values: Values, change: TomlTable) -> Values:
    """Return the values with all changes of a size, except which entries take part."""
    plain = {key: change.take(key, kind, None) for key, kind in PLAIN.items()}
    values = values | {key: value for key, value in plain.items() if value is not None}
    for key in ("protocol", "search"):
        for setting, value in change.table(key, needed=False).rest().items():
            values = with_key(values, f"{key}.{setting}", value)
    for key, places in PLACES.items():
        table = change.table(key, needed=False)
        for setting, value in table.rest().items():
            values = _set_everywhere(values, places, setting, value, table)
    return values


def _set_everywhere(
    values: Values, places: Places, key: str, value: Any, table: TomlTable
) -> Values:
    found = False
    for entries, inner in places:
        chosen = []
        for entry in values.get(entries, []):
            within = entry.get(inner, {}) if inner else entry
            if isinstance(within, Mapping) and has_key(within, key):
                found = True
                within = with_key(within, key, _as_swept(within, key, value))
                entry = {**entry, inner: within} if inner else within
            chosen.append(entry)
        values = {**values, entries: chosen}
    if not found:
        where = " or ".join(
            f"[[{entries}]]" + (f", in its {inner}" if inner else "") for entries, inner in places
        )
        raise table.wrong(
            key, f"stands nowhere in {where}: change what is there, or leave this out"
        )
    return values


def _as_swept(values: Mapping[str, Any], key: str, value: Any) -> Any:
    """Return a sweep as a list of a single value, so that its column stays."""
    return [value] if is_swept(values, key) and not isinstance(value, list) else value
