"""Reader of a network's file, which describes a whole network on this machine.

    run = "digits"
    output = "peerlearn-up"         folder for everything, relative to the file

    [network]
    agents = 4                      how many, or a list of names
    graph = "ring"                  a generator of peerlearn.graphs, with its parameters beside it,
    seed = 0                        such as graph = "erdos_renyi", p = 0.5;
                                    or links as in a site's file
    weights = "metropolis"          secrecy and colluders as in a site's file

    [data]
    name = "digits"                 a data set by name (peerlearn data), or file and target
    test_fraction = 0.25            part of the labelled rows that nobody trains on
    split = "stratified"            how the others are dealt: even, stratified or dirichlet
    seed = 0

    [data]                          or a file for each agent, whose rows are its own
    target = "outcome"
    test_fraction = 0.25            part of each file's rows; or files of test rows:
    test_files = ["new.csv"]
    [data.files]
    north = "north.csv"
    south = "south.csv"

[columns], [model] and [patience] are as in a site's file.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from sklearn.model_selection import train_test_split

from peerlearn import data, graphs, partition, toml_reader
from peerlearn.data import table_file
from peerlearn.data.site_tables import split_rows
from peerlearn.errors import InputError
from peerlearn.models.unlabelled import is_unlabelled
from peerlearn.network.peers.timeouts import Timeouts
from peerlearn.sites.description import (
    SECRETS,
    path_beside,
    read_columns,
    read_network,
    read_patience,
    read_secrets,
)
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
    secrets: Mapping[str, Any] = field(default_factory=dict)  # secrecy and colluders, if given

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
    network = top.table("network")
    agents, graph, weights = _network(network)
    secrets = read_secrets(network, len(agents))
    data_table = top.table("data")
    model = read_model(top.table("model"), **secrets)
    patience = read_patience(top.table("patience", needed=False))
    columns = read_columns(top)
    raw = columns is not None
    if "files" in data_table.values:
        rows = _rows_of_files(data_table, file, agents, model, raw=raw)
    else:
        rows = _rows(data_table, file, len(agents), model, raw=raw)
    return Plan(run, output, agents, graph, weights, rows, model, patience, columns, secrets)


def _network(table: toml_reader.TomlTable) -> tuple[tuple[str, ...], nx.Graph, str]:
    """Read names, graph and weights, of a generated graph or of one given by links."""
    if "graph" not in table.values:  # otherwise the kind of graph decides which keys are known
        table.only("agents", "links", "graph", "weights", *SECRETS, *OPTIONS)
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
    options = {key: value for key, value in table.rest().items() if key not in SECRETS}
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
    source = ("name",) if "name" in table.values else ("name", "file", "files", "target")
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


def _rows_of_files(
    table: toml_reader.TomlTable,
    plan: Path,
    agents: Sequence[str],
    model: dict[str, Any],
    *,
    raw: bool,
) -> DealtRows:
    """Read [data] with one file per agent, and keep some rows of each for testing."""
    test_keys = ("test_files",) if "test_files" in table.values else ("test_fraction", "seed")
    table.only("files", "target", *test_keys)
    target = table.take("target", str, what="the name of the column to predict")
    fraction = table.take("test_fraction", NUMBER, 0.25)
    if not 0 < fraction < 1:
        raise table.wrong("test_fraction", f"is {fraction}: give a number between 0 and 1")
    seed = table.take("seed", int, 0)
    files = table.table("files").only(*agents)
    partly = may_lack_labels(model)

    def read(name: str, key: str) -> table_file.DataTable:
        with table.about(key):
            path = path_beside(plan, name)
            return table_file.read(path, target, partly_labelled=partly, raw=raw)

    own = [read(files.take(agent, str, what="its file"), "files") for agent in agents]
    columns = own[0].columns
    for agent, each in zip(agents[1:], own[1:], strict=True):
        if set(each.columns) != set(columns):
            odd = sorted(set(each.columns) ^ set(columns))
            raise table.wrong(
                "files",
                f"are of different columns: only one of {agents[0]} and {agent} has {odd[0]!r}, so "
                "add or rename it",
            )
    shares = [_share(each, columns) for each in own]
    if "test_files" in table.values:
        tests = [read(name, "test_files") for name in table.take("test_files", list)]
        if not tests:
            raise table.wrong("test_files", "is empty: name a file, or give test_fraction instead")
        parts = [_share(each, columns) for each in tests]
    else:
        splits = [split_rows(y, fraction, seed) for _, y in shares]
        parts = [(X[test], y[test]) for (X, y), (_, test) in zip(shares, splits, strict=True)]
        shares = [(X[train], y[train]) for (X, y), (train, _) in zip(shares, splits, strict=True)]
    X, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    labelled = ~is_unlabelled(y) if partly else np.ones(len(y), dtype=bool)
    return DealtRows(columns, target, shares, (X[labelled], y[labelled]))


def _share(table: table_file.DataTable, columns: Sequence[str]) -> partition.Share:
    assert table.y is not None  # a target was named
    return table.select(columns), table.y


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
