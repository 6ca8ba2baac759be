"""The table of the demo in the terminal: every method beside the centralised answer."""

from __future__ import annotations

from rich.console import Console

from peerlearn.cli.demo.run import TOGETHER, Demo, Result
from peerlearn.system.number_words import megabytes
from peerlearn.system.terminal import terminal_table


def show_results(console: Console, done: Demo, name: str) -> None:
    """Show the methods on one data set beside each other, and what they mean in words."""
    rows = sum(agent.rows for agent in done.agents if agent.data == name)
    size = len(done.graph)
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
        f"Alone, agents get {alone} of unseen rows wrong; together, by {TOGETHER} (here "
        f"{results[TOGETHER].solver}), "
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
