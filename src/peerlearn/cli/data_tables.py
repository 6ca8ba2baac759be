"""Tables of data sets in the terminal: those that can be loaded, and where files come from."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from peerlearn.data import DataInfo
from peerlearn.data.known_files import KNOWN_FILES
from peerlearn.data.sources import SOURCES
from peerlearn.system.terminal import terminal_table

WIDE = 130  # columns that leave room for a description


def show_data(console: Console, sets: list[DataInfo]) -> None:
    """Show the data sets that can be loaded, with their sizes."""
    wide = console.width >= WIDE
    table = terminal_table(
        "Data sets",
        ("Name", "Task", "Source", *(("What it is",) if wide else ())),
        ("Rows", "Columns"),
    )
    for each in sets:
        words = (each.name, each.task or "-", each.source, *((each.description,) if wide else ()))
        sizes = ("-" if size is None else f"{size:,}" for size in (each.rows, each.columns))
        table.add_row(*map(escape, words), *sizes)
    console.print(table)


def show_origins(console: Console, at_hand: set[str]) -> None:
    """Show the thesis's data sets that are files, and where they come from."""
    table = terminal_table("\nThe thesis's files", ("Name", "Here", "Where from"), ())
    for known in KNOWN_FILES.values():
        ways = [f"peerlearn data fetch {known.name}"] if known.name in SOURCES else []
        ways += [f"{known.generated_as} is generated in its place"] if known.generated_as else []
        table.add_row(
            known.name,
            "yes" if known.name in at_hand else "-",
            escape("; ".join([*ways, f"offered {known.offered}"])),
        )
    console.print(table)
