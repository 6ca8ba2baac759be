"""Lead links of the pages to pages of the site.

The pages are also read in the repository, so they link to files there: `../examples/09_x.py`. On
the site these are pages of the gallery. Two pages are files that lie beside `docs/`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FILES = {"contributing": "CONTRIBUTING.md", "changelog": "CHANGELOG.md"}
EXAMPLE = re.compile(r"\]\((?:\.\./)*examples/(\d\d_\w+)\.py\)")
FILE = re.compile(r"\]\((?:\.\./)*(CONTRIBUTING|CHANGELOG)\.md\)")


def lead_to_pages(text: str, docname: str) -> str:
    """Return the text of a page with links that fit the site."""
    up = "../" * docname.count("/")
    text = EXAMPLE.sub(rf"]({up}gallery/\1.rst)", text)
    return FILE.sub(lambda found: f"]({up}{found.group(1).lower()}.md)", text)


def change_source(app: Any, docname: str, source: list[str]) -> None:
    """Change the text of a page before it is parsed."""
    if docname in FILES:
        source[0] = (ROOT / FILES[docname]).read_text().replace("](docs/", "](")
        app.env.note_dependency(str(ROOT / FILES[docname]), docname=docname)
    source[0] = lead_to_pages(source[0], docname)


def setup(app: Any) -> None:
    """Have pages changed when they are read."""
    app.connect("source-read", change_source)
