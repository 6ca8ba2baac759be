"""Reading TOML so that every mistake is one sentence: which file, which key, what it should be."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from peerlearn.errors import InputError


def read(path: Path) -> Table:
    """The file as a table of keys."""
    try:
        return Table(tomllib.loads(path.read_text(encoding="utf-8")), path)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}: check the path, seen from {Path.cwd()}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error})") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML: {error}") from None


class Table:
    """A table of a TOML file, from which each key is taken once; what nobody took was not understood."""

    def __init__(self, values: dict[str, Any], path: Path, prefix: str = "") -> None:
        self.values, self.path, self._prefix = dict(values), path, prefix
        self._known: set[str] = set()

    def take(self, key: str, kinds: type | tuple[type, ...], default: Any = ..., *, what: str = "") -> Any:
        """The value of a key, of one of these kinds; without a default it has to be there."""
        self._known.add(key)
        if key not in self.values:
            if default is ...:
                raise self.wrong(key, f"is missing{': give ' + what if what else ''}")
            return default
        value = self.values[key]
        allowed = kinds if isinstance(kinds, tuple) else (kinds,)
        if (isinstance(value, bool) and bool not in allowed) or not isinstance(value, allowed):
            raise self.wrong(key, f"is {value!r}: give {what or ' or '.join(kind.__name__ for kind in allowed)}")
        return value

    def table(self, key: str, *, needed: bool = True) -> Table:
        """A table within this one; an empty one where it is not needed and not there."""
        values = self.take(key, dict, ... if needed else {}, what=f"a table, [{self._prefix}{key}]")
        return Table(values, self.path, f"{self._prefix}{key}.")

    def rest(self) -> dict[str, Any]:
        """All keys that were not taken by name."""
        left = {key: value for key, value in self.values.items() if key not in self._known}
        self._known.update(left)
        return left

    def done(self) -> None:
        """Refuse keys that nobody asked for: they are misspelt, or mean nothing."""
        for key in self.values:
            if key not in self._known:
                raise self.wrong(key, f"is not a key here{_near(key, self._known)}")

    def wrong(self, key: str, why: str) -> InputError:
        return InputError(f"{self._prefix}{key} in {self.path} {why}")


def _near(key: str, known: Iterable[str]) -> str:
    near = get_close_matches(key, list(known), 1, 0.6)
    return f": did you mean {near[0]}?" if near else f": there are {', '.join(sorted(known))}"
