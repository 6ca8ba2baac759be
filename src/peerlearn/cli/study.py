"""Commands for studies on one machine: demo, graph, predict."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from peerlearn import errors
from peerlearn.cli.paths import PATH


@click.command()
@click.option(
    "--agents",
    default=20,
    show_default=True,
    metavar="N",
    help="How many agents share the data: 4 to 100.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    metavar="N",
    help="Another seed: another graph and other shares.",
)
@click.option(
    "--output",
    type=PATH,
    default="peerlearn-demo",
    show_default=True,
    metavar="DIR",
    help="Folder for the results.",
)
@click.option(
    "--engine",
    default="simulation",
    show_default=True,
    metavar="NAME",
    help="simulation, or mpi under mpiexec.",
)
def demo(agents: int, seed: int, output: Path, engine: str) -> None:
    """Watch agents learn, alone and together.

    The rows of two data sets are dealt to agents on a random graph. Each method is then compared
    with the centralised answer, for which all rows would have to be in one place: what is its error
    on unseen rows, how far are its coefficients from the centralised ones, and what did the agents
    send each other for it?

    \b
    Examples:
      peerlearn demo
      peerlearn demo --agents 50 --seed 1 --output fifty
      mpiexec -n 4 peerlearn demo --engine mpi

    \b
    Files in the folder:
      results.csv             the table
      agents.csv              each agent's rows and error, alone and together
      rounds.csv              how the agents come to agree, round by round
      graph.graphml           who is whose neighbor
      settings.json           seed, settings and versions, to get the same again
      demo.png, .svg          each agent before and after
      costs.png, .svg         what each method sends for its error
      rounds.png, .svg        how fast agents agree
    Figures are drawn from the other files alone.
    """
    from peerlearn.experiments.demo import run_demo
    from peerlearn.experiments.tables import console_of_terminal, say, show_results

    with warnings.catch_warnings(), _progress("dealing the rows") as watch:
        warnings.simplefilter("ignore", errors.NotConverged)  # the table says so
        done = run_demo(output, agents=agents, seed=seed, engine=engine, watch=watch)
    if not done.results:
        return  # another rank shows them
    console = console_of_terminal()
    for name in dict.fromkeys(result.data for result in done.results):
        show_results(console, done, name)
    console.print(
        "Agents sent sums, factors and coefficients, not rows. Rows can be computed from some of these: this is "
        "locality, not secrecy. Alone, agents only compared settings and class labels. Sums went over a tree; ADMM was "
        "asked to come within 1e-3 of the centralised coefficients, auto and conjugate gradient within 1e-6.\n"
    )
    say(
        console,
        f"Folder   {output}",
        "Figures  demo.png, costs.png, rounds.png, and the same as .svg",
        "Numbers  results.csv, agents.csv, rounds.csv, graph.graphml, settings.json",
        "Next     in Python, RVFLClassifier(network=SimulatedNetwork(graph)).fit(X, y)",
    )


@click.command()
@click.argument("kind", metavar="[KIND|FILE]", required=False)
@click.option("--agents", "n", type=int, metavar="N", help="How many, 2 to 1000.  [default: 20]")
@click.option("--p", type=float, metavar="P", help="Probability of each link (erdos_renyi).")
@click.option("--k", type=int, metavar="N", help="Neighbors to each side (line, small_world).")
@click.option(
    "--rewire",
    type=float,
    metavar="P",
    help="Probability that a link leads elsewhere (small_world).",
)
@click.option("--m", type=int, metavar="N", help="Links that each new agent brings (scale_free).")
@click.option(
    "--radius", type=float, metavar="R", help="How far links reach in the unit square (geometric)."
)
@click.option("--rows", type=int, metavar="N", help="Of agents (grid).")
@click.option("--columns", type=int, metavar="N", help="Of agents (grid).")
@click.option(
    "--seed", type=int, metavar="N", help="Another seed: another random graph.  [default: 0]"
)
@click.option(
    "--weights", default="metropolis", show_default=True, metavar="NAME", help="Those to draw."
)
@click.option(
    "--payload",
    default=500,
    show_default=True,
    metavar="N",
    help="Numbers in a message: coefficients.",
)
@click.option(
    "--accuracy",
    default=1e-6,
    show_default="1e-6",
    metavar="E",
    help="How closely agents have to agree.",
)
@click.option(
    "--output",
    type=PATH,
    default="peerlearn-graph",
    show_default=True,
    metavar="DIR",
    help="Folder for the results.",
)
def graph(
    kind: str | None,
    weights: str,
    payload: int,
    accuracy: float,
    output: Path,
    **parameters: int | float | None,
) -> None:
    """See how fast agents on a graph come to agree, and what that sends.

    Agents average by mixing what they have with what their neighbors have, round after round. How
    many rounds that takes depends on the graph and on the weights that neighbors give each other:
    max-degree, metropolis, laplacian or fastest. All four are compared, by plain rounds and by
    Chebyshev's quicker ones, and with a sum over a tree. Rounds are those that suffice whatever the
    agents start from; megabytes are of all agents together.

    Without a KIND: erdos_renyi --p 0.2, which is the graph of the demo. Fastest weights need the
    package cvxpy; for
    more than 50 agents, which takes long, they have to be asked for with --weights fastest.

    \b
    Kinds and their options:
      erdos_renyi  --agents --p --seed            each link with probability p
      small_world  --agents --k --rewire --seed   a ring with some far links
      scale_free   --agents --m --seed            a few hubs with many neighbors
      geometric    --agents --radius --seed       links between those nearby
      line, linear --agents --k                   a row, linked to the next k
      ring, star, complete   --agents
      grid         --rows --columns
    or a FILE: .graphml, or text with the two agents of a link per line

    \b
    Examples:
      peerlearn graph
      peerlearn graph ring --agents 12
      peerlearn graph small_world --agents 30 --k 2 --rewire 0.1 --weights fastest
      peerlearn graph geometric --agents 200 --radius 0.15 --payload 4000
      peerlearn graph sites.graphml --output sites

    \b
    Files in the folder:
      weightings.csv          the table
      disagreement.csv        what is left of the disagreement, round by round
      graph.graphml           the graph with its weights
      summary.json            the other numbers
      graph.png, graph.svg    the figure, drawn from these files alone
    """
    from peerlearn.experiments.graph_kinds import named
    from peerlearn.experiments.graph_report import run_graph
    from peerlearn.experiments.tables import console_of_terminal, say, show_graph

    given = {name: value for name, value in parameters.items() if value is not None}
    with _progress("linking the agents") as watch:
        drawn = (
            named(kind, given) if kind is not None else named("erdos_renyi", {"p": 0.2, **given})
        )
        report = run_graph(
            output, drawn, weights=weights, payload=payload, accuracy=accuracy, watch=watch
        )
    console, file = console_of_terminal(), str(output / "graph.graphml")
    show_graph(console, report)
    say(
        console,
        f"Folder   {output}",
        "Figure   graph.png, graph.svg",
        "Numbers  weightings.csv, disagreement.csv, graph.graphml, summary.json",
        f"Next     in Python, SimulatedNetwork(graphs.from_file({file!r}), {report.weights!r})",
    )


@click.command()
@click.argument("model")
@click.argument("file")
@click.option(
    "--output",
    type=PATH,
    metavar="FILE",
    help="Write a CSV file instead of showing the predictions.",
)
def predict(model: str, file: str, output: Path | None) -> None:
    """Use a saved model on the rows of a file.

    MODEL was saved by a site or with peerlearn.models.archive.save. FILE is .csv with a header
    line, .parquet, or .npz with an array X; its columns are found by their names, in any order. If
    it has the target as well, the accuracy or R2 is shown beside the predictions, on standard
    error.

    \b
    Examples:
      peerlearn predict model.npz patients.csv
      peerlearn predict model.npz patients.parquet --output predictions.csv
    """
    from peerlearn.experiments.files import write
    from peerlearn.experiments.predictions import predict as predictions_of

    done = predictions_of(model, file)
    if output is None:
        click.echo(done.text, nl=False)
    else:
        write(output, done.text)
        click.echo(f"{done.rows} predictions in {output}")
    if done.score is not None:
        click.echo(done.score, err=True)


@contextmanager
def _progress(first: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on the terminal while something runs; nothing in a pipe or file."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task(first, total=None)
        yield lambda doing, done, steps: progress.update(
            task, description=doing, completed=done, total=steps
        )
