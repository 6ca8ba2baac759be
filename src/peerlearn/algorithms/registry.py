"""Algorithms found by name.

A family has all classes of a folder that have a `name` and the method asked for. A new file is
enough to add one.
"""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Generic, TypeVar

from peerlearn.errors import InputError

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Family(Generic[Kind]):
    """Algorithms that can take each other's place as one parameter of a model.

    package: the folder, or the one file, that they are in. method: what all of them have. what: the
    name of the parameter, for error messages. in_one_place: the name of the algorithm that is
    always used if all data are in one place; empty if any can be used.
    """

    package: str
    method: str
    what: str
    in_one_place: str = ""

    def kinds(self) -> dict[str, type[Kind]]:
        """Return every class of the family by its name."""
        return find_classes(self.package, self.method)

    def of(self, given: Kind | str) -> Kind:
        """Return an algorithm, created from its name or that of its class if only that is given."""
        chosen: Kind = resolve(given, self.kinds(), self.what, self.method)
        return chosen

    def check(self, given: Kind | str) -> None:
        """Refuse what is no algorithm of the family, and no name of one."""
        if isinstance(given, str):
            self.kind_of(given)
        else:
            self.of(given)

    def kind_of(self, name: str) -> type[Kind]:
        """Return a class by its `name` or by that of the class itself."""
        return find_class(name, self.kinds(), self.what)


@cache
def find_classes(package: str, method: str) -> dict[str, type[Any]]:
    """Return every class of the package's own files with a `name` and this method, by name."""
    found: dict[str, type[Any]] = {}
    for file in own_files(package):
        for kind in vars(import_module(file)).values():
            if isinstance(kind, type) and hasattr(kind, method) and hasattr(kind, "name"):
                found[kind.name] = kind
    return found


def own_files(package: str) -> list[str]:
    """Return the import paths of a package's own files, without those of its subpackages.

    The only file of a module is the module itself.
    """
    folder = getattr(import_module(package), "__path__", None)
    if folder is None:
        return [package]
    return [f"{package}.{file.name}" for file in pkgutil.iter_modules(folder) if not file.ispkg]


def resolve(given: Any, known: Mapping[str, type[Any]], what: str, method: str) -> Any:
    """Return an object as it is, or one with default settings from its name or class name."""
    if isinstance(given, type):
        raise InputError(
            f"{what} is the class {given.__name__}: give an object, {given.__name__}()"
        )
    if not isinstance(given, str):
        if not hasattr(given, method):
            raise InputError(
                f"{what} must be one of {', '.join(sorted(known))}, "
                f"or an object with a {method} method, not {type(given).__name__}"
            )
        return given
    return find_class(given, known, what)()


def find_class(given: str, known: Mapping[str, type[Any]], what: str) -> type[Any]:
    """Return a class by its `name` or by that of the class itself."""
    names = {kind.__name__.lower(): kind for kind in known.values()}
    names.update(known)
    asked = given.lower().replace("_", "").replace("-", "").replace(" ", "")
    if asked not in names:
        near = difflib.get_close_matches(asked, names, n=1)
        hint = f", did you mean {names[near[0]].name!r}?" if near else ":"
        raise InputError(
            f"{what} {given!r} is not known{hint} there are {', '.join(sorted(known))}"
        )
    return names[asked]
