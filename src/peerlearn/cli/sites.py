"""Commands for agents at sites: certs, agent, up."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from peerlearn.cli.shared import PATH
from peerlearn.errors import InputError

take_consent = click.option(
    "--consent",
    is_flag=True,
    help="With secrecy: train even if differences of totals show data of this site.",
)


@click.command()
@click.argument("folder", metavar="DIR", type=PATH)
@click.option(
    "--agents", type=int, metavar="N", help="Make agent-0, agent-1, ... for this many agents."
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Name of an agent; instead of --agents, once per agent.",
)
@click.option(
    "--days",
    default=825,
    show_default=True,
    metavar="N",
    help="Days for which the certificates are valid: 1 to 3650.",
)
def certs(folder: Path, agents: int | None, names: tuple[str, ...], days: int) -> None:
    """Make the certificates of agents at different sites.

    An authority signs one certificate per agent. Agents talk only to agents whose certificates the
    same authority signed. Run this in one place, then carry the files of each agent to its site.
    If the folder already has an authority, it signs the new agents. Existing files are never
    overwritten.

    \b
    Examples:
      peerlearn certs certificates --agents 4
      peerlearn certs certificates --name north --name south

    \b
    Files in the folder:
      NAME.pem, NAME.key      certificate and key of an agent: for its site only
      authority.pem           certificate of the authority: for every site
      authority.key           signs further agents: for no site, keep it offline
    """
    from peerlearn.network.peers.certificates import make

    if (agents is None) == (not names):
        raise InputError(
            "agents are given by number or by name: use either --agents 4 or --name north --name "
            "south"
        )
    if agents is not None and agents < 1:
        raise InputError(f"certificates cannot be made for {agents} agents: choose 1 or more")
    made = make(folder, names or [f"agent-{k}" for k in range(agents or 0)], days=days)
    for path in made:
        click.echo(path)
    click.echo(
        "\nEach site needs authority.pem and the two files of its agent. The .key files are "
        "secret: bring each to its own site in a safe way. authority.key goes to no site."
    )


@click.command()
@click.argument("file", type=PATH)
@click.option(
    "--give-up-after",
    type=float,
    metavar="S",
    help="Stop if a neighbor is silent for this many seconds.",
)
@click.option(
    "--insecure-loopback",
    is_flag=True,
    help="No certificates: to try things out on this machine alone.",
)
@take_consent
@click.option(
    "--end-with-stdin",
    is_flag=True,
    hidden=True,
    help="End when standard input ends: for peerlearn up.",
)
def agent(
    file: Path,
    give_up_after: float | None,
    insecure_loopback: bool,
    consent: bool,
    end_with_stdin: bool,
) -> None:
    """Run one agent of a network at its site.

    FILE describes the site: the agent's name, neighbors, certificates and data, and the model that
    is trained. Start the same command at every site. Neighbors wait for each other, compare their
    settings, and train together. Rows stay where they are. If an agent is killed or cut off, give
    the same command again: it continues from its checkpoint, and the others wait for it.

    Exit codes: 0 done; 2 something must be changed first; 3 stopped early; 130 Ctrl-C; 143 SIGTERM.
    After 3, 130 and 143 the same command continues.

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
      # secrecy = "sums": neighbors see masked sums only (3 agents or more)
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
      checkpoints/            what the agent needs to continue if it is killed
      left.jsonl              what left the site, for peerlearn privacy --left
      totals.jsonl            with secrecy: who took part in totals; keep it
    """
    from peerlearn.sites.agent import run_agent
    from peerlearn.sites.lifeline import end_with_standard_input

    if end_with_stdin:
        end_with_standard_input()
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    done = run_agent(
        file,
        insecure_loopback=insecure_loopback,
        give_up_after=give_up_after,
        consent=consent,
    )
    click.echo(done.report)
    if done.again:
        click.echo("This run was finished before; empty the checkpoints folder to train anew.")
    click.echo(f"Model {done.model}")


@click.command()
@click.argument("file", type=PATH)
@take_consent
def up(file: Path, consent: bool) -> None:
    """Run all agents of a network as real processes on this machine.

    FILE describes the whole network. The command deals the data, makes certificates, and starts one
    process per agent, each with the file that a real site would have. A table shows their progress.
    An agent that is killed is started again. Ctrl-C stops all agents with a checkpoint, and the
    same command continues. At the end the model is tested on rows that no agent trained on. It is
    compared with models of agents that learn alone, and with one trained on all rows in one place.

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
      NAME/left.jsonl         what left the agent, for peerlearn privacy --left
      NAME/output.txt         what it printed
    """
    from peerlearn.sites.outcome import measure
    from peerlearn.sites.up import run_up
    from peerlearn.sites.view import live, table
    from peerlearn.system.terminal import console_of_terminal, say

    console = console_of_terminal()
    with live(console) as view:
        plan, agents = run_up(file, view, consent=consent)
        view.say("training alone and in one place, to compare")
        outcome = measure(plan)
    scores = {name: outcome.text(score) for name, score in outcome.together.items()}
    console.print(table(agents, scores, f"test {outcome.metric}"))
    say(
        console,
        *outcome.lines(),
        "",
        f"Models, reports and logs of all agents are in {plan.output}",
    )
