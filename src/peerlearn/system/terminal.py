"""The terminal: lines and tables that are whole in a pipe and in a narrow window, and a bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

PIPED_WIDTH = 80  # columns at least, so that tables in files and pipes are whole


def console_of_terminal() -> Console:
    """Return a console that is wide enough for tables in a pipe or file."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, PIPED_WIDTH)
    return console


def say(console: Console, *lines: str) -> None:
    """Print lines as they are: paths are not broken, and brackets are not markup."""
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def terminal_table(title: str, words: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    """Return an empty table with columns of words and then of numbers."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.show_edge = False
    for heading in (*words, *numbers):
        table.add_column(
            heading, justify="right" if heading in numbers else "left", overflow="fold"
        )
    return table


@contextmanager
def progress_bar(first: str) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar on the terminal while something runs, and nothing in a pipe or file.

    Yields a function that is told what runs now, how many steps are done, and how many there are.
    """
    console = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with bar as progress:
        task = progress.add_task(first, total=None)
        yield lambda doing, done, steps: progress.update(
            task, description=doing, completed=done, total=steps
        )
