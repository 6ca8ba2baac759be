"""Reader of a network's file, which describes a whole network on this machine.

    run = "digits"
    output = "peerlearn-up"         folder for everything, relative to the file

    [network]
    agents = 4                      how many, or a list of names
    graph = "ring"                  a generator of peerlearn.graphs, with its parameters beside it,
    seed = 0                        such as graph = "erdos_renyi", p = 0.5;
                                    or links as in a site's file
    weights = "metropolis"

    [data]
    name = "digits"                 a data set by name (peerlearn data), or file and target
    test_fraction = 0.25            part of the labelled rows that nobody trains on
    split = "stratified"            how the others are dealt: even, stratified or dirichlet
    seed = 0

[columns], [model] and [patience] are as in a site's file.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from sklearn.model_selection import train_test_split

from peerlearn import data, graphs, partition, toml_reader
from peerlearn.data import table_file
from peerlearn.errors import InputError
from peerlearn.models.unlabelled import is_unlabelled
from peerlearn.network.peers.timeouts import Timeouts
from peerlearn.sites.description import path_beside, read_columns, read_network, read_patience
from peerlearn.sites.training import classifies, learns_in_order, may_lack_labels, read_model
from peerlearn.toml_reader import NUMBER

SPLITS = {
    "even": partition.even,
    "stratified": partition.stratified,
    "dirichlet": partition.dirichlet,
}
MOST_AGENTS = 100  # processes on one machine
# Generators whose first parameter is the number of agents, and all of their other parameters.
GENERATORS = {
    name: each
    for name, each in graphs.GENERATORS.items()
    if next(iter(inspect.signature(each).parameters)) == "n"
}
OPTIONS = {
    name
    for each in GENERATORS.values()
    for name in inspect.signature(each).parameters
    if name != "n"
}


@dataclass(frozen=True)
class Plan:
    """Agents, rows and model of a network, as read from its file."""

    run: str
    output: Path
    agents: tuple[str, ...]
    graph: nx.Graph
    weights: str
    rows: DealtRows
    model: dict[str, Any]
    patience: Timeouts
    columns: dict[str, Any] | None = None  # declared kinds of columns; None: tables of numbers

    @property
    def classifies(self) -> bool:
        """Whether the model is a classifier."""
        return classifies(self.model)

    def folder(self, agent: str) -> Path:
        """Return the folder of an agent."""
        return self.output / agent


@dataclass(frozen=True)
class DealtRows:
    """One share of the rows per agent, and the test rows."""

    columns: Sequence[str]
    target: str
    shares: Sequence[partition.Share]
    test: partition.Share


def read_plan(file: Path) -> Plan:
    """Read a network's file and deal its rows. Nothing is written."""
    top = toml_reader.read(file).only(
        "run", "output", "network", "data", "columns", "model", "patience"
    )
    run = top.take("run", str)
    output = path_beside(file, top.take("output", str))
    agents, graph, weights = _network(top.table("network"))
    data_table = top.table("data")
    model = read_model(top.table("model"))
    patience = read_patience(top.table("patience", needed=False))
    columns = read_columns(top)
    rows = _rows(data_table, file, len(agents), model, raw=columns is not None)
    return Plan(run, output, agents, graph, weights, rows, model, patience, columns)


