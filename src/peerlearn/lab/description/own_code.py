"""Code of the user that a run follows from: under the same name it may change.

What is installed is told by its name, for every row has its version.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

KEY = "own"  # under which the digest stands among settings
INSTALLED = {"site-packages", "dist-packages"}
WITH_PYTHON = tuple(Path(sysconfig.get_path(each)).resolve() for each in ("stdlib", "platstdlib"))
OURS = Path(__file__).resolve().parents[2]  # the package peerlearn
known = dict[
    str, str
]()  # by module, for the life of a process, as its classes are; sent to other processes with runs


def own_code(module: str) -> dict[str, str]:
    """Return a digest of a module and of the user's modules that it uses.

    An installed module has none.
    """
    if module not in known and module in sys.modules:
        files = dict[str, str]()
        _read(sys.modules[module], files)
        known[module] = (
            hashlib.sha256("".join(sorted(files.values())).encode()).hexdigest() if files else ""
        )
    return {KEY: known[module]} if known.get(module) else {}


def _read(module: ModuleType, found: dict[str, str]) -> None:
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or file in found or not _is_own(Path(file).resolve()):
        return
    try:
        content = Path(file).read_bytes()
        used = list(_imports_of(module, content.decode()))
    except OSError:  # within an archive, or no longer there
        return
    except (SyntaxError, ValueError):  # compiled, or changed since it was imported
        used = []
    found[file] = hashlib.sha256(content).hexdigest()
    for name in used:
        if name in sys.modules:
            _read(sys.modules[name], found)


def _is_own(file: Path) -> bool:
    return not INSTALLED & set(file.parts) and not any(
        map(file.is_relative_to, (*WITH_PYTHON, OURS))
    )


def _imports_of(module: ModuleType, source: str) -> Iterator[str]:
    """Yield the modules that a text imports, and those it may import from packages."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (part for each in node.names for part in _with_packages(each.name))
        elif isinstance(node, ast.ImportFrom):
            package = (module.__package__ or "").split(".")
            above = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            yield from (*_with_packages(origin), *(f"{origin}.{each.name}" for each in node.names))


def _with_packages(name: str) -> list[str]:
    """Return a, a.b and a.b.c: importing the last runs all of them."""
    parts = name.split(".")
    return [".".join(parts[: k + 1]) for k in range(len(parts))]
