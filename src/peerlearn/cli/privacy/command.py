"""The command privacy."""

from __future__ import annotations

from pathlib import Path

import click

from peerlearn.cli.graph.command import take_graph_options
from peerlearn.cli.shared import PATH
from peerlearn.errors import InputError


@click.command()
@click.argument("file", type=PATH, required=False)
@click.option("--graph", "kind", metavar="KIND", help="Audit this graph instead of a file.")
@take_graph_options
@click.option(
    "--weights", metavar="NAME", help="Weights of gossip, with --graph.  [default: metropolis]"
)
@click.option("--solver", metavar="NAME", help="Solver, instead of the file's.  [default: auto]")
@click.option(
    "--method",
    type=click.Choice(["tree", "plain", "chebyshev"]),
    help="How values are added up, instead of the solver's own setting.",
)
@click.option(
    "--masks", type=click.Choice(["sums"]), help="Audit masked sums, as with secrecy='sums'."
)
@click.option(
    "--colluders",
    default=1,
    show_default=True,
    metavar="N",
    help="How many agents put together what they know.",
)
@click.option(
    "--left",
    type=PATH,
    metavar="DIR",
    help="Check and sum up the ledger of what left an agent, in its output folder.",
)
@click.option(
    "--output",
    type=PATH,
    default="peerlearn-privacy",
    show_default=True,
    metavar="DIR",
    help="Folder for the results.",
)
def privacy(
    file: Path | None,
    kind: str | None,
    weights: str | None,
    solver: str | None,
    method: str | None,
    masks: str | None,
    colluders: int,
    left: Path | None,
    output: Path,
    **parameters: int | float | None,
) -> None:
    """Show who could compute whose values, before anything runs; or what left, afterwards.

    Each agent has a value that depends on its rows, such as a Gram matrix. Curious agents follow
    the protocol, and put together what they receive. FILE is a site's file or a network's file.
    Nothing is sent: everything is computed from the graph, the weights and the model's settings.

    \b
    How values travel:
      tree        a parent sees its leaves' values, and sums of larger branches
      plain       gossip: most agents can compute most values after some rounds
      chebyshev   the same, with more digits
      neighbors   neighbors see each other's values (next, tracking, diffusion)
      everyone    all agents see all values (landmarks, exchange, anchors)
      masks       with secrecy="sums": nothing but the total is seen

    Rows can sometimes be computed from values. The command warns if that may be so.

    With --left, the command reads left.jsonl instead, the ledger that an agent keeps in its output
    folder: which quantities left in all runs, to whom, under which protection, in how many messages
    and bytes. Lines are chained by digests. If a line was edited, dropped or moved, the command
    names it and ends with exit code 1.

    \b
    Examples:
      peerlearn privacy site.toml
      peerlearn privacy examples/network.toml --colluders 2
      peerlearn privacy --graph erdos_renyi --p 0.2 --method plain
      peerlearn privacy --graph ring --agents 12 --solver admm
      peerlearn privacy --graph sites.graphml --masks sums --colluders 3
      peerlearn privacy --left results

    For the options of each kind of graph see peerlearn graph --help.

    \b
    Files in the folder:
      audit.json              everything that was found
      audit.png, audit.svg    the graph, coloured by how exposed each agent is
    """
    from peerlearn.cli.graph.kinds import make_graph
    from peerlearn.cli.privacy.report import audit_subject, save, show
    from peerlearn.cli.privacy.subject import from_file, from_graph
    from peerlearn.system.files import result_folder
    from peerlearn.system.terminal import console_of_terminal, say

    if left is not None:
        if file is not None or kind is not None:
            raise InputError("--left reads the ledger of a folder: leave out the file or graph")
        from peerlearn.cli.privacy.left import show_left

        if not show_left(console_of_terminal(), left):
            raise SystemExit(1)
        return
    given = {name: value for name, value in parameters.items() if value is not None}
    if (file is None) == (kind is None):
        raise InputError(
            "give either a file or a graph: peerlearn privacy site.toml, or "
            "peerlearn privacy --graph ring"
        )
    if file is not None:
        if given or weights is not None:
            raise InputError(f"{file} describes the graph itself: leave out the options of graphs")
        subject = from_file(file, solver)
    else:
        graph = make_graph(str(kind), given)
        subject = from_graph(graph, weights or "metropolis", solver or "auto")
    report = audit_subject(subject, method=method, masks=masks, colluders=colluders)
    save(report, result_folder(output))
    console = console_of_terminal()
    show(console, report)
    say(console, f"Folder   {output}", "Figure   audit.png, audit.svg", "Numbers  audit.json")
