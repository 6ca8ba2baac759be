"""Tables as text: in the terminal, as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import re
import textwrap
import unicodedata
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from peerlearn.lab.report.table_entries import Entry, MetricTable

LATEX = {
    **{each: f"\\{each}" for each in "#$%&_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
}
LONG = 14  # letters of a key that stand on one line
NARROW = (
    11  # letters that the name of a column may have on a line, wherever its numbers are shorter
)
MARKDOWN = re.compile(r"([\\`*_\[\]<>|~&])")


def print_table(console: Console, table: MetricTable) -> None:
    """Print a table; columns that do not fit follow below, with the labels of their lines."""
    first = 0
    columns = len(table.names)
    while first < columns or first == 0:
        last = columns
        while last > first + 1 and _width(console, _grid(table, first, last)) > console.width:
            last -= 1
        # As the grid's own title it would be broken in the middle of words, where the grid is
        # narrow.
        console.print(table.title + (" (continued)" if first else ""), markup=False, style="bold")
        console.print(_grid(table, first, last))
        first = max(last, 1)
    for note in (*((f"* {table.marks}",) if table.marks else ()), *table.notes):
        console.print(note, markup=False, style="dim")
    console.print()


def _grid(table: MetricTable, first: int, last: int) -> Table:
    grid = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    grid.show_edge = False
    for head in table.heads:
        grid.add_column(escape(_key(head)), overflow="fold")
    for k, name in enumerate(table.names[first:last], first):
        wide = max((len(plain(line.entries[k])) for line in table.lines), default=0)
        lines = textwrap.wrap(name, max(NARROW, wide), break_long_words=False)
        grid.add_column(escape("\n".join(lines)), justify="right", overflow="fold")
    before: tuple[str, ...] = ()
    for line in table.lines:
        entries = [_mark(entry) for entry in line.entries[first:last]]
        grid.add_row(*map(escape, blank_repeated(line.labels, before)), *entries)
        before = line.labels
    return grid


def _key(head: str) -> str:
    """Return a long key in several lines, broken after its dots."""
    return head.replace(".", ".\n") if len(head) > LONG else head


def _width(console: Console, grid: Table) -> int:
    return console.measure(grid, options=console.options.update(width=10_000)).maximum


def _mark(entry: Entry) -> str:
    text = escape(plain(entry))
    return f"[bold green]{text}*[/]" if entry.best else f"{text} "


def plain(entry: Entry) -> str:
    if not entry.mean:
        return entry.word
    failed = f" ({entry.cell.failed} failed)" if entry.cell.failed else ""
    return (f"{entry.mean} ± {entry.spread}" if entry.spread else entry.mean) + failed


def blank_repeated(labels: tuple[str, ...], before: tuple[str, ...]) -> list[str]:
    """Return labels, empty where they equal those of the line above."""
    same = 0
    while same < len(labels) - 1 and labels[: same + 1] == before[: same + 1]:
        same += 1
    return [""] * same + list(labels[same:])


def as_csv(table: MetricTable) -> str:
    """Return a line per cell with numbers as they were measured: no unit, no rounding."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(
        [
            *table.spec.rows,
            table.spec.columns,
            "metric",
            "mean",
            "spread",
            "runs",
            "failed",
            "status",
        ]
    )
    for line in table.lines:
        for column, entry in zip(table.columns, line.entries, strict=True):
            cell = entry.cell
            numbers = [
                _digits(cell.mean) if cell.runs else "",
                _digits(cell.spread) if cell.runs > 1 else "",
            ]
            key = ["" if value is None else value for value in (*line.place, column)]
            lines.writerow([*key, table.spec.metric, *numbers, cell.runs, cell.failed, cell.status])
    return text.getvalue()


def _digits(number: float) -> str:
    return repr(float(number))


def as_markdown(table: MetricTable) -> str:
    heads = [*table.heads, *table.names]
    rule = ["---"] * len(table.heads) + ["---:"] * len(table.names)
    lines = [f"**{_markdown(table.title)}**", "", _bar(map(_markdown, heads)), _bar(rule)]
    for line in table.lines:
        cells = (f"**{plain(entry)}**" if entry.best else plain(entry) for entry in line.entries)
        lines.append(_bar([*map(_markdown, line.labels), *cells]))
    notes = (*_bold(table), *table.notes, *table.failures)
    return "\n".join([*lines, "", *(f"- {_markdown(note)}" for note in notes)]) + "\n"


def _bold(table: MetricTable) -> tuple[str, ...]:
    return (f"Bold: {table.marks}.",) if table.marks else ()


def _bar(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown(text: str) -> str:
    return MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def as_latex(table: MetricTable) -> str:
    """Return a text for \\input; a table wider than a line is made smaller."""
    heads = [*table.heads, *table.names]
    notes = " ".join(latex(note) for note in (*_bold(table), *table.notes))
    lines = [
        r"% \usepackage{booktabs,graphicx}",
        r"\begin{table}[htbp]",
        r"\centering",
        rf"\caption{{{latex(table.title)}. {notes}}}",
        rf"\label{{tab:{re.sub('[^A-Za-z0-9:-]+', '-', table.spec.name)}}}",
        r"\smallskip",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{'l' * len(table.heads)}{'r' * len(table.names)}}}",
        r"\toprule",
        " & ".join(map(latex, heads)) + r" \\",
        r"\midrule",
    ]
    before: tuple[str, ...] = ()
    for line in table.lines:
        if before and len(line.labels) > 1 and line.labels[0] != before[0]:
            lines.append(r"\addlinespace")
        cells = (
            rf"\textbf{{{_latex_entry(entry)}}}" if entry.best else _latex_entry(entry)
            for entry in line.entries
        )
        lines.append(
            " & ".join([*map(latex, blank_repeated(line.labels, before)), *cells]) + r" \\"
        )
        before = line.labels
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}", r"\end{table}"]) + "\n"


def _latex_entry(entry: Entry) -> str:
    text = re.sub(r"(\d)e(-?\d+)", r"\1$\\cdot10^{\2}$", latex(plain(entry)))
    return re.sub(r"^-(?=.)", "$-$", text)  # a minus, not a hyphen


def latex(text: str) -> str:
    return "".join(
        LATEX.get(letter) or _greek(letter) or letter for letter in " ".join(text.split())
    )


def _greek(letter: str) -> str:
    r"""Return $\beta$ for a Greek letter, which pdflatex does not know; empty for others."""
    _, _, name = unicodedata.name(letter, "").partition("GREEK SMALL LETTER ")
    known = "LAMBDA" if name == "LAMDA" else name
    return f"$\\{known.lower()}$" if known.isalpha() and known != "OMICRON" else ""