def _network(table: toml_reader.TomlTable) -> tuple[tuple[str, ...], nx.Graph, str]:
    """Read names, graph and weights, of a generated graph or of one given by links."""
    if "graph" not in table.values:  # otherwise the kind of graph decides which keys are known
        table.only("agents", "links", "graph", "weights", *OPTIONS)
    agents = table.take("agents", (int, list), what="how many, or a list of names")
    if isinstance(agents, int) and not 1 <= agents <= MOST_AGENTS:
        raise table.wrong("agents", f"is {agents}: give 1 to {MOST_AGENTS}, each is a process")
    names = [f"agent-{k}" for k in range(agents)] if isinstance(agents, int) else agents
    if "graph" not in table.values:
        if "links" not in table.values:
            raise table.wrong(
                "graph", f"is missing: give one of {', '.join(sorted(GENERATORS))}, or links"
            )
        return read_network(
            toml_reader.TomlTable({**table.values, "agents": names}, table.path, table.prefix)
        )
    weights = table.take("weights", str, "metropolis")
    kind = table.take("graph", str)
    if kind not in GENERATORS:
        raise table.wrong(
            "graph", f"is {kind!r}, which is not known{toml_reader.near(kind, GENERATORS)}"
        )
    wanted = list(inspect.signature(GENERATORS[kind]).parameters)[1:]
    options = table.rest()
    stray = [key for key in options if key not in wanted]
    if stray:
        takes = f"takes {', '.join(wanted)}" if wanted else "takes nothing besides"
        raise table.wrong(stray[0], f"is not understood: graph {kind!r} {takes}")
    with table.about("graph"):
        graph = _generate_graph(kind, len(names), options)
    links = [[names[a], names[b]] for a, b in graph.edges]
    return read_network(
        toml_reader.TomlTable(
            {"agents": names, "links": links, "weights": weights}, table.path, table.prefix
        )
    )


def _generate_graph(kind: str, agents: int, options: dict[str, Any]) -> nx.Graph:
    parameters = list(inspect.signature(GENERATORS[kind]).parameters.values())[1:]
    for each in parameters:
        if each.default is each.empty and each.name not in options:
            raise InputError(f"{kind} needs {each.name} as well, so give it beside graph")
    return GENERATORS[kind](agents, **options)


def _rows(
    table: toml_reader.TomlTable, file: Path, agents: int, model: dict[str, Any], *, raw: bool
) -> DealtRows:
    """Read [data], load the rows, and deal them to the agents."""
    source = ("name",) if "name" in table.values else ("name", "file", "target")
    table.only(*source, "test_fraction", "split", "seed")
    fraction = table.take("test_fraction", NUMBER, 0.25)
    seed = table.take("seed", int, 0)
    split = table.take("split", str, "even")
    if learns_in_order(model):
        raise InputError(
            f"[data] in {table.path} cannot be dealt to {agents} agents, because the model learns "
            "from rows in their order, and they are dealt at random: give each site a file of its "
            "own, and run peerlearn agent there"
        )
    if not 0 < fraction < 1:
        raise table.wrong("test_fraction", f"is {fraction}: give a number between 0 and 1")
    if split not in SPLITS:
        raise table.wrong(
            "split", f"is {split!r}, which is not known{toml_reader.near(split, SPLITS)}"
        )
    if not 0 <= seed < 2**32:
        raise table.wrong("seed", f"is {seed}: give 0 to {2**32 - 1}")
    columns, target, X, y = _load_table(
        table, file, partly_labelled=may_lack_labels(model), raw=raw
    )
    bare = is_unlabelled(y) if may_lack_labels(model) else np.zeros(len(y), dtype=bool)
    labelled = np.flatnonzero(~bare)
    try:
        train, test = train_test_split(
            labelled,
            test_size=fraction,
            stratify=y[labelled] if classifies(model) else None,
            random_state=seed,
        )
        # Rows without a label cannot be test rows, so all of them are for training.
        train = np.concatenate([train, np.flatnonzero(bare)])
        shares = SPLITS[split](X[train], y[train], agents, seed=seed)
    except ValueError as error:
        raise InputError(
            f"[data] in {table.path} cannot be dealt to {agents} agents: {error}"
        ) from None
    return DealtRows(columns, target, shares, (X[test], y[test]))


def _load_table(
    table: toml_reader.TomlTable, plan: Path, *, partly_labelled: bool, raw: bool
) -> tuple[Sequence[str], str, Any, Any]:
    """Load columns, target, X and y of a named data set or of a file."""
    if "name" in table.values:
        name = table.take("name", str)
        with table.about("name"):
            loaded = data.load(name)
        X = loaded.X.astype(object) if raw else loaded.X
        return [f"x{k}" for k in range(X.shape[1])], "y", X, loaded.y
    file = table.take("file", str, what="a file, or name instead, a data set of peerlearn data")
    path = path_beside(plan, file)
    target = table.take("target", str, what="the name of the column to predict")
    with table.about("file"):
        read = table_file.read(path, target, partly_labelled=partly_labelled, raw=raw)
    return read.columns, target, read.X, read.y
