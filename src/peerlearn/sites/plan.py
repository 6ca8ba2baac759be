"""A whole network on this machine, from one file: a folder per agent, each with the site's file that a real site has.

run = "digits"
output = "peerlearn-up"                 folder for everything

[network]
agents = 4                              how many, or a list of names
graph = "ring"                          a generator of peerlearn.graphs and, beside it, its parameters,
seed = 0                                such as graph = "erdos_renyi", p = 0.5; or links as in a site's file
weights = "metropolis"

[data]
name = "digits"                         a data set by name (peerlearn data), or a file and its target column
test_fraction = 0.25                    rows that nobody trains on
split = "stratified"                    how the others are dealt: even, stratified or dirichlet
seed = 0

[model] and [patience] as in a site's file

OUTPUT/certificates/  OUTPUT/test.npz  OUTPUT/NAME/site.toml  OUTPUT/NAME/share.npz
"""

from __future__ import annotations

import inspect
import io
import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from sklearn.model_selection import train_test_split

from peerlearn import data, graphs, partition
from peerlearn.data import tables
from peerlearn.errors import InputError
from peerlearn.experiments.files import result_folder, write
from peerlearn.network.peers import certificates
from peerlearn.sites import keys
from peerlearn.sites.description import NUMBER, read_network, read_patience
from peerlearn.sites.training import read_model

SPLITS = {"even": partition.even, "stratified": partition.stratified, "dirichlet": partition.dirichlet}


@dataclass(frozen=True)
class Plan:
    """Who takes part, and where everything is."""

    output: Path
    agents: tuple[str, ...]
    test: Path

    def folder(self, agent: str) -> Path:
        return self.output / agent


def lay_out(file: Path) -> Plan:
    """Read a network's file and make the folders of its agents; what is there of the same run stays."""
    top = keys.read(file)
    run, folder = top.take("run", str), top.take("output", str)
    agents, graph, weights = _network(top.table("network"))
    columns, target, shares, (X_test, y_test) = _data(top.table("data"), file.parent, len(agents))
    model, patience = read_model(top.table("model")), read_patience(top.table("patience", needed=False))
    top.done()
    output = result_folder(file.parent / Path(folder).expanduser())
    plan = Plan(output, agents, output / "test.npz")
    missing = [name for name in agents if not (output / "certificates" / f"{name}.pem").exists()]
    if missing:
        certificates.make(output / "certificates", missing)
    write(plan.test, _npz(X=X_test, y=y_test, columns=np.array(columns)))
    ports = _free_ports(len(agents))
    for number, (name, (X, y)) in enumerate(zip(agents, shares, strict=True)):
        share = result_folder(plan.folder(name))
        write(share / "share.npz", _npz(X=X, y=y, columns=np.array(columns)))
        site = {
            "run": run,
            "name": name,
            "address": f"127.0.0.1:{ports[number]}",
            "output": ".",
            "network": {
                "agents": list(agents),
                "links": [[agents[a], agents[b]] for a, b in graph.edges],
                "weights": weights,
            },
            "neighbors": {agents[k]: f"127.0.0.1:{ports[k]}" for k in sorted(graph[number]) if k > number},
            "certificates": {
                "authority": "../certificates/authority.pem",
                "certificate": f"../certificates/{name}.pem",
                "key": f"../certificates/{name}.key",
            },
            "data": {"file": "share.npz", "target": target},
            "model": model,
            "patience": vars(patience),
        }
        write(share / "site.toml", toml(site))
    return plan


def toml(values: dict[str, Any], name: str = "") -> str:
    """Plain values as TOML: those of a table first, then the tables within."""
    simple = {key: value for key, value in values.items() if not isinstance(value, dict)}
    lines = [f"[{name}]"] if name and simple else []
    lines += [f"{key} = {json.dumps(value)}" for key, value in simple.items()]
    text = "\n".join(lines) + "\n" if lines else ""
    tables = [(key, value) for key, value in values.items() if isinstance(value, dict) and value]
    return text + "".join("\n" + toml(value, f"{name}.{key}" if name else key) for key, value in tables)


def _network(table: keys.Table) -> tuple[tuple[str, ...], nx.Graph, str]:
    agents = table.take("agents", (int, list), what="how many, or a list of names")
    names = [f"agent-{k}" for k in range(agents)] if isinstance(agents, int) else agents
    if "graph" not in table.values:
        return read_network(keys.Table({**table.values, "agents": names}, table.path, "network."))
    weights, kind = table.take("weights", str, "metropolis"), table.take("graph", str)
    known = {name: each for name, each in vars(graphs).items() if _generates(each)}
    if kind not in known:
        raise table.wrong("graph", f"is {kind!r}: there are {', '.join(sorted(known))}")
    options = table.rest()
    try:
        graph = known[kind](len(names), **options)
    except TypeError:
        wanted = ", ".join(list(inspect.signature(known[kind]).parameters)[1:]) or "nothing"
        given = ", ".join(options) or "nothing"
        raise table.wrong("graph", f"is {kind}, which takes {wanted} besides, not {given}") from None
    links = [[names[a], names[b]] for a, b in graph.edges]
    return read_network(keys.Table({"agents": names, "links": links, "weights": weights}, table.path, "network."))


def _generates(each: Any) -> bool:
    """Whether this is a function of `graphs` that makes a graph from a number of agents."""
    return (
        inspect.isfunction(each) and each.__name__[0] != "_" and next(iter(inspect.signature(each).parameters)) == "n"
    )


def _data(
    table: keys.Table, here: Path, agents: int
) -> tuple[Sequence[str], str, list[partition.Share], tuple[Any, Any]]:
    """Columns, target, one share per agent, and the rows that nobody trains on."""
    fraction, seed = table.take("test_fraction", NUMBER, 0.25), table.take("seed", int, 0)
    split = table.take("split", str, "even")
    if "name" in table.values:
        loaded = data.load(table.take("name", str))
        X, y, columns, target = loaded.X, loaded.y, [f"x{k}" for k in range(loaded.X.shape[1])], "y"
        classify = loaded.task == "classification"
    else:
        path, target = here / table.take("file", str, what="name or file"), table.take("target", str)
        read = tables.read(path, target)
        assert read.y is not None
        X, y, columns, classify = read.X, read.y, list(read.columns), read.y.dtype.kind not in "f"
    table.done()
    if not 0 < fraction < 1:
        raise table.wrong("test_fraction", f"is {fraction}: give a number between 0 and 1")
    if split not in SPLITS:
        raise table.wrong("split", f"is {split!r}: there are {', '.join(SPLITS)}")
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=fraction, stratify=y if classify else None, random_state=seed
    )
    return columns, target, SPLITS[split](X, y, agents, seed=seed), (X_test, y_test)


def _npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    if len(set(ports)) < count:
        raise InputError(f"this machine has no {count} free ports: close something, or take fewer agents")
    return ports
