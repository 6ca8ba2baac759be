"""The command demo."""

from __future__ import annotations

import warnings
from pathlib import Path

import click

from peerlearn import errors
from peerlearn.cli.shared import PATH


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
    help="Seed of the graph and of the shares.",
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

    The rows of two data sets are dealt to agents on a random graph. Each method is compared with
    the centralised model, which is trained on all rows in one place. The table shows the error on
    unseen rows, the distance to the centralised coefficients, and how much the agents sent.

    \b
    Examples:
      peerlearn demo
      peerlearn demo --agents 50 --seed 1 --output fifty
      mpiexec -n 4 peerlearn demo --engine mpi

    \b
    Files in the folder:
      results.csv             the table
      agents.csv              each agent's rows and error, alone and together
      rounds.csv              how near agents are to agreement, round by round
      graph.graphml           who is whose neighbor
      settings.json           seed, settings and versions, to repeat the demo
      demo.png, .svg          each agent before and after
      costs.png, .svg         what each method sends for its error
      rounds.png, .svg        how fast agents agree
    Figures are drawn from the other files alone.
    """
    from peerlearn.cli.demo.run import run_demo
    from peerlearn.cli.demo.table import show_results
    from peerlearn.system.terminal import console_of_terminal, progress_bar, say

    with warnings.catch_warnings(), progress_bar("dealing the rows") as watch:
        warnings.simplefilter("ignore", errors.NotConverged)  # the table says so
        done = run_demo(output, agents=agents, seed=seed, engine=engine, watch=watch)
    if not done.results:
        return  # another rank shows them
    console = console_of_terminal()
    for name in dict.fromkeys(result.data for result in done.results):
        show_results(console, done, name)
    console.print(
        "Agents sent sums, factors and coefficients, not rows. Rows can be computed from some of "
        "these: this is "
        "locality, not secrecy. Alone, agents only compared settings and class labels. Sums went "
        "over a tree; ADMM was "
        "asked to come within 1e-3 of the centralised coefficients, auto and conjugate gradient "
        "within 1e-6. All methods have the same features and the same penalty, which were given; "
        "RVFLClassifier() chooses both from the data.\n"
    )
    say(
        console,
        f"Folder   {output}",
        "Figures  demo.png, costs.png, rounds.png, and the same as .svg",
        "Numbers  results.csv, agents.csv, rounds.csv, graph.graphml, settings.json",
        "Next     in Python, RVFLClassifier(network=SimulatedNetwork(graph)).fit(X, y)",
    )
