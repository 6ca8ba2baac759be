"""Rows that other versions or other code made.

A run is found again by what its file says. Another version of a package may compute it otherwise,
and so may a changed file of peerlearn. Every row has the versions that made it, a digest of
peerlearn's code, and the machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy

# Packages whose versions may change numbers, and the modules that have them.
PACKAGES = {
    "peerlearn": "peerlearn",
    "numpy": "numpy",
    "scipy": "scipy",
    "scikit-learn": "sklearn",
}


# What cannot change a run's numbers: doors, checks, and what is made of rows afterwards.
APART = ("cli", "privacy", "sites", "system", "testing")
LAB_APART = ("analysis", "checking", "figures", "file", "report", "results", "runs", "thesis")
CODE = "code"
MACHINE = ("platform", "processor", "cores", "blas")


@cache
def versions() -> str:
    """Return as JSON what numbers are made with here."""
    found = {name: import_module(module).__version__ for name, module in PACKAGES.items()}
    machine = (platform.platform(), _processor(), str(os.cpu_count()), _blas())
    return json.dumps(
        {
            "python": platform.python_version(),
            **found,
            CODE: code_digest(Path(__file__).parents[2]),
            **dict(zip(MACHINE, machine, strict=True)),
        }
    )


def code_digest(package: Path) -> str:
    """Return a digest of peerlearn's files that runs may use."""
    whole = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        place = file.relative_to(package).parts
        if place[0] in APART or (place[0] == "lab" and place[1] in LAB_APART):
            continue
        whole.update("/".join(place).encode() + b"\0" + file.read_bytes() + b"\0")
    return whole.hexdigest()[:12]


def _processor() -> str:
    """Return the name of the processor. On Linux, platform.processor() may be empty."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _blas() -> str:
    """Return the library of linear algebra that numpy and scipy were built with.

    Which libraries are loaded would depend on what this process did before.
    """
    found = set()
    for module in (np, scipy):
        built = module.show_config(mode="dicts")["Build Dependencies"]["blas"]
        found.add(f"{built.get('name')} {built.get('version')}")
    return ", ".join(sorted(found))


def of_other_versions(rows: Iterable[Mapping[str, Any]], folder: Path) -> list[str]:
    """Return a sentence for each set of other versions, with the way to make its rows again."""
    here = json.loads(versions())
    found = Counter[str]()
    for text, number in Counter(str(row["versions"]) for row in rows).items():
        made = json.loads(text)
        other = [
            f"{name} {made[name]}" for name in PACKAGES if made.get(name, here[name]) != here[name]
        ]
        if not other and made.get(CODE, here[CODE]) != here[CODE]:
            other = [f"other code of peerlearn {made['peerlearn']}"]
        if other:
            found[", ".join(other)] += number
    return [_sentence(number, other, folder) for other, number in found.items()]


def _sentence(number: int, other: str, folder: Path) -> str:
    rows, them = ("row was", "it") if number == 1 else ("rows were", "them")
    return f"{number:,} {rows} made with {other}: delete {folder / 'runs'}/ to run {them} again"
