"""Rows that other versions made.

A run is found again by what its file says. Another version of a package may compute it otherwise,
so every row has the versions that made it.
"""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

# Packages whose versions may change numbers, and the modules that have them.
PACKAGES = {
    "peerlearn": "peerlearn",
    "numpy": "numpy",
    "scipy": "scipy",
    "scikit-learn": "sklearn",
}


@cache
def versions() -> str:
    """Return as JSON what numbers are made with here."""
    found = {name: import_module(module).__version__ for name, module in PACKAGES.items()}
    return json.dumps(
        {"python": platform.python_version(), **found, "platform": platform.platform()}
    )


def of_other_versions(rows: Iterable[Mapping[str, Any]], folder: Path) -> list[str]:
    """Return a sentence for each set of other versions, with the way to make its rows again."""
    here = json.loads(versions())
    found = Counter[str]()
    for text, number in Counter(str(row["versions"]) for row in rows).items():
        made = json.loads(text)
        other = [
            f"{name} {made[name]}" for name in PACKAGES if made.get(name, here[name]) != here[name]
        ]
        if other:
            found[", ".join(other)] += number
    return [_sentence(number, other, folder) for other, number in found.items()]


def _sentence(number: int, other: str, folder: Path) -> str:
    rows, them = ("row was", "it") if number == 1 else ("rows were", "them")
    return f"{number:,} {rows} made with {other}: delete {folder / 'runs'}/ to run {them} again"
