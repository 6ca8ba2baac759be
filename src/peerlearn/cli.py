"""The command peerlearn: thin doors to what Python users can call as well."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from peerlearn.errors import InputError, NotConverged, PeerlearnError, Stopped
from peerlearn.network.mpi import end_job

CTRL_C = 130  # what shells expect of a program ended by Ctrl-C
GOES_ON = 3  # of a run that ended before its time: the same command takes it up again


class Doors(click.Group):
    """A group whose commands end in one sentence, not in a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PeerlearnError as error:
            click.echo(f"peerlearn: {error}", err=True)
            code = _code(error)
            end_job(code)  # other ranks of an MPI job would wait for this one
            ctx.exit(code)
        except KeyboardInterrupt:
            click.echo("peerlearn: stopped by Ctrl-C; files already written are whole", err=True)
            ctx.exit(CTRL_C)


def _code(error: PeerlearnError) -> int:
    """2 for what was given, 3 for what can go on, 1 for the rest; ended by a signal, what shells expect."""
    usual = 2 if isinstance(error, InputError) else GOES_ON if isinstance(error, Stopped) else 1
    return int(getattr(error, "exit_code", usual))


@click.group(cls=Doors, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="peerlearn")
def main() -> None:
    """Agents that hold their own data learn one model by talking to their neighbors in a graph.

    There is no server, and data sets stay where they are.

    \b
    Start here:
      peerlearn demo          twenty agents learn two data sets, in well under a minute
      peerlearn data          the data sets there are, and where your own are read from
      peerlearn up FILE       a network of real processes on this machine
      peerlearn agent FILE    one real agent, at its site
      peerlearn demo --help   what the demo can be asked
    """


