"""The command peerlearn: thin doors to what Python users can call as well.

A command imports what it runs when it runs, so that --help does not wait for scikit-learn.
"""

from __future__ import annotations

import click

from peerlearn.cli.data_sets import data
from peerlearn.cli.demo.command import demo
from peerlearn.cli.doors import Doors
from peerlearn.cli.graph.command import graph
from peerlearn.cli.lab import report, run
from peerlearn.cli.predict import predict
from peerlearn.cli.reproduce import reproduce
from peerlearn.cli.sites import agent, certs, up


@click.group(
    cls=Doors, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="peerlearn")
def main() -> None:
    """Agents that hold their own data learn one model by talking to their neighbors in a graph.

    There is no server, and data sets stay where they are.

    \b
    Start here:
      peerlearn demo          twenty agents learn two data sets, in well under a minute
      peerlearn graph         how fast agents on a graph come to agree, and what it sends
      peerlearn data          the data sets there are, and where your own are read from
      peerlearn run FILE      a comparison: data sets x models x networks, with a report
      peerlearn reproduce     the tables and figures of the thesis, its numbers beside ours
      peerlearn up FILE       a network of real processes on this machine
      peerlearn agent FILE    one real agent, at its site
      peerlearn demo --help   options of the demo
    """


for command in (demo, graph, data, predict, run, report, reproduce, certs, agent, up):
    main.add_command(command)
