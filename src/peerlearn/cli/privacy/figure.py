"""The figure of an audit: the graph, in colours that show to how many an agent is exposed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from peerlearn.cli.graph.figure import write_names
from peerlearn.lab.figures.graph_places import HIGH, WIDE, diameter, places
from peerlearn.lab.figures.style import (
    FAINT,
    INK,
    NUMBERED_UP_TO,
    save_figure,
)

COLOURS = ListedColormap(colormaps["YlOrRd"](np.linspace(0.3, 1, 256)))


def draw_audit(folder: Path) -> tuple[Path, Path]:
    """Draw audit.png and audit.svg from the audit.json of the folder."""
    found = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    return save_figure(lambda: _figure(found), folder, "audit")


def _figure(found: dict[str, Any]) -> Figure:
    agents = found["exposures"]
    graph = nx.empty_graph(len(agents))
    graph.add_edges_from(found["links"])
    at = places(graph)
    figure = Figure(figsize=(7.5, 6), layout="constrained")
    axes = figure.subplots()
    axes.set_title(_headline(found))
    by_tree = found["method"] == "tree" and not found["masks"]
    tree = {frozenset((k, parent)) for k, parent in enumerate(found["parents"]) if k != parent}
    used = np.array([by_tree and frozenset(link) in tree for link in graph.edges], dtype=bool)
    ends = np.array(graph.edges)
    faint: dict[str, Any] = {
        "colors": FAINT,
        "linewidths": 0.8,
        "linestyles": ":" if by_tree else "-",
    }
    axes.add_collection(LineCollection(at[ends[~used]], **faint))
    axes.add_collection(LineCollection(at[ends[used]], colors=INK, linewidths=1.6))
    counts = np.array([each["coalitions"] for each in agents])
    all_others = agents[0]["of"]
    colours = ScalarMappable(Normalize(min(1, all_others - 1), all_others), COLOURS)
    size = diameter(at)
    fill = colours.to_rgba(counts)
    fill[counts == 0] = 1.0  # white
    circle: dict[str, Any] = {"marker": "o", "markersize": 9, "markeredgecolor": INK}
    handles = [Line2D([], [], linestyle="", color="white", label="exposed to nobody", **circle)]
    if by_tree:
        handles += [
            Line2D([], [], color=INK, linewidth=1.6, label="link of the tree"),
            Line2D([], [], color=FAINT, linewidth=0.8, linestyle=":", label="other link"),
        ]
    axes.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=3, frameon=False
    )
    look: dict[str, Any] = {"s": size**2, "c": fill, "edgecolors": INK, "linewidths": 0.8}
    axes.scatter(at[:, 0], at[:, 1], zorder=2, clip_on=False, **look)
    if len(agents) <= NUMBERED_UP_TO:
        write_names(axes, [each["name"] for each in agents], at, fill, size)
    axes.set(xlim=(-0.54 * WIDE, 0.54 * WIDE), ylim=(-0.54 * HIGH, 0.54 * HIGH), aspect="equal")
    axes.set_axis_off()
    t = found["colluders"]
    what = "agents" if t == 1 else f"coalitions of {t}"
    bar = figure.colorbar(
        colours, ax=axes, shrink=0.7, label=f"{what} that can compute this agent's value"
    )
    bar.ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    return figure


def _headline(found: dict[str, Any]) -> str:
    """Return the first sentence of the summary, on two lines."""
    way, rest = found["summary"].split(". ")[0].rstrip(".").split(", ", 1)
    return f"{way},\n{rest}"
