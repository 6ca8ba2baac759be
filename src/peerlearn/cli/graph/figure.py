"""The figure of a graph: who listens to whom and how much, and how fast agents come to agree."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from peerlearn import graphs
from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.lab.figures.graph_places import HIGH, PATHS_UP_TO, WIDE, diameter, places
from peerlearn.lab.figures.style import (
    BLUE,
    GREEN,
    INK,
    NUMBERED_UP_TO,
    ORANGE,
    VERMILION,
    Rows,
    column,
    readable_on,
    save_figure,
)
from peerlearn.system.files import read_table
from peerlearn.system.number_words import short

COLOURS = {"max-degree": ORANGE, "metropolis": BLUE, "laplacian": GREEN, "fastest": INK}
NOTHING = (
    1e-6  # of the largest weight: what the solver of the fastest weights leaves where zero is meant
)
LINK = "#7d7d7d"
FEW = 20  # rounds that are told apart on a linear axis
ROOMY = 12  # points that a circle needs for a number
LONG = 14  # letters of a name; more run into each other


@dataclass(frozen=True)
class _Files:
    """The files of a folder that `peerlearn graph` wrote."""

    summary: dict[str, Any]
    graph: nx.Graph
    weightings: Rows
    rounds: Rows

    @classmethod
    def of(cls, folder: Path) -> _Files:
        numbers = ("contraction", "plain_rounds", "chebyshev_rounds")
        try:
            return cls(
                json.loads((folder / "summary.json").read_text(encoding="utf-8")),
                graphs.from_file(folder / "graph.graphml"),
                read_table(folder / "weightings.csv", ("weights",), numbers),
                read_table(
                    folder / "disagreement.csv", ("weights", "method"), ("round", "disagreement")
                ),
            )
        except (OSError, ValueError) as error:
            raise InputError(
                f"{folder} does not hold the files of a graph ({error}): "
                f"make them with peerlearn graph --output {folder}"
            ) from error


def draw_graph(folder: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Draw graph.png and graph.svg from the other files of the folder."""
    files = _Files.of(Path(folder))
    return save_figure(lambda: _graph_figure(files), Path(folder), "graph")


def _graph_figure(files: _Files) -> Figure:
    figure = Figure(figsize=(11.5, 5.6), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    figure.suptitle(_headline(files), fontsize=13, weight="bold")
    left, right = figure.subplots(1, 2, width_ratios=[1.4, 1])
    colours = _draw_agents(left, files.graph, places(files.graph))
    bar = figure.colorbar(
        colours, ax=left, aspect=25, shrink=0.8, pad=0.01, label="weight an agent gives to itself"
    )
    bar.ax.yaxis.set_major_locator(MaxNLocator(6))
    left.set_title(f"Who listens to whom: {files.summary['weights']} weights")
    _draw_rounds(right, files)
    return figure


def _headline(files: _Files) -> str:
    drawn = next(row for row in files.weightings if row["weights"] == files.summary["weights"])
    plain, chebyshev = (drawn[key] for key in ("plain_rounds", "chebyshev_rounds"))
    return (
        f"Rounds until {len(files.graph):,} agents agree to {short(files.summary['accuracy'])}: "
        f"{plain:,.0f} plain, "
        f"{chebyshev:,.0f} by Chebyshev, {files.summary['tree_rounds']:,} over a tree"
    )


def _draw_agents(axes: Axes, graph: nx.Graph, places: Array) -> ScalarMappable:
    """Draw links as wide as their weight, and agents in the colour of their own weight."""
    own = np.array([graph.nodes[agent]["self_weight"] for agent in range(len(graph))])
    colours = ScalarMappable(Normalize(min(0.0, own.min()), max(own.max(), 1e-3)), "viridis_r")
    _draw_links(axes, graph, places)
    size = diameter(places)
    fill = colours.to_rgba(own)
    axes.scatter(
        places[:, 0],
        places[:, 1],
        s=size**2,
        c=fill,
        edgecolors=INK,
        linewidths=min(0.8, size / 10),
        zorder=2,
        clip_on=False,
    )
    if len(graph) <= NUMBERED_UP_TO:
        write_names(
            axes,
            [str(graph.nodes[agent].get("name", agent)) for agent in range(len(graph))],
            places,
            fill,
            size,
        )
    axes.set(xlim=(-0.54 * WIDE, 0.54 * WIDE), ylim=(-0.54 * HIGH, 0.54 * HIGH), aspect="equal")
    axes.set_axis_off()
    return colours


def _draw_links(axes: Axes, graph: nx.Graph, places: Array) -> None:
    ends = np.array(graph.edges)
    weights = np.array([weight for _, _, weight in graph.edges(data="weight")])
    widest = min(4.0, 60 / np.sqrt(len(weights)))
    faint = min(1.0, 25 / np.sqrt(len(weights)))
    widths = widest * np.maximum(abs(weights) / abs(weights).max(), 0.15)
    above = weights > -NOTHING * weights.max()
    least = np.where(above, weights, np.inf).argmin()
    most = weights.argmax()
    lines = LineCollection(places[ends[above]], linewidths=widths[above], colors=LINK, alpha=faint)
    lines.set(in_layout=False, rasterized=len(weights) > PATHS_UP_TO)
    axes.add_collection(lines)
    shown = [most] if weights[least] > 0.98 * weights[most] else [least, most]
    handles = [
        Line2D([], [], color=LINK, linewidth=max(0.8, widths[k]), label=f"weight {weights[k]:.2g}")
        for k in shown
    ]
    if not above.all():
        look: dict[str, Any] = {
            "linestyle": "--",
            "linewidth": max(1.3, 0.4 * widest),
            "color": VERMILION,
        }
        axes.add_collection(LineCollection(places[ends[~above]], **look))
        handles.append(
            Line2D([], [], **look, label=f"{(~above).sum()} negative, down to {weights.min():.2g}")
        )
    axes.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False
    )


