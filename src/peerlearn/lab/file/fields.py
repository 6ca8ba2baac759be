"""Objects from tables of a file: each field of a dataclass is a key of the field's type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from peerlearn.arrays import is_real, is_whole
from peerlearn.toml_reader import TomlTable, near

WORDS: dict[Any, str] = {
    str: "a text in quotes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    NoneType: "nothing",
}


def make_from(kind: Any, table: TomlTable) -> Any:
    """Return an object of this dataclass; a key that is not one of its fields is refused."""
    hints = get_type_hints(kind)
    given = {}
    table.only(*(each.name for each in fields(kind)))
    for each in fields(kind):
        hint = hints[each.name]
        needed = each.default is MISSING and each.default_factory is MISSING
        value = table.take(each.name, object, ... if needed else MISSING, what=words(hint))
        if value is not MISSING:
            given[each.name] = _check_field(table, each.name, value, hint)
    with table.about_all():
        return kind(**given)


def check_fields(given: Any, table: TomlTable, *names: str) -> Any:
    """Return an object made in Python, its fields checked and converted as those of a file.

    names: only these fields.
    """
    hints = get_type_hints(type(given))
    chosen = names or [each.name for each in fields(given)]
    return replace(
        given,
        **{name: _check_field(table, name, getattr(given, name), hints[name]) for name in chosen},
    )


def _check_field(table: TomlTable, key: str, value: Any, hint: Any) -> Any:
    if not fits(value, hint):
        choices = (
            [each for each in get_args(hint) if isinstance(each, str)]
            if get_origin(hint) is Literal
            else []
        )
        if choices and isinstance(value, str):
            raise table.wrong(key, f"is {value!r}, which is not known{near(value, choices)}")
        raise table.wrong(key, f"is {value!r:.80}: give {words(hint)}")
    return _convert(value, hint)


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of this type; files write a tuple as a list."""
    origin = get_origin(hint) or hint
    inner = get_args(hint)
    if hint is Any:
        return True
    if origin is Literal:
        return any(value == each and type(value) is type(each) for each in inner)
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in inner)
    if origin is tuple:
        listed = isinstance(value, list | tuple)
        several = inner[:1] * len(value) if listed and inner[-1] is ... else inner
        return listed and len(value) == len(several) and all(map(fits, value, several))
    if origin in (int, float):
        return is_whole(value) if origin is int else is_real(value)
    return isinstance(value, origin)


def words(hint: Any) -> str:
    """Return what a value of this type is, for the end of a sentence."""
    origin = get_origin(hint) or hint
    inner = get_args(hint)
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin in (Union, UnionType):
        return " or ".join(words(each) for each in inner if each is not NoneType)
    if origin is tuple:
        several = "a list of which each is" if inner[-1] is ... else f"a list of {len(inner)}, each"
        return f"{several} {words(inner[0])}"
    if origin in (dict, Mapping):
        return "a table"
    return WORDS.get(origin) or (f"a {origin.__name__}" if isinstance(origin, type) else "a value")


def _convert(value: Any, hint: Any) -> Any:
    """Return lists as tuples, and whole numbers as floats where those are meant: 1 is 1.0."""
    origin = get_origin(hint) or hint
    inner = get_args(hint)
    if origin in (Union, UnionType):
        return next(_convert(value, each) for each in inner if fits(value, each))
    if origin is tuple:
        return tuple(_convert(each, inner[0]) for each in value)
    return origin(value) if origin in (int, float) else value
