"""What is audited: a network and a model, from a file or from options of the command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx

from peerlearn import toml_reader
from peerlearn.errors import InputError
from peerlearn.models.lapkrr import LapKRRClassifier
from peerlearn.models.rvfl import RVFLClassifier
from peerlearn.models.s3vm import S3VMClassifier
from peerlearn.models.unlabelled import is_unlabelled
from peerlearn.network.simulated import SimulatedNetwork
from peerlearn.privacy import Holdings
from peerlearn.sites.training import make_model, may_lack_labels

# Models for the names of their solvers, and of their ways of sharing distances.
KINDS: tuple[tuple[Any, str], ...] = (
    (RVFLClassifier, "solver"),
    (S3VMClassifier, "solver"),
    (LapKRRClassifier, "distances"),
)


@dataclass(frozen=True)
class Subject:
    """A model or search with its network, the agents' names, and what is known of their data."""

    model: Any
    names: tuple[str, ...]
    holdings: Holdings


def from_graph(graph: nx.Graph, weights: str, solver: str) -> Subject:
    """Return the subject of a graph and the name of a solver or way of sharing distances."""
    network = SimulatedNetwork(graph, weights)
    names = tuple(str(graph.nodes[k].get("name", k)) for k in range(len(graph)))
    for kind, part in KINDS:
        if solver.lower() in kind.parts[part].kinds():
            model = kind(**{part: solver.lower()}, network=network, random_state=0)
            return Subject(model, names, Holdings())
    raise InputError(
        f"solver {solver!r} is not known: give the name of a solver, such as gram, cg, admm, "
        "consensus, newton, lbfgs, next or tracking, or landmarks"
    )


def from_file(file: Path, solver: str | None) -> Subject:
    """Return the subject of a site's or a network's file; solver: one in place of the file's."""
    # Both readers need the packages of the extra peers.
    from peerlearn.sites.agent import read_rows
    from peerlearn.sites.description import read_site
    from peerlearn.sites.plan import read_plan

    if "name" in toml_reader.read(file).values:
        site = read_site(file)
        shares = {}
        scaled = site.scale
        if site.data.exists():
            table = read_rows(site)
            shares = {site.name: (table.X, table.y)}
        agents, graph, weights, settings = site.agents, site.graph, site.weights, site.model
    else:
        plan = read_plan(file)
        shares = dict(zip(plan.agents, plan.rows.shares, strict=True))
        scaled = True
        agents, graph, weights, settings = plan.agents, plan.graph, plan.weights, plan.model
    if solver is not None:
        settings = {**settings, "solver": solver}
    model = make_model(settings, SimulatedNetwork(graph, weights))
    return Subject(model, agents, _count(shares, may_lack_labels(settings), scaled))


def _count(shares: dict[str, Any], partly_labelled: bool, scaled: bool) -> Holdings:
    rows = {name: len(y) for name, (_, y) in shares.items()}
    labelled = rows
    if partly_labelled:
        labelled = {name: int((~is_unlabelled(y)).sum()) for name, (_, y) in shares.items()}
    inputs = {X.shape[1] for X, _ in shares.values()}
    return Holdings(rows, labelled, inputs.pop() if inputs else None, scaled)
