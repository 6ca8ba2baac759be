"""A whole network on this machine, from one file.

run = "digits"
output = "peerlearn-up"                 folder for everything, seen from the file

[network]
agents = 4                              how many, or a list of names
graph = "ring"                          a generator of peerlearn.graphs and, beside it, its parameters,
seed = 0                                such as graph = "erdos_renyi", p = 0.5; or links as in a site's file
weights = "metropolis"

[data]
name = "digits"                         a data set by name (peerlearn data), or a file and its target column
test_fraction = 0.25                    rows that nobody trains on; of those with a label, if some have none
split = "stratified"                    how the others are dealt: even, stratified or dirichlet
seed = 0

[model] and [patience] as in a site's file
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
from peerlearn.data import tables
from peerlearn.errors import InputError
from peerlearn.models.unlabelled import unlabelled
from peerlearn.network.peers.timeouts import Timeouts
from peerlearn.sites.description import path_beside, read_network, read_patience
from peerlearn.sites.training import classifies, learns_in_order, may_lack_labels, read_model
from peerlearn.toml_reader import NUMBER

SPLITS = {
    "even": partition.even,
    "stratified": partition.stratified,
    "dirichlet": partition.dirichlet,
}
MOST_AGENTS = 100  # processes on one machine
GENERATORS = {
    name: each
    for name, each in graphs.GENERATORS.items()
    if next(iter(inspect.signature(each).parameters)) == "n"
}
OPTIONS = {name for each in GENERATORS.values() for name in inspect.signature(each).parameters} - {
    "n"
}


@dataclass(frozen=True)
class Plan:
    """Who takes part, what each has, and what is trained."""

    run: str
    output: Path
    agents: tuple[str, ...]
    graph: nx.Graph
    weights: str
    rows: Rows
    model: dict[str, Any]
    patience: Timeouts

    @property
    def classifies(self) -> bool:
        return classifies(self.model)

    def folder(self, agent: str) -> Path:
        return self.output / agent


@dataclass(frozen=True)
class Rows:
    """One share per agent, and the rows that nobody trains on."""

    columns: Sequence[str]
    target: str
    shares: Sequence[partition.Share]
    test: partition.Share


def read_plan(file: Path) -> Plan:
    """Read a network's file and deal its rows; nothing is written."""
    top = toml_reader.read(file).only("run", "output", "network", "data", "model", "patience")
    run, output = top.take("run", str), path_beside(file, top.take("output", str))
    agents, graph, weights = _network(top.table("network"))
    about_data, model = top.table("data"), read_model(top.table("model"))
    patience = read_patience(top.table("patience", needed=False))
    rows = _rows(about_data, file, len(agents), model)
    return Plan(run, output, agents, graph, weights, rows, model, patience)


def _network(table: toml_reader.TomlTable) -> tuple[tuple[str, ...], nx.Graph, str]:
    if "graph" not in table.values:  # else its kind says which options there are
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
    weights, kind = table.take("weights", str, "metropolis"), table.take("graph", str)
    if kind not in GENERATORS:
        raise table.wrong(
            "graph", f"is {kind!r}, which is not known{toml_reader.near(kind, GENERATORS)}"
        )
    wanted = list(inspect.signature(GENERATORS[kind]).parameters)[1:]
    options = table.rest()
    if stray := [key for key in options if key not in wanted]:
        takes = f"takes {', '.join(wanted)}" if wanted else "takes nothing besides"
        raise table.wrong(stray[0], f"is not understood: graph {kind!r} {takes}")
    with table.about("graph"):
        graph = _generated(kind, len(names), options)
    links = [[names[a], names[b]] for a, b in graph.edges]
    return read_network(
        toml_reader.TomlTable(
            {"agents": names, "links": links, "weights": weights}, table.path, table.prefix
        )
    )


def _generated(kind: str, agents: int, options: dict[str, Any]) -> nx.Graph:
    parameters = list(inspect.signature(GENERATORS[kind]).parameters.values())[1:]
    for each in parameters:
        if each.default is each.empty and each.name not in options:
            raise InputError(f"{kind} needs {each.name} as well, so give it beside graph")
    return GENERATORS[kind](agents, **options)


def _rows(table: toml_reader.TomlTable, file: Path, agents: int, model: dict[str, Any]) -> Rows:
    source = ("name",) if "name" in table.values else ("name", "file", "target")
    table.only(*source, "test_fraction", "split", "seed")
    fraction, seed = table.take("test_fraction", NUMBER, 0.25), table.take("seed", int, 0)
    split = table.take("split", str, "even")
    if learns_in_order(model):
        raise InputError(
            f"[data] in {table.path} cannot be dealt to {agents} agents, because the model learns from rows in their "
            "order, and they are dealt at random: give each site a file of its own, and run peerlearn agent there"
        )
    if not 0 < fraction < 1:
        raise table.wrong("test_fraction", f"is {fraction}: give a number between 0 and 1")
    if split not in SPLITS:
        raise table.wrong(
            "split", f"is {split!r}, which is not known{toml_reader.near(split, SPLITS)}"
        )
    if not 0 <= seed < 2**32:
        raise table.wrong("seed", f"is {seed}: give 0 to {2**32 - 1}")
    columns, target, X, y = _loaded(table, file, partly_labelled=may_lack_labels(model))
    bare = unlabelled(y) if may_lack_labels(model) else np.zeros(len(y), dtype=bool)
    known = np.flatnonzero(~bare)
    try:
        train, test = train_test_split(
            known,
            test_size=fraction,
            stratify=y[known] if classifies(model) else None,
            random_state=seed,
        )
        train = np.concatenate(
            [train, np.flatnonzero(bare)]
        )  # there is nothing to test by rows without a label
        shares = SPLITS[split](X[train], y[train], agents, seed=seed)
    except ValueError as error:
        raise InputError(
            f"[data] in {table.path} cannot be dealt to {agents} agents: {error}"
        ) from None
    return Rows(columns, target, shares, (X[test], y[test]))


def _loaded(
    table: toml_reader.TomlTable, plan: Path, *, partly_labelled: bool
) -> tuple[Sequence[str], str, Any, Any]:
    """Columns, target, X and y of a data set by name or of a file."""
    if "name" in table.values:
        name = table.take("name", str)
        with table.about("name"):
            loaded = data.load(name)
        return [f"x{k}" for k in range(loaded.X.shape[1])], "y", loaded.X, loaded.y
    file = table.take("file", str, what="a file, or name instead, a data set of peerlearn data")
    path, target = (
        path_beside(plan, file),
        table.take("target", str, what="the name of the column to predict"),
    )
    with table.about("file"):
        read = tables.read(path, target, partly_labelled=partly_labelled)
    return read.columns, target, read.X, read.y