def write_names(axes: Axes, names: list[str], places: Array, fill: Array, size: float) -> None:
    """Write names into the circles, or below them where circles are small or names long."""
    short = max(map(len, names)) <= 3
    inside = short and size >= ROOMY
    letters = 6.5 if short else 8
    if inside:
        letters = min(9.0, 0.6 * size)
    for name, place, colour in zip(names, places, fill, strict=True):
        axes.annotate(
            name if len(name) <= LONG else f"{name[: LONG - 1]}…",
            (place[0], place[1]),
            (0, 0 if inside else -size / 2 - 1),
            textcoords="offset points",
            color=readable_on(colour) if inside else INK,
            size=letters,
            ha="center",
            va="center_baseline" if inside else "top",
            path_effects=[] if inside else [withStroke(linewidth=2.5, foreground="white")],
            zorder=3,
        )


def _draw_rounds(axes: Axes, files: _Files) -> None:
    """Draw the disagreement left after each round, plain and accelerated, by weighting."""
    accuracy = files.summary["accuracy"]
    tree = files.summary["tree_rounds"]
    most = max(tree, *column(files.weightings, "plain_rounds"))
    first = 0 if most <= FEW else 1  # where a logarithmic axis begins
    legend = []
    for place, row in enumerate(files.weightings):
        name = row["weights"]
        look: dict[str, Any] = {
            "color": COLOURS[name],
            "linewidth": 4.8 - 1.2 * place,
        }  # equal ones are all seen
        for method, line in (("plain", "-"), ("chebyshev", (0, (2, 1)))):
            own = [
                each for each in files.rounds if (each["weights"], each["method"]) == (name, method)
            ]
            n = column(own, "round")[first:]
            left = np.maximum(column(own, "disagreement")[first:], accuracy / 10)
            axes.plot(n, left, linestyle=line, **look)
        rounds = f"{row['plain_rounds']:,.0f}, {row['chebyshev_rounds']:,.0f}"
        legend.append(Line2D([], [], **look, label=f"{name}: {rounds}"))
    legend += [
        Line2D([], [], color="none", label=f"{name}: not computed")
        for name in files.summary["skipped"]
    ]
    axes.axvline(tree, color=LINK, linestyle=":", linewidth=1.6, zorder=0)
    axes.set(
        yscale="log",
        ylim=(accuracy, 1.5),
        xlabel="rounds",
        ylabel="disagreement, relative to a random start",
    )
    axes.set(xscale="log" if first else "linear", xlim=(first, 1.3 * most))
    axes.xaxis.set(
        major_locator=LogLocator() if first else MaxNLocator(integer=True),
        minor_formatter=NullFormatter(),
    )
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    at_most = (
        "Rounds for any start by plain averaging (solid)\n"
        f"and by Chebyshev (dashed); a tree (dotted): {tree}"
    )
    axes.legend(
        handles=legend,
        title=at_most,
        loc="upper center",
        bbox_to_anchor=(0.45, -0.13),
        ncols=2,
        frameon=False,
    )
    axes.set_title("How fast agents agree")
