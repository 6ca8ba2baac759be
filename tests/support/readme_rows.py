"""The rows about models in README's table: one per file, from the names of its models and the first
paragraph on top.

python -m tests.support.readme_rows        writes them into README.md
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from peerlearn.models.registry import models
from tests.support.pages import ROOT

README = ROOT / "README.md"


def update(page: str) -> str:
    """Return the page with the rows as the code has them; those of new files stand after the last
    of the others.
    """
    rows, place = dict(all_rows()), 0
    lines: list[str] = []
    for line in page.splitlines():
        known = [models()[name].__module__ for name in names_in(line) if name in models()]
        lines += (
            [rows.pop(file) for file in dict.fromkeys(known) if file in rows] if known else [line]
        )
        place = len(lines) if known else place
    lines[place:place] = rows.values()
    return "\n".join(lines) + "\n"


def all_rows() -> Iterator[tuple[str, str]]:
    """Each file with models, and its row."""
    files = dict.fromkeys(kind.__module__ for kind in models().values())
    for file in files:
        kinds = [
            name
            for name in vars(sys.modules[file])
            if name in models() and models()[name].__module__ == file
        ]
        first = " ".join((sys.modules[file].__doc__ or "").split("\n\n")[0].split()).rstrip(".")
        yield (
            file,
            f"| {', '.join(f'`{name}`' for name in kinds)} | {first[0].lower()}{first[1:]} |",
        )


def names_in(line: str) -> list[str]:
    """What the first cell of a table's row names."""
    return re.findall(r"`(\w+)`", line.split("|")[1]) if line.startswith("| `") else []


if __name__ == "__main__":
    README.write_text(update(README.read_text()))
