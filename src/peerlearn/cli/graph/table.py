"""The table of a graph in the terminal: how fast each weighting mixes, and what it sends."""

from __future__ import annotations

import math

from rich.console import Console

from peerlearn.cli.graph.report import GraphReport
from peerlearn.system.number_words import megabytes, short
from peerlearn.system.terminal import say, terminal_table


def show_graph(console: Console, report: GraphReport) -> None:
    """Show a graph's sizes, and the speed and cost of an average by weighting."""
    least, mean, most = report.degrees
    tree_sent = megabytes(report.tree_megabytes)
    tree = f"{report.tree_rounds} rounds and {tree_sent} MB for an exact average"
    say(
        console,
        f"{len(report.graph):,} agents, {report.links:,} links",
        f"Neighbors  {least} to {most} per agent, {mean:.3g} on average",
        f"Diameter   {report.diameter} rounds until everybody has heard of something",
        f"One round  {2 * report.links:,} messages of {report.payload:,} numbers: "
        f"{report.bytes_per_round:,} bytes",
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
        "\nPlain averaging survives lost messages; Chebyshev's needs all of them, and so does a "
        "tree, which is exact.\n"
    )


def _contraction(number: float) -> str:
    """Return the contraction with as many digits as tell it from 1."""
    return f"{number:.{max(4, 2 - math.floor(math.log10(1 - number)))}f}"
