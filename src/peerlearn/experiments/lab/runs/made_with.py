"""Rows that other versions made: a run is kept by what the file says, and another version may compute it otherwise."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from peerlearn.experiments.lab.rows import versions

COUNT = ("peerlearn", "numpy", "scipy", "scikit-learn")  # whose versions may change numbers


def of_other_versions(rows: Iterable[Mapping[str, Any]], folder: Path) -> list[str]:
    """A sentence for each set of versions that is not the one here, and how to have these rows made again."""
    here, found = json.loads(versions()), Counter[str]()
    for text, number in Counter(str(row["versions"]) for row in rows).items():
        made = json.loads(text)
        other = [
            f"{name} {made[name]}" for name in COUNT if made.get(name, here[name]) != here[name]
        ]
        if other:
            found[", ".join(other)] += number
    return [
        f"{number:,} {'row was' if number == 1 else 'rows were'} made with {other}: delete {folder / 'runs'}/ to run "
        f"{'it' if number == 1 else 'them'} again"
        for other, number in found.items()
    ]
