"""What the terminal shows: tables that are whole in a pipe, and in a narrow window."""

from __future__ import annotations

import math

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from peerlearn.data import DataInfo
from peerlearn.data.known_files import KNOWN_FILES
from peerlearn.data.sources import SOURCES
from peerlearn.experiments.demo import TOGETHER, Demo, Result
from peerlearn.experiments.graph_report import GraphReport
from peerlearn.experiments.words import megabytes, short

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


def terminal_table(title: str, words: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    """An empty table with columns of words and then of numbers."""
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


def show_results(console: Console, done: Demo, name: str) -> None:
    rows, size = sum(agent.rows for agent in done.agents if agent.data == name), len(done.graph)
    headings = (
        "Test\nerror",
        "Distance to\ncentralised",
        "Rounds",
        "MB\nsent",
        "Seconds",
        "Converged",
    )
    table = terminal_table(f"{name}: {rows:,} rows dealt to {size} agents", ("Method",), headings)
    results = {result.method: result for result in done.results if result.data == name}
    for result in results.values():
        table.add_row(*_cells(result), style="bold green" if result.method == TOGETHER else None)
    console.print(table)
    alone, together, aim = (
        _percent(results[method]) for method in ("alone", TOGETHER, "centralised")
    )
    row_bytes = sum(agent.row_bytes for agent in done.agents if agent.data == name)
    console.print(
        f"Sending all rows to one place would take {megabytes(row_bytes / 1e6)} MB.\n\n"
        f"Alone, agents get {alone} of unseen rows wrong; together, by {TOGETHER} (here {results[TOGETHER].solver}), "
        f"all {size} get {together}, as if all rows were in one place ({aim}).\n"
    )


def _percent(result: Result) -> str:
    return f"{100 * result.test_error:.1f} %"


def _cells(result: Result) -> tuple[str, ...]:
    talks = result.rounds > 0
    return (
        result.method,
        _percent(result),
        f"{result.distance:.2g}" if talks else "-",
        f"{result.rounds:,}" if talks else "-",
        megabytes(result.bytes_sent / 1e6) if talks else "-",
        f"{result.seconds:.2f}",
        "yes" if result.converged else "[bold red]NO[/]",
    )


def show_graph(console: Console, report: GraphReport) -> None:
    least, mean, most = report.degrees
    tree = f"{report.tree_rounds} rounds and {megabytes(report.tree_megabytes)} MB for an exact average"
    say(
        console,
        f"{len(report.graph):,} agents, {report.links:,} links",
        f"Neighbors  {least} to {most} per agent, {mean:.3g} on average",
        f"Diameter   {report.diameter} rounds until everybody has heard of something",
        f"One round  {2 * report.links:,} messages of {report.payload:,} numbers: {report.bytes_per_round:,} bytes",
        f"A tree     height {report.height}: {tree}\n",
    )
    numbers = ("Contraction", "Rounds\nplain", "Rounds\nChebyshev", "MB\nplain", "MB\nChebyshev")
    table = terminal_table(
        f"One average to {short(report.accuracy)} without a tree", ("Weights",), numbers
    )
    for each in report.weightings:
        rounds = (f"{each.plain_rounds:,}", f"{each.chebyshev_rounds:,}")
        sent = (megabytes(each.plain_megabytes), megabytes(each.chebyshev_megabytes))
        style = "bold green" if each.weights == report.weights else None
        table.add_row(each.weights, _contraction(each.contraction), *rounds, *sent, style=style)
    for name in report.skipped:
        table.add_row(name, *"-----")
    console.print(table)
    say(console, *(f"\nNo {name} weights: {why}" for name, why in report.skipped.items()))
    console.print(
        "\nPlain averaging survives lost messages; Chebyshev's needs all of them, and so does a tree, which is exact.\n"
    )


def _contraction(number: float) -> str:
    """With as many digits as tell it from 1."""
    return f"{number:.{max(4, 2 - math.floor(math.log10(1 - number)))}f}"


def show_data(console: Console, sets: list[DataInfo]) -> None:
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
    """The thesis's data sets that are files, and where they come from."""
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
