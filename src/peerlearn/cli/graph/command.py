"""The command graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from peerlearn.cli.shared import PATH

GRAPH_OPTIONS = (
    click.option(
        "--agents", "n", type=int, metavar="N", help="Number of agents: 2 to 1000.  [default: 20]"
    ),
    click.option("--p", type=float, metavar="P", help="Probability of each link (erdos_renyi)."),
    click.option("--k", type=int, metavar="N", help="Neighbors to each side (line, small_world)."),
    click.option(
        "--rewire",
        type=float,
        metavar="P",
        help="Probability that a link leads elsewhere (small_world).",
    ),
    click.option(
        "--m", type=int, metavar="N", help="Links that each new agent brings (scale_free)."
    ),
    click.option(
        "--radius",
        type=float,
        metavar="R",
        help="How far links reach in the unit square (geometric).",
    ),
    click.option("--rows", type=int, metavar="N", help="Rows of agents (grid)."),
    click.option("--columns", type=int, metavar="N", help="Columns of agents (grid)."),
    click.option("--seed", type=int, metavar="N", help="Seed of a random graph.  [default: 0]"),
)


def take_graph_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of all kinds of graphs, in this order."""
    for option in reversed(GRAPH_OPTIONS):
        command = option(command)
    return command


@click.command()
@click.argument("kind", metavar="[KIND|FILE]", required=False)
@take_graph_options
@click.option(
    "--weights",
    default="metropolis",
    show_default=True,
    metavar="NAME",
    help="Weights that the figure shows.",
)
@click.option(
    "--payload",
    default=500,
    show_default=True,
    metavar="N",
    help="How many numbers a message has.",
)
@click.option(
    "--accuracy",
    default=1e-6,
    metavar="E",
    help="How closely agents have to agree.  [default: 1e-6]",
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
    """Show how fast agents on a graph agree on an average.

    In each round every agent mixes its value with those of its neighbors. The number of rounds
    depends on the graph and on the weights that neighbors give each other: max-degree, metropolis,
    laplacian or fastest. The command compares all four, with plain and with accelerated (Chebyshev)
    rounds, and with a sum over a tree. The rounds shown are enough for any values at the start.
    The megabytes are those of all agents together.

    Without a KIND the graph is erdos_renyi --p 0.2, as in the demo. Fastest weights need the
    package cvxpy. They take long for more than 50 agents, and are then computed only with
    --weights fastest.

    \b
    Kinds and their options:
      erdos_renyi  --agents --p --seed            each link with probability p
      small_world  --agents --k --rewire --seed   a ring with some far links
      scale_free   --agents --m --seed            a few hubs with many neighbors
      geometric    --agents --radius --seed       links between near agents
      line, linear --agents --k                   each linked to the next k
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
    from peerlearn.cli.graph.kinds import make_graph
    from peerlearn.cli.graph.run import run_graph
    from peerlearn.cli.graph.table import show_graph
    from peerlearn.system.terminal import console_of_terminal, progress_bar, say

    given = {name: value for name, value in parameters.items() if value is not None}
    with progress_bar("linking the agents") as watch:
        drawn = (
            make_graph(kind, given)
            if kind is not None
            else make_graph("erdos_renyi", {"p": 0.2, **given})
        )
        report = run_graph(
            output, drawn, weights=weights, payload=payload, accuracy=accuracy, watch=watch
        )
    console = console_of_terminal()
    file = str(output / "graph.graphml")
    show_graph(console, report)
    say(
        console,
        f"Folder   {output}",
        "Figure   graph.png, graph.svg",
        "Numbers  weightings.csv, disagreement.csv, graph.graphml, summary.json",
        f"Next     in Python, SimulatedNetwork(graphs.from_file({file!r}), {report.weights!r})",
    )
