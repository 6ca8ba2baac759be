"""Finding algorithms by name: any class of a folder with a `name` and the method asked for. A new file is enough."""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from peerlearn.errors import InputError


@cache
def named(package: str, method: str) -> dict[str, type[Any]]:
    """Every class of the package's own files with a `name` and this method, by name."""
    found: dict[str, type[Any]] = {}
    for file in pkgutil.iter_modules(import_module(package).__path__):
        if file.ispkg:
            continue
        for kind in vars(import_module(f"{package}.{file.name}")).values():
            if isinstance(kind, type) and hasattr(kind, method) and hasattr(kind, "name"):
                found[kind.name] = kind
    return found


def by_name(given: Any, known: Mapping[str, type[Any]], what: str, method: str) -> Any:
    """An object with settings as it is; one with none from its name or that of its class."""
    if isinstance(given, type):
        raise InputError(f"{what} is the class {given.__name__}: give an object, {given.__name__}()")
    if not isinstance(given, str):
        if not hasattr(given, method):
            raise InputError(
                f"{what} must be one of {', '.join(sorted(known))}, or an object with a {method} method, "
                f"not {type(given).__name__}"
            )
        return given
    return class_named(given, known, what)()


def class_named(given: str, known: Mapping[str, type[Any]], what: str) -> type[Any]:
    """A class from its `name` or that of the class itself."""
    names = {**{kind.__name__.lower(): kind for kind in known.values()}, **known}
    asked = given.lower().replace("_", "").replace("-", "").replace(" ", "")
    if asked not in names:
        near = difflib.get_close_matches(asked, names, n=1)
        hint = f", did you mean {names[near[0]].name!r}?" if near else ":"
        raise InputError(f"{what} {given!r} is not known{hint} there are {', '.join(sorted(known))}")
    return names[asked]
