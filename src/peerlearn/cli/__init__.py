"""The command peerlearn: thin doors to what Python users can call as well.

A command imports what it runs when it runs, so that --help does not wait for scikit-learn.
"""

from __future__ import annotations

import click

from peerlearn.cli import data_sets, lab, predict, reproduce, sites, summary
from peerlearn.cli.demo import command as demo_command
from peerlearn.cli.graph import command as graph_command
from peerlearn.cli.privacy import command as privacy_command
from peerlearn.cli.shared import CommandGroup


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="peerlearn")
def main() -> None:
    """Agents that hold their own data learn one model by talking to their neighbors in a graph.

    There is no server, and data sets stay where they are.

    \b
    Start here:
      peerlearn demo          twenty agents learn two data sets, in well under a minute
      peerlearn graph         how fast agents on a graph agree, and how much they send
      peerlearn data          the data sets, and where to put your own
      peerlearn run FILE      a comparison: data sets x models x networks, with a report
      peerlearn reproduce     the experiments of the thesis, its numbers beside ours
      peerlearn up FILE       a network of real processes on this machine
      peerlearn agent FILE    one real agent, at its site
      peerlearn privacy FILE  who could compute whose values before a run, and what left
      peerlearn predict       predictions of a saved model for the rows of a file
      peerlearn summary       its coefficients with standard errors and p-values
      peerlearn demo --help   options and examples of a command

    The thesis is S. Scardapane, Distributed Supervised Learning using Neural Networks, 2016.
    """


# Commands are not imported by name: one called graph would hide the package cli.graph.
for command in (
    demo_command.demo,
    graph_command.graph,
    data_sets.data,
    predict.predict,
    summary.summary,
    lab.run,
    lab.report,
    reproduce.reproduce,
    sites.certs,
    sites.agent,
    sites.up,
    privacy_command.privacy,
):
    main.add_command(command)
