"""Reader and writer of TOML files. Every mistake is one sentence with file, key and way out."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from peerlearn.errors import InputError

NUMBER = (int, float)
KINDS = {
    str: "a text in quotes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


def read(path: Path) -> TomlTable:
    """Read a file as a table, or raise InputError."""
    try:
        return TomlTable(tomllib.loads(path.read_text(encoding="utf-8")), path)
    except FileNotFoundError:
        raise InputError(
            f"there is no file {path}: check the path, seen from {Path.cwd()}"
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not TOML: save it as UTF-8 text") from None
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}): give a file that this user may read"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML: {error}") from None


class TomlTable:
    """One table of a TOML file.

    `only` refuses unknown keys, and `take` returns the value of a known one.

    values: the keys and values.
    path: the file, for error messages.
    prefix: what comes before the keys in error messages, such as "network.".
    """

    def __init__(self, values: dict[str, Any], path: Path | str, prefix: str = "") -> None:
        self.values = dict(values)
        self.path = path
        self.prefix = prefix
        self._known: set[str] = set()

    def only(self, *known: str) -> TomlTable:
        """Raise InputError for all other keys.

        Call it before `take`. A misspelt key is also missing, and that message would say less.
        """
        for key in self.values:
            if key not in known:
                raise self._unknown(key, known)
        return self

    def take(
        self, key: str, kinds: type | tuple[type, ...], default: Any = ..., *, what: str = ""
    ) -> Any:
        """Return the value of a key, which is of one of these kinds.

        The key is required if there is no default. `what` describes the value in error messages.
        """
        self._known.add(key)
        allowed = kinds if isinstance(kinds, tuple) else (kinds,)
        wanted = what or KINDS[allowed[-1]]
        if key not in self.values:
            if default is not ...:
                return default
            misspelt = get_close_matches(key, self.values.keys() - self._known, 1)
            if misspelt:
                raise self._unknown(misspelt[0], [key])
            raise self.wrong(key, f"is missing: give {wanted}")
        value = self.values[key]
        bool_as_number = isinstance(value, bool) and not {bool, object} & set(allowed)
        if bool_as_number or not isinstance(value, allowed):
            raise self.wrong(key, f"is {value!r:.80}: give {wanted}")
        return value

    def table(self, key: str, *, needed: bool = True) -> TomlTable:
        """Return a table within this one; an empty one if it is missing and not needed."""
        values = self.take(key, dict, ... if needed else {}, what=f"a table, [{self.prefix}{key}]")
        return TomlTable(values, self.path, f"{self.prefix}{key}.")

    def tables(self, key: str, *, needed: bool = True) -> list[TomlTable]:
        """Return the tables of an array, [[key]].

        Error messages name each by its key `name` if it has one, else by its place from 1.
        """
        wanted = f"one table or more, [[{self.prefix}{key}]]"
        listed = self.take(key, list, ... if needed else [], what=wanted)
        if not all(isinstance(each, dict) for each in listed) or (needed and not listed):
            raise self.wrong(key, f"is {listed!r:.80}: give {wanted}")
        names = [each.get("name", place) for place, each in enumerate(listed, 1)]
        return [
            TomlTable(each, self.path, f"{self.prefix}{key}[{name!r}].")
            for name, each in zip(names, listed, strict=True)
        ]

    def rest(self) -> dict[str, Any]:
        """Return all keys that were not taken by name."""
        left = {key: value for key, value in self.values.items() if key not in self._known}
        self._known.update(left)
        return left

    def _unknown(self, key: str, known: Iterable[str]) -> InputError:
        """Return the error about an unknown key; tables are written in brackets."""
        name = f"{self.prefix}{key}"
        value = self.values[key]
        if isinstance(value, dict):
            return InputError(f"[{name}] in {self.path} is not known{near(key, known)}")
        if isinstance(value, list) and any(isinstance(each, dict) for each in value):
            return InputError(f"[[{name}]] in {self.path} is not known{near(key, known)}")
        return self.wrong(key, f"is not a key here{near(key, known)}")

    def wrong(self, key: str, why: str) -> InputError:
        """Return an error about the value of a key."""
        return InputError(f"{self.prefix}{key} in {self.path} {why}")

    @contextmanager
    def about(self, key: str) -> Iterator[None]:
        """Add this key and the file to errors of the block."""
        try:
            yield
        except (InputError, TypeError, ValueError) as error:
            raise self.wrong(key, f"cannot be used: {error}") from None

    @contextmanager
    def about_all(self) -> Iterator[None]:
        """Add this table and the file to errors of the block."""
        try:
            yield
        except (InputError, TypeError, ValueError) as error:
            raise InputError(
                f"{self.prefix.rstrip('.')} in {self.path} cannot be used: {error}"
            ) from None


def near(given: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown word: the nearest known one, or all."""
    names = sorted(known)
    same = [name for name in names if name.casefold() == given.casefold()]
    begun = [name for name in names if name.startswith(given) and given]
    close = same or begun or get_close_matches(given, names, 1, 0.6)
    return f": did you mean {close[0]}?" if close else f": there are {', '.join(names)}"


def toml(values: Mapping[str, Any], name: str = "") -> str:
    """Return plain values as TOML; the values of a table come before the tables within it."""
    tables = {key: value for key, value in values.items() if isinstance(value, dict)}
    lines = [f"[{name}]\n"] if name else []
    lines += [
        f"{_key(key)} = {_value(value)}\n" for key, value in values.items() if key not in tables
    ]
    lines += [
        "\n" + toml(value, f"{name}.{_key(key)}" if name else _key(key))
        for key, value in tables.items()
    ]
    return "".join(lines)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_key(key)} = {_value(each)}' for key, each in value.items())}}}"
    return repr(value)  # whole numbers, and floats with all their digits
