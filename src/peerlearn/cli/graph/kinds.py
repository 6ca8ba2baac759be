"""Graphs by the name of their kind and the options of a command, or by the path of a file."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import networkx as nx

from peerlearn import graphs
from peerlearn.errors import GraphError, InputError

# More agents or links cannot be told apart in a picture, and take minutes to draw.
MOST = 1000
MOST_LINKS = 50_000
AGENTS = 20  # if nobody says how many
SHOWN = {
    "n": AGENTS,
    "p": 0.2,
    "k": 2,
    "rewire": 0.1,
    "m": 2,
    "radius": 0.4,
    "rows": 4,
    "columns": 5,
}  # in sentences
KINDS = {name: inspect.signature(each).parameters for name, each in graphs.GENERATORS.items()}


def make_graph(kind: str, options: Mapping[str, Any]) -> nx.Graph:
    """Return the graph of this kind with options of a command as parameters, or that of a file.

    >>> print(make_graph("ring", {"n": 12}))
    Graph with 12 nodes and 12 edges
    """
    name = kind.lower().replace("-", "_")
    path = Path(kind).expanduser()
    if name in KINDS:
        return _not_too_many(_generate(name, options))
    if path.suffix or len(path.parts) > 1 or path.exists():
        return _not_too_many(_read(path, options))
    raise GraphError(
        f"there is no graph called {kind!r}: there are {', '.join(KINDS)}{_nearest(name)} "
        "A file is named with its ending, as in mine.graphml"
    )


def _generate(kind: str, options: Mapping[str, Any]) -> nx.Graph:
    takes = KINDS[kind]
    if stray := [name for name in options if name not in takes]:
        raise InputError(
            f"{kind} takes {_options(takes)}, and not {_options(stray)}: leave that out"
        )
    given = {"n": AGENTS, **options} if "n" in takes else options
    if missing := [
        name for name, each in takes.items() if each.default is each.empty and name not in given
    ]:
        needed = {**options, **{name: SHOWN[name] for name in missing}}
        example = " ".join(f"{_option(name)} {value}" for name, value in needed.items())
        raise InputError(
            f"{kind} needs {_options(missing)} as well: for example, peerlearn graph {kind} "
            f"{example}"
        )
    if (seed := given.get("seed", 0)) < 0:
        raise InputError(f"seed {seed} cannot be used: choose a whole number of at least 0")
    if (
        agents := math.prod(max(0, given.get(name, 1)) for name in ("n", "rows", "columns"))
    ) > MOST:
        raise _too_many(f"{agents:,} agents")
    return graphs.GENERATORS[kind](**given)


def _read(path: Path, options: Mapping[str, Any]) -> nx.Graph:
    if options:
        raise InputError(
            f"{path} is a file and says itself what the graph is: leave out {_options(options)}"
        )
    return graphs.from_file(path)


def _not_too_many(graph: nx.Graph) -> nx.Graph:
    if len(graph) > MOST:
        raise _too_many(f"{len(graph):,} agents")
    if graph.number_of_edges() > MOST_LINKS:
        raise _too_many(f"{graph.number_of_edges():,} links")
    return graph


def _too_many(what: str) -> GraphError:
    return GraphError(
        f"{what} are more than can be drawn: choose at most {MOST:,} agents and {MOST_LINKS:,} "
        f"links; for more, ask in "
        "Python, peerlearn.weights.rounds_to(peerlearn.weights.metropolis(graph), 1e-6)"
    )


def _nearest(name: str) -> str:
    near = get_close_matches(name, KINDS, 1, 0.5)
    return f"; did you mean {near[0]!r}?" if near else "."


def _option(name: str) -> str:
    return "--agents" if name == "n" else f"--{name}"


def _options(names: Iterable[str]) -> str:
    said = [_option(name) for name in names]
    return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)