@main.command()
@click.option("--agents", default=20, show_default=True, metavar="N", help="How many agents share the data: 4 to 100.")
@click.option("--seed", default=0, show_default=True, metavar="N", help="Another seed: another graph and other shares.")
@click.option("--output", default="peerlearn-demo", show_default=True, metavar="DIR", help="Folder for the results.")
@click.option(
    "--engine", default="simulation", show_default=True, metavar="NAME", help="simulation, or mpi under mpiexec."
)
def demo(agents: int, seed: int, output: str, engine: str) -> None:
    """Watch agents learn, alone and together.

    The rows of two data sets are dealt to agents on a random graph. Each method is then compared with the centralised
    answer, for which all rows would have to be in one place: what is its error on unseen rows, how far are its
    coefficients from the centralised ones, and what did the agents send each other for it?

    \b
    Examples:
      peerlearn demo
      peerlearn demo --agents 50 --seed 1 --output fifty
      mpiexec -n 4 peerlearn demo --engine mpi

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
    from peerlearn.experiments.tables import console_of_terminal, say, show_results

    with warnings.catch_warnings(), _progress() as watch:
        warnings.simplefilter("ignore", NotConverged)  # the table says so
        done = run_demo(output, agents=agents, seed=seed, engine=engine, watch=watch)
    if not done.results:
        return  # another rank shows them
    console = console_of_terminal()
    for name in dict.fromkeys(result.data for result in done.results):
        show_results(console, done, name)
    console.print(
        "No row was sent. Alone, agents only compared settings and class labels. Sums went over a tree; ADMM "
        "was asked to come within 1e-3 of the centralised coefficients, conjugate gradient within 1e-6.\n"
    )
    say(
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
    from peerlearn.experiments.tables import console_of_terminal, say, show_data

    sets, console = available(folder), console_of_terminal()
    show_data(console, sets)
    place = folder or os.environ.get("PEERLEARN_DATA")
    say(
        console,
        *(f"{each.name} {each.description}" for each in sets if each.task is None),
        '\nLoad one  peerlearn.data.load("digits")',
        f"Your own  NAME.npz (arrays X, y) in {place or '--folder DIR or PEERLEARN_DATA (not set)'}",
    )


@main.command()
@click.argument("folder", metavar="DIR")
@click.option("--agents", type=int, metavar="N", help="Make agent-0, agent-1, ... for this many agents.")
@click.option("--name", "names", multiple=True, metavar="NAME", help="Make this agent instead; once for each.")
@click.option("--days", default=825, show_default=True, metavar="N", help="How long they are valid: 1 to 3650.")
def certs(folder: str, agents: int | None, names: tuple[str, ...], days: int) -> None:
    """Make the certificates by which agents at different sites know each other.

    An authority signs one identity per agent, and agents talk only to those that the same authority signed. Run this in
    one place, then carry the files of each agent to its site. In a folder that has an authority already, further agents
    are signed by it; files that are there are never overwritten.

    \b
    Examples:
      peerlearn certs certificates --agents 4
      peerlearn certs certificates --name north --name south

    \b
    Files in the folder:
      NAME.pem, NAME.key      who an agent is: to its own site, and to no other
      authority.pem           whom agents trust: to every site
      authority.key           signs further agents: to no site, keep it offline
    """
    from peerlearn.network.peers.certificates import make

    if (agents is None) == (not names):
        raise InputError("agents are given by number or by name: use either --agents 4 or --name north --name south")
    if agents is not None and agents < 1:
        raise InputError(f"certificates cannot be made for {agents} agents: choose 1 or more")
    made = make(folder, names or [f"agent-{k}" for k in range(agents or 0)], days=days)
    for path in made:
        click.echo(path)
    click.echo(
        "\nTo each site: authority.pem and the two files of its agent. The .key files are secrets: send each over a "
        "safe way to its own site alone, and authority.key to none."
    )


@main.command()
@click.argument("model")
@click.argument("file")
@click.option("--output", metavar="FILE", help="Write a CSV file instead of showing the predictions.")
def predict(model: str, file: str, output: str | None) -> None:
    """Use a saved model on the rows of a file.

    MODEL was saved by a site or with peerlearn.models.archive.save. FILE is .csv with a header line, .parquet, or .npz
    with an array X; its columns are found by their names, in any order. If it has the target as well, the accuracy or
    R2 is shown beside the predictions, on standard error.

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
        write(Path(output).expanduser(), done.text)
        click.echo(f"{done.rows} predictions in {output}")
    if done.score is not None:
        click.echo(done.score, err=True)


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--give-up-after", type=float, metavar="S", help="Stop after so many seconds without a sign of life of a neighbor."
)
@click.option("--insecure-loopback", is_flag=True, help="No certificates: to try things out on this machine alone.")
def agent(file: Path, give_up_after: float | None, insecure_loopback: bool) -> None:
    """Run one agent of a network, here, to the end.

    FILE describes the site: who the agent is and whom it talks to, its certificates, its data, and what is trained.
    Start the same command at every site. Neighbors compare their settings, wait for each other, and train together;
    rows stay where they are. Killed or cut off, an agent goes on from its checkpoint when the same command is given
    again, and the others wait for it.

    Exit codes: 0 done, 2 for what has to be changed first, 3 stopped early, 130 Ctrl-C, 143 SIGTERM; after the last
    three the same command goes on.

    \b
    Examples:
      peerlearn agent site.toml
      peerlearn agent site.toml --give-up-after 3600

    \b
    A site's file:
      run = "ward-study"
      name = "north"
      address = "0.0.0.0:7101"
      output = "north"
      [network]
      agents = ["north", "south"]
      links = [["north", "south"]]
      [neighbors]
      south = "south.example:7101"
      [certificates]
      authority = "authority.pem"
      certificate = "north.pem"
      key = "north.key"
      [data]
      file = "north.csv"
      target = "outcome"
      [model]
      kind = "RVFLClassifier"
      n_hidden = 200
      random_state = 0

    \b
    Files in the output folder:
      model.npz               the trained model, for peerlearn predict
      report.json, .txt       how it was trained and what was sent
      agent.log, status.json  what happens while it runs
      checkpoints/            what is needed to go on after a kill
    """
    from peerlearn.sites.agent import run_agent

    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    done = run_agent(file, insecure_loopback=insecure_loopback, give_up_after=give_up_after)
    click.echo(done.report)
    if done.again:
        click.echo("This run was finished before; empty the checkpoints folder to train anew.")
    click.echo(f"Model {done.model}")


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
def up(file: Path) -> None:
    """Run all agents of a network as real processes on this machine.

    FILE describes the whole network. Data are dealt, certificates made, and one process per agent started, each with
    the file that a real site would have. A table shows how they are doing. Ctrl-C ends all of them with a checkpoint;
    the same command goes on. An agent that is killed is started again.

    \b
    Examples:
      peerlearn up network.toml
      peerlearn up examples/network.toml

    \b
    A network's file:
      run = "digits"
      output = "peerlearn-up"
      [network]
      agents = 4
      graph = "ring"
      [data]
      name = "digits"
      [model]
      kind = "RVFLClassifier"
      n_hidden = 200
      random_state = 0

    \b
    Files in the output folder, for each agent:
      NAME/site.toml          what it was started with
      NAME/model.npz          what it learned
      NAME/agent.log          what happened
    """
    from peerlearn.experiments.tables import console_of_terminal, say
    from peerlearn.sites.up import run_up, scores
    from peerlearn.sites.view import live, table

    console = console_of_terminal()
    with live(console) as view:
        plan, agents = run_up(file, view)
    console.print(table(agents, scores(plan), "test accuracy" if plan.classifies else "test R2"))
    say(console, f"Models, reports and logs of all agents are in {plan.output}")


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
