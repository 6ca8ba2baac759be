"""Make docstrings readable for numpydoc.

Sections may list a name as `name: text`; numpydoc wants the text on a line of its own. Docstrings
are plain text with formulas, in which `|x|` and `x_` mean what they say; reStructuredText would
read them as markup.
"""

from __future__ import annotations

import re
from typing import Any

SECTIONS = {"Parameters", "Attributes", "Returns", "Raises"}
ITEM = re.compile(r"^(\w(?:[\w, *]*\w)?): +(\S.*)$")  # `name : type` is left to numpydoc
CODE = re.compile(r"(`[^`]*`+|``[^`]+``)")
MARKUP = re.compile(r"(\||(?<=\w)_(?!\w))")


def put_names_on_lines(lines: list[str]) -> list[str]:
    """Return the lines with every `name: text` of a section split in two."""
    result: list[str] = []
    in_section = False
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if set(following.strip()) == {"-"}:
            in_section = line.strip() in SECTIONS
        item = ITEM.match(line) if in_section else None
        if item:
            result += [item.group(1), f"    {item.group(2)}"]
        else:
            result.append(line)
    return result


def head_examples(lines: list[str]) -> list[str]:
    """Return the lines with a heading above an example that follows a section without one."""
    for number, line in enumerate(lines):
        if line.startswith(">>>"):
            above = [each.strip() for each in lines[:number]]
            if SECTIONS.isdisjoint(above) or "Examples" in above:
                return lines
            return [*lines[:number], "Examples", "--------", *lines[number:]]
    return lines


def escape_markup(lines: list[str]) -> list[str]:
    """Return the lines with `|` and a final `_` escaped, except in examples and literal blocks."""
    result: list[str] = []
    in_example = False
    literal_indent: int | None = None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        in_example = bool(line.strip()) and (in_example or line.lstrip().startswith(">>>"))
        if literal_indent is not None and line.strip() and indent <= literal_indent:
            literal_indent = None
        if in_example or literal_indent is not None:
            result.append(line)
            continue
        if line.rstrip().endswith("::"):
            literal_indent = indent
        parts = CODE.split(line)
        parts[::2] = [MARKUP.sub(r"\\\1", text) for text in parts[::2]]
        result.append("".join(parts))
    return result


def prepare(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Rewrite a docstring in place."""
    lines[:] = escape_markup(head_examples(put_names_on_lines(lines)))


def setup(app: Any) -> None:
    """Have docstrings prepared before numpydoc reads them."""
    app.connect("autodoc-process-docstring", prepare, priority=100)
