"""Reader of a site's file, which describes one agent, its neighbors, its data and its model.

    run = "ward-study"              the same at every site
    name = "north"                  this agent, as in its certificate
    address = "0.0.0.0:7101"        where it listens
    output = "north"                folder for the model, the report, the log and the checkpoints

    [network]                       the same at every site
    agents = ["north", "south", "west"]
    links = [["north", "south"], ["south", "west"]]
    weights = "metropolis"
    secrecy = "sums"                neighbors see masked sums only; see decision 30 in docs
    colluders = 1                   how many agents may collude, and still learn totals only

    [neighbors]                     where those listen that come later in the list of agents
    south = "south.example:7101"

    [certificates]                  made by peerlearn certs
    authority = "authority.pem"
    certificate = "north.pem"
    key = "north.key"

    [data]
    file = "north.csv"              .csv, .parquet or .npz
    target = "outcome"              a column; in .npz files a name for y; the same everywhere
    scale = true                    columns to mean 0 and deviation 1 over the network

    [model]                         the same at every site
    kind = "RVFLClassifier"         and its parameters
    random_state = 0
    solver = "auto"                 or a table [model.solver] with a name and settings

    [model.search]                  only if settings are to be chosen by cross-validation
    grid = { alpha = [0.1, 1.0] }   lists of values; cv and scoring as in NetworkSearchCV

    [columns]                       prepares the table: gaps are filled, categories encoded; it may
    ward = "category"               be empty, or say what cannot be guessed from a column's cells:
    notes = "drop"                  number, date, category, drop, or a list of its categories

    [patience]                      seconds: silence, give_up_after, longest_round, save_every

Paths are relative to the file.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import networkx as nx

from peerlearn import graphs, toml_reader
from peerlearn import weights as mixing
from peerlearn.errors import GraphError, InputError
from peerlearn.network import SimulatedNetwork
from peerlearn.network.peers.streams import check_address
from peerlearn.network.peers.timeouts import Timeouts
from peerlearn.preparing.table_preparer import TablePreparer
from peerlearn.sites.training import read_model
from peerlearn.toml_reader import NUMBER

TABLES = ("network", "neighbors", "certificates", "data", "columns", "model", "patience")
KEYS = ("run", "name", "address", "output", *TABLES)
SECRETS = ("secrecy", "colluders")
Secrets = dict[str, Any]  # secrecy and colluders; empty: nothing is secret


@dataclass(frozen=True)
class Site:
    """Description of one agent, as read from its file."""

    run: str
    name: str
    address: str
    output: Path
    agents: tuple[str, ...]
    graph: nx.Graph
    weights: str
    addresses: dict[int, str]  # of neighbors, by number
    certificates: tuple[Path, Path, Path] | None  # authority, certificate, key
    data: Path
    target: str
    scale: bool
    model: dict[str, Any]  # kind, parameters and solver as in the file
    patience: Timeouts
    columns: dict[str, Any] | None  # declared kinds of columns; None: tables of numbers
    secrets: Secrets

    @property
    def number(self) -> int:
        """Number of this agent in the graph."""
        return self.agents.index(self.name)


def read_site(path: Path) -> Site:
    """Read and check the description of one agent."""
    top = toml_reader.read(path).only(*KEYS)
    run = top.take("run", str)
    name = top.take("name", str)
    address = top.take("address", str, what='host:port, such as "0.0.0.0:7101"')
    with top.about("address"):
        check_address(address, name)
    output = path_beside(path, top.take("output", str))
    agents, graph, weights = read_network(top.table("network"))
    secrets = read_secrets(top.table("network"), len(agents))
    if name not in agents:
        raise top.wrong(
            "name", f"is {name!r}, which is not one of network.agents: {', '.join(agents)}"
        )
    addresses = _neighbors(top.table("neighbors", needed=False), name, agents, graph)
    certificates = _certificates(top.table("certificates", needed=False), path)
    file = top.table("data").only("file", "target", "scale")
    data = path_beside(path, file.take("file", str))
    target = file.take("target", str, None)
    if target is None and data.suffix.lower() != ".npz":
        raise file.wrong("target", "is missing: name the column to predict")
    scale = file.take("scale", bool, True)
    columns = read_columns(top)
    if columns is not None and not scale:
        raise file.wrong("scale", "is false, but [columns] scales the numbers: remove one of them")
    model = read_model(top.table("model"), **secrets)
    patience = read_patience(top.table("patience", needed=False))
    return Site(
        run,
        name,
        address,
        output,
        agents,
        graph,
        weights,
        addresses,
        certificates,
        data,
        target or "y",
        scale,
        model,
        patience,
        columns,
        secrets,
    )


def path_beside(file: Path, text: str) -> Path:
    """Return the path that a text in a file means, without .. if that is shorter."""
    path = file.parent / Path(text).expanduser()
    if ".." not in path.parts:
        return path
    full = path.parent.resolve() / path.name if path.name != ".." else path.resolve()
    here = Path.cwd()
    return full.relative_to(here) if full.is_relative_to(here) else full


def read_network(table: toml_reader.TomlTable) -> tuple[tuple[str, ...], nx.Graph, str]:
    """Read names, graph and weights, which every agent must know of the network."""
    table.only("agents", "links", "weights", *SECRETS)
    agents = table.take("agents", list, what='a list of names, such as ["north", "south"]')
    links = table.take("links", list, what='a list of pairs, such as [["north", "south"]]')
    weights = table.take("weights", str, "metropolis")
    if (
        not agents
        or not all(isinstance(name, str) for name in agents)
        or len(set(agents)) != len(agents)
    ):
        raise table.wrong("agents", f"is {agents!r}: give a list of different names")
    graph: nx.Graph = nx.empty_graph(len(agents))
    for link in links:
        if not isinstance(link, list) or len(link) != 2 or not all(end in agents for end in link):
            raise table.wrong(
                "links", f"has {link!r}: give pairs of names that stand in {table.prefix}agents"
            )
        graph.add_edge(agents.index(link[0]), agents.index(link[1]))
    try:
        graph = graphs.checked(graph)
    except GraphError as error:
        raise table.wrong(
            "links", f"cannot be used: {error} (agents are numbered as they stand in agents)"
        ) from None
    with table.about("weights"):
        mixing.named(weights, graph)
    return tuple(agents), graph, weights


def read_secrets(table: toml_reader.TomlTable, agents: int) -> Secrets:
    """Read what is kept secret from other agents: arguments of a network."""
    if "secrecy" not in table.values:
        if "colluders" in table.values:
            raise table.wrong("colluders", "is for secrecy = 'sums': give it too, or neither")
        return {}
    secrets: Secrets = {
        "secrecy": table.take("secrecy", str),
        "colluders": table.take("colluders", int, 1),
    }
    with table.about("secrecy"):
        SimulatedNetwork(graphs.complete(agents), **secrets)
    return secrets


def read_columns(top: toml_reader.TomlTable) -> dict[str, Any] | None:
    """Read [columns]: what cannot be guessed of columns. None if there is no such table."""
    if "columns" not in top.values:
        return None
    declared = top.table("columns").rest()
    try:
        TablePreparer(declared).check_parameters()
    except InputError as error:
        raise InputError(f"[columns] in {top.path} cannot be used: {error}") from None
    return declared


def read_patience(table: toml_reader.TomlTable) -> Timeouts:
    """Read [patience]; missing keys have the defaults of `Timeouts`."""
    table.only(*(each.name for each in fields(Timeouts)))
    given = {
        each.name: float(table.take(each.name, NUMBER, each.default)) for each in fields(Timeouts)
    }
    for name, seconds in given.items():
        with table.about(name):
            Timeouts(**{name: seconds})
    return Timeouts(**given)


def _neighbors(
    table: toml_reader.TomlTable, name: str, agents: tuple[str, ...], graph: nx.Graph
) -> dict[int, str]:
    """Read the addresses of the neighbors, by agent number."""
    me = agents.index(name)
    neighbors = {agents[k]: k for k in sorted(graph[me])}
    addresses = {}
    for other, address in table.rest().items():
        if other not in neighbors:
            raise table.wrong(other, f"is not linked to {name}{toml_reader.near(other, neighbors)}")
        with table.about(other):
            addresses[neighbors[other]] = check_address(address, other)
    for other, number in neighbors.items():
        if number > me and number not in addresses:
            raise table.wrong(other, f"is missing: give the address of {other}, which {name} calls")
    return addresses


def _certificates(table: toml_reader.TomlTable, file: Path) -> tuple[Path, Path, Path] | None:
    if not table.values:
        return None
    table.only("authority", "certificate", "key")
    authority, certificate, key = (
        path_beside(file, table.take(which, str)) for which in ("authority", "certificate", "key")
    )
    return authority, certificate, key
