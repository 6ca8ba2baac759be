"""The command peerlearn. Commands import what they need when they run, so that --help answers at once."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from peerlearn.errors import InputError, NotConverged, PeerlearnError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from peerlearn.data import DataInfo
    from peerlearn.experiments.demo import Demo, Result

STOPPED = 130  # what shells expect of a program ended by Ctrl-C
PIPED_WIDTH = 80  # columns at least, so that tables in files and pipes are whole
WIDE = 130  # columns that leave room for a description


class Doors(click.Group):
    """A group whose commands end in one sentence, not in a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PeerlearnError as error:
            click.echo(f"peerlearn: {error}", err=True)
            ctx.exit(2 if isinstance(error, InputError) else 1)
        except KeyboardInterrupt:
            click.echo("peerlearn: stopped by Ctrl-C; files already written are whole", err=True)
            ctx.exit(STOPPED)


@click.group(cls=Doors, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="peerlearn")
def main() -> None:
    """Agents that hold their own data learn one model by talking to their neighbors in a graph.

    There is no server, and no row ever leaves its agent.

    \b
    Start here:
      peerlearn demo          twenty agents learn two data sets, in well under a minute
      peerlearn data          the data sets there are, and where your own are read from
      peerlearn demo --help   what the demo can be asked
    """


@main.command()
@click.option("--agents", default=20, show_default=True, metavar="N", help="How many agents share the data: 4 to 100.")
@click.option("--seed", default=0, show_default=True, metavar="N", help="Another seed: another graph and other shares.")
@click.option("--output", default="peerlearn-demo", show_default=True, metavar="DIR", help="Folder for the results.")
def demo(agents: int, seed: int, output: str) -> None:
    """Watch agents learn, alone and together.

    The rows of two data sets are dealt to agents on a random graph. Each method is then compared with the centralised
    answer, for which all rows would have to be in one place: what is its error on unseen rows, how far are its
    coefficients from the centralised ones, and what did the agents send each other for it?

    \b
    Examples:
      peerlearn demo
      peerlearn demo --agents 50 --seed 1 --output fifty

    \b
    Files in the folder:
      results.csv             the table
      agents.csv              each agent's error, alone and together
      rounds.csv              how the agents come to agree, round by round
      graph.graphml           who is whose neighbor
      settings.json           seed, settings and versions, to get the same again
      demo.png, demo.svg      the figure, drawn from these files alone
    """
    from peerlearn.experiments.demo import run_demo

    with warnings.catch_warnings(), _progress() as watch:
        warnings.simplefilter("ignore", NotConverged)  # the table says so
        done = run_demo(output, agents=agents, seed=seed, watch=watch)
    console = _console()
    for name in dict.fromkeys(result.data for result in done.results):
        _show_results(console, done, name)
    console.print("No row has left its agent. Alone, agents only told each other which class labels there are.\n")
    _say(
        console,
        f"Folder   {output}",
        "Figure   demo.png, demo.svg",
        "Numbers  results.csv, agents.csv, rounds.csv, graph.graphml, settings.json",
        "Next     in Python, RVFLClassifier(network=SimulatedNetwork(graph)).fit(X, y)",
    )


@main.command()
@click.option("--folder", metavar="DIR", help="Also list the files of this folder.")
def data(folder: str | None) -> None:
    """List the data sets that can be loaded by name.

    Some are generated, some come with scikit-learn. Your own are files NAME.npz with arrays X (one row per example) and
    y (one entry per row), in a folder that you name with --folder or in the environment variable PEERLEARN_DATA.

    \b
    Examples:
      peerlearn data
      peerlearn data --folder ~/sets
      PEERLEARN_DATA=~/sets peerlearn data

    \b
    In Python:
      from peerlearn import data
      digits = data.load("digits")
      mine = data.load("mine", folder="~/sets")     # reads ~/sets/mine.npz
    """
    from peerlearn.data import available

    sets, console = available(folder), _console()
    _show_data(console, sets)
    place = folder or os.environ.get("PEERLEARN_DATA")
    _say(
        console,
        *(f"{each.name} {each.description}" for each in sets if each.task is None),
        '\nLoad one  peerlearn.data.load("digits")',
        f"Your own  NAME.npz (arrays X, y) in {place or '--folder DIR or PEERLEARN_DATA (not set)'}",
    )


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, PIPED_WIDTH)
    return console


def _say(console: Console, *lines: str) -> None:
    """As it stands: a path is not broken in two, and brackets in it are not markup."""
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on the terminal while something runs; nothing in a pipe or file."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("dealing the rows", total=None)
        yield lambda doing, done, steps: progress.update(task, description=doing, completed=done, total=steps)


def _table(title: str, words: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.show_edge = False
    for heading in (*words, *numbers):
        table.add_column(heading, justify="right" if heading in numbers else "left", overflow="fold")
    return table


def _show_results(console: Console, done: Demo, name: str) -> None:
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


def _show_data(console: Console, sets: list[DataInfo]) -> None:
    from rich.markup import escape

    wide = console.width >= WIDE
    table = _table("Data sets", ("Name", "Task", "Source", *(("What it is",) if wide else ())), ("Rows", "Columns"))
    for each in sets:
        words = (each.name, each.task or "-", each.source, *((each.description,) if wide else ()))
        sizes = ("-" if size is None else f"{size:,}" for size in (each.rows, each.columns))
        table.add_row(*map(escape, words), *sizes)
    console.print(table)
