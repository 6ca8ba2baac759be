"""Pictures of a comparison's networks as they were in the first repetition."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from peerlearn import graphs
from peerlearn.lab.analysis.labels import setting_label, value_label
from peerlearn.lab.figures.graph_places import HIGH, PATHS_UP_TO, WIDE, diameter, places
from peerlearn.lab.figures.looks import wrap
from peerlearn.lab.figures.style import BLUE, FAINT, save_figure

if TYPE_CHECKING:
    from peerlearn.lab.results.results import Results

ACROSS = 4  # pictures beside each other
MOST = 12  # pictures in all
LARGEST = 500  # agents; more are a blot
Drawn = tuple[Any, nx.Graph]  # an entry of comparison.json, and its graph


def draw_networks(results: Results, folder: Path) -> tuple[tuple[Path, Path] | None, str]:
    """Draw networks.png and networks.svg, and return them with sentences on what is missing."""
    known, same = distinct(results)
    drawn = [each for each in _some(known) if len(each[1]) <= LARGEST]
    told = [
        f"They are the same for these values of {key}: {', '.join(values)}."
        for key, values in same.items()
    ]
    left = len(known) - len(drawn)
    if left:
        told.append(f"{left} more of the networks' graphs are in the folder graphs.")
    if not drawn:
        return None, " ".join(told)
    return save_figure(lambda: _figure(drawn), folder, "networks"), " ".join(told)


def distinct(results: Results) -> tuple[list[Drawn], dict[str, list[str]]]:
    """Return each graph of a network once, with its own swept values, and the shared values."""
    found: dict[Any, list[Any]] = {}
    for entry in results.facts.get("graphs", ()):
        if (results.folder / entry["file"]).exists():
            graph = graphs.from_file(results.folder / entry["file"])
            links = frozenset(map(frozenset, graph.edges))
            found.setdefault((entry["network"], len(graph), links), []).append((entry, graph))
    known = []
    same: dict[str, dict[str, None]] = {}
    for group in found.values():
        (first, graph), *others = group
        own = {}
        for key, value in first["swept"].items():
            if all(each["swept"].get(key) == value for each, _ in others):
                own[key] = value
            else:
                labels = [value_label(each["swept"].get(key)) for each, _ in group]
                same.setdefault(key, {}).update(dict.fromkeys(labels))
        known.append(({**first, "swept": own}, graph))
    return known, {key: list(values) for key, values in same.items()}


def _some(known: list[Drawn]) -> list[Drawn]:
    """Return all, or MOST of them, evenly from the first to the last."""
    if len(known) <= MOST:
        return known
    return [known[round(k * (len(known) - 1) / (MOST - 1))] for k in range(MOST)]


def _figure(drawn: list[Drawn]) -> Figure:
    across = min(len(drawn), ACROSS)
    down = -(-len(drawn) // across)
    side = 2.5
    figure = Figure(
        figsize=(across * side, down * (side * HIGH / WIDE + 0.5)), layout=ConstrainedLayoutEngine()
    )
    every = list(figure.subplots(down, across, squeeze=False).flat)
    for axes, (entry, graph) in zip(every, drawn, strict=False):
        _draw(axes, graph, 72 * side / (1.2 * WIDE))
        swept = [setting_label(key, value) for key, value in entry["swept"].items()]
        size = f"{len(graph)} agents, {graph.number_of_edges()} links"
        head = f"{wrap(', '.join([entry['network'], *swept]), 30)}\n{size}"
        axes.set_title(head, fontsize=8.5, loc="center", weight="normal")
    for spare in every[len(drawn) :]:
        spare.remove()
    return figure


def _draw(axes: Axes, graph: nx.Graph, points: float) -> None:
    """Draw a graph. points: of the page, in one of the places' units."""
    at = places(graph) if len(graph) > 1 else np.zeros((1, 2))
    links = list(graph.edges)
    if links:
        width = min(1.1, max(0.15, 60 / len(links)))
        lines = LineCollection(
            [at[list(link)] for link in links], colors=FAINT, linewidths=width, zorder=1
        )
        lines.set_rasterized(len(links) > PATHS_UP_TO)
        axes.add_collection(lines)
    size = max(2.0, points * min(diameter(at), 30.0)) if len(graph) > 1 else 9.0
    axes.scatter(
        at[:, 0],
        at[:, 1],
        s=size**2,
        c=BLUE,
        edgecolors="white",
        linewidths=min(0.8, size / 8),
        zorder=2,
    )
    axes.set(xlim=(-0.56 * WIDE, 0.56 * WIDE), ylim=(-0.56 * HIGH, 0.56 * HIGH), aspect="equal")
    axes.set_axis_off()
