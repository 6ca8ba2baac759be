"""Public names of packages, found in their files and imported when they are first used (PEP 562).

A module that lists names in `__all__` makes them public: they can be imported from `peerlearn` and
from `peerlearn.algorithms` or `peerlearn.models`, whichever the module belongs to. A new solver or
model needs no change of any other file. Files are only read to find their names. A module is
imported when one of its names is asked for.

Type checkers and editors do not run this code. They read the `__init__.pyi` files, which
`python -m tests.support.stubs` writes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from peerlearn.errors import MissingExtra

HOME = Path(__file__).parent
PACKAGES = (
    "algorithms",
    "local",
    "models",
    "network",
    "preparing",
)  # their modules may have public names
MODULES = ("data", "graphs", "partition", "privacy", "weights")  # are public themselves
LISTED = re.compile(r"^__all__ = \[(.*?)\]", re.DOTALL | re.MULTILINE)


def listed_names(package: str) -> Iterator[tuple[str, str]]:
    """Yield every public name below a package and the module that lists it."""
    inside = package.split(".")[1:]
    folders = [HOME.joinpath(*inside)] if inside else [HOME / each for each in PACKAGES]
    for file in sorted(file for folder in folders for file in folder.rglob("*.py")):
        if file.name == "__init__.py":
            continue
        found = LISTED.search(file.read_text(encoding="utf-8"))
        if found is not None:
            module = ".".join(("peerlearn", *file.relative_to(HOME).with_suffix("").parts))
            for name in re.findall(r'"(\w+)"', found[1]):
                yield name, module


@cache
def modules_by_name(package: str) -> dict[str, str]:
    """Return, for every public name below a package, the module that lists it."""
    return dict(listed_names(package))


def import_name(package: str, name: str) -> Any:
    """Return the object of a public name and keep it in the package."""
    if name == "__all__":
        return public_names(package)
    if name.startswith("_"):
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    if _is_module(package, name):
        return import_module(f"{package}.{name}")
    if name not in modules_by_name(package):
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    try:
        found = getattr(import_module(modules_by_name(package)[name]), name)
    except MissingExtra as error:
        return _stand_in(name, error)
    setattr(sys.modules[package], name, found)
    return found


def public_names(package: str) -> list[str]:
    """Return everything that `from package import *` imports."""
    modules = MODULES if package == "peerlearn" else ()
    return sorted([*modules_by_name(package), *modules])


def list_names(package: str) -> list[str]:
    """Return what dir(package) lists: the public names, and modules that are imported already."""
    names = {*public_names(package), "__all__"}
    if package == "peerlearn":
        names.update(PACKAGES)
    for name, value in vars(sys.modules[package]).items():
        if name.startswith("__") or isinstance(value, ModuleType):
            names.add(name)
    return sorted(names)


def lazy(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are imported when first used."""
    return partial(import_name, package), partial(list_names, package)


def _is_module(package: str, name: str) -> bool:
    """Check whether a package has a module or a package of this name."""
    place = HOME.joinpath(*package.split(".")[1:], name)
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def _stand_in(name: str, error: MissingExtra) -> type:
    """Return a class that raises the error when it is used.

    So help(peerlearn) works without the packages of an extra.
    """

    def refuse(*_: Any, **__: Any) -> None:
        raise error

    return type(name, (), {"__init__": refuse, "__doc__": str(error)})
