"""Paths of the repository, and the Python blocks of its pages."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUPPORT = Path(__file__).parent


def python_blocks(page):
    """Return the text of all Python blocks of a page, given by its path in the repository."""
    return re.findall(
        r"^```python\n(.*?)^```", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE
    )
