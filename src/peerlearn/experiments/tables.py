"""What the terminal shows: tables that are whole in a pipe, and in a narrow window."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from peerlearn.data import DataInfo
from peerlearn.experiments.demo import Demo, Result

PIPED_WIDTH = 80  # columns at least, so that tables in files and pipes are whole
WIDE = 130  # columns that leave room for a description


def console_of_terminal() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, PIPED_WIDTH)
    return console


def say(console: Console, *lines: str) -> None:
    """As it stands: a path is not broken in two, and brackets in it are not markup."""
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _table(title: str, words: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.show_edge = False
    for heading in (*words, *numbers):
        table.add_column(heading, justify="right" if heading in numbers else "left", overflow="fold")
    return table


def show_results(console: Console, done: Demo, name: str) -> None:
    rows, size = sum(agent.rows for agent in done.agents if agent.data == name), len(done.graph)
    headings = ("Test\nerror", "Distance to\ncentralised", "Rounds", "MB\nsent", "Seconds", "Converged")
    table = _table(f"{name}: {rows:,} rows dealt to {size} agents", ("Method",), headings)
    results = {result.method: result for result in done.results if result.data == name}
    for result in results.values():
        table.add_row(*_cells(result), style="bold green" if result.method == "conjugate gradient" else None)
    console.print(table)
    alone, together, aim = (_percent(results[method]) for method in ("alone", "conjugate gradient", "centralised"))
    console.print(
        f"\nAlone, agents get {alone} of unseen rows wrong; together, by conjugate gradient, all {size} get "
        f"{together}, as if all rows were in one place ({aim}).\n"
    )


def _percent(result: Result) -> str:
    return f"{100 * result.test_error:.1f} %"


def _cells(result: Result) -> tuple[str, ...]:
    megabytes, talks = result.bytes_sent / 1e6, result.rounds > 0
    return (
        result.method,
        _percent(result),
        f"{result.distance:.2g}" if talks else "-",
        f"{result.rounds:,}" if talks else "-",
        (f"{megabytes:,.0f}" if megabytes >= 10 else f"{megabytes:.2g}") if talks else "-",
        f"{result.seconds:.2f}",
        "yes" if result.converged else "[bold red]NO[/]",
    )


def show_data(console: Console, sets: list[DataInfo]) -> None:
    wide = console.width >= WIDE
    table = _table("Data sets", ("Name", "Task", "Source", *(("What it is",) if wide else ())), ("Rows", "Columns"))
    for each in sets:
        words = (each.name, each.task or "-", each.source, *((each.description,) if wide else ()))
        sizes = ("-" if size is None else f"{size:,}" for size in (each.rows, each.columns))
        table.add_row(*map(escape, words), *sizes)
    console.print(table)
