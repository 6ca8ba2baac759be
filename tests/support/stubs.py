"""What type checkers and editors read of packages whose names are imported when first used.

python -m tests.support.stubs        writes the `__init__.pyi` files
"""

from __future__ import annotations

import sys
from pathlib import Path

from peerlearn.public_names import HOME, MODULES, modules_by_name

PACKAGES = ("peerlearn", "peerlearn.algorithms", "peerlearn.models")
LONGEST_LINE = 100


def stub(package: str) -> str:
    """Return the text of a package's `__init__.pyi`."""
    found = modules_by_name(package).items()
    imports = sorted(f"from {module} import {name} as {name}" for name, module in found)
    lines = ["# Written by python -m tests.support.stubs.", *map(_wrap, imports)]
    if package == "peerlearn":
        lines[1:1] = [f"from peerlearn import {module} as {module}" for module in MODULES]
        lines += ["", "__version__: str"]
    return "\n".join([*lines, ""])


def _wrap(line: str) -> str:
    """Return an import as ruff formats it."""
    if len(line) <= LONGEST_LINE:
        return line
    start, imported = line.split(" import ")
    return f"{start} import (\n    {imported},\n)"


def place(package: str) -> Path:
    """Return the path of a package's `__init__.pyi`."""
    return HOME.joinpath(*package.split(".")[1:], "__init__.pyi")


if __name__ == "__main__":
    for package in PACKAGES:
        place(package).write_text(stub(package))
        print(place(package), file=sys.stderr)
