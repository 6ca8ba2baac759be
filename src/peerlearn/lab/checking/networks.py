"""Checks of networks: each is drawn once."""

from __future__ import annotations

import math
from importlib.util import find_spec
from inspect import signature
from typing import get_args

from peerlearn import graphs
from peerlearn import weights as mixing
from peerlearn.arrays import is_real, is_whole
from peerlearn.errors import MissingExtra
from peerlearn.lab.description.comparison import Comparison, Net, Where
from peerlearn.lab.description.trial import Trial
from peerlearn.lab.training.networks import graph_of
from peerlearn.network import SimulatedNetwork
from peerlearn.toml_reader import TomlTable, near


def check_networks(comparison: Comparison, told: str) -> list[SimulatedNetwork]:
    """Return all networks as the first repetition draws them, with weights that take no time."""
    _check_needed(comparison, TomlTable({}, told))
    return [
        _draw_network(comparison, net, TomlTable({}, told, f"networks[{net.name!r}]."))
        for net in comparison.networks
    ]


def _check_needed(comparison: Comparison, top: TomlTable) -> None:
    for model in comparison.models:
        known = get_args(Where)
        if model.where not in known:
            wrong = f"is {model.where!r}, which is not known{near(str(model.where), known)}"
            raise top.wrong(f"models[{model.name!r}].where", wrong)
        if model.where != "centralised" and not comparison.networks:
            raise top.wrong(
                "networks",
                f"is missing, but models[{model.name!r}] is trained by agents: give [[networks]], "
                f"or to that model "
                "where = 'centralised'",
            )


def _draw_network(comparison: Comparison, net: Net, table: TomlTable) -> SimulatedNetwork:
    if not isinstance(net.graph, str):
        raise table.wrong(
            "graph", f"is {net.graph!s:.80}: a graph of your own is given as Net(name, fixed=graph)"
        )
    if not isinstance(net.weights, str):
        raise table.wrong(
            "weights", f"is {net.weights!r:.80}: give one of {', '.join(mixing.NAMES)}"
        )
    if net.weights.lower().replace("_", "-") not in mixing.NAMES:
        raise table.wrong(
            "weights", f"is {net.weights!r}, which is not known{near(net.weights, mixing.NAMES)}"
        )
    if net.weights == "fastest" and find_spec("cvxpy") is None:
        raise MissingExtra(
            f"networks[{net.name!r}].weights = 'fastest' in {table.path}", "cvxpy", "sdp"
        )
    if net.fixed is None:
        _check_parameters(net, table)
    if net.concentration is not None:
        _check_concentration(comparison, net.concentration, table)
    if net.colluders is not None and net.secrecy is None:
        raise table.wrong("colluders", "is for secrecy = 'sums': give it too, or neither")
    with table.about("graph"):
        trial = Trial(comparison, comparison.data[0], comparison.models[0], net, 0, 0)
        graph = graphs.checked(graph_of(net, trial.seed("graph")))
    with table.about("secrecy"):
        colluders = 1 if net.colluders is None else net.colluders
        return SimulatedNetwork(graph, secrecy=net.secrecy, colluders=colluders)


def _check_concentration(comparison: Comparison, given: float, table: TomlTable) -> None:
    if not is_real(given) or not 0 < given < math.inf:
        raise table.wrong("concentration", f"is {given!r:.80}: give a number above 0, such as 0.5")
    if getattr(comparison.protocol, "deal", None) != "dirichlet":
        raise table.wrong(
            "concentration",
            "is for rows that are dealt by class: give [protocol] deal = 'dirichlet', or leave it "
            "out",
        )


def _check_parameters(net: Net, table: TomlTable) -> None:
    if net.graph not in graphs.GENERATORS:
        raise table.wrong(
            "graph", f"is {net.graph!r}, which is not known{near(net.graph, graphs.GENERATORS)}"
        )
    takes = signature(graphs.GENERATORS[net.graph]).parameters
    allowed = [name for name in takes if name != "n"]
    for key in net.parameters:
        if key not in allowed:
            others = near(
                key, {*allowed, "agents", "concentration", "graph", "name", "secrecy", "weights"}
            )
            raise table.wrong(key, f"is no parameter of {net.graph}{others}")
    seed = net.parameters.get("seed", 0)
    if not is_whole(seed) or seed < 0:
        raise table.wrong("seed", f"is {seed!r}: give a whole number of 0 or more, or leave it out")
    for name in allowed:
        if takes[name].default is takes[name].empty and name not in net.parameters:
            raise table.wrong(name, f"is missing: {net.graph} needs it, so give it beside graph")
    if "n" not in takes:
        for side in ("rows", "columns"):
            value = net.parameters[side]
            if not is_whole(value) or value < 1:
                raise table.wrong(side, f"is {value!r}: give a whole number of 1 or more")
        if net.agents != net.parameters["rows"] * net.parameters["columns"]:
            raise table.wrong(
                "agents", "does not go with a grid, which has rows times columns: leave it out"
            )
    elif not net.agents:
        raise table.wrong(
            "agents", "is missing or 0: give how many there are, or a list to sweep over"
        )
    if not is_whole(net.agents) or net.agents < 1:
        raise table.wrong("agents", f"is {net.agents!r}: give a whole number of 1 or more")
