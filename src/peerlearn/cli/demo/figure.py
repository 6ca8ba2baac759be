"""The demo's figures: agents before and after, what an error costs, how fast agents agree."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from peerlearn import graphs
from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.lab.figures.style import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    NUMBERED_UP_TO,
    VERMILION,
    Rows,
    column,
    level,
    readable_on,
    save_figure,
)
from peerlearn.system.files import read_table
from peerlearn.system.number_words import megabytes

AGREED = 1e-6  # disagreement down to which the rounds are drawn
AVERAGES = (("plain", VERMILION, "left"), ("chebyshev", BLUE, "right"), ("tree", GREEN, "right"))


@dataclass(frozen=True)
class _Files:
    """The files of a demo's folder; graph and rounds are drawn for its last data set."""

    graph: nx.Graph
    results: Rows
    agents: Rows
    rounds: Rows

    @property
    def shown(self) -> str:
        return str(self.results[-1]["data"])

    @classmethod
    def of(cls, folder: Path) -> _Files:
        try:
            return cls(
                graphs.from_file(folder / "graph.graphml"),
                read_table(
                    folder / "results.csv", ("data", "method"), ("test_error", "bytes_sent")
                ),
                read_table(
                    folder / "agents.csv",
                    ("data",),
                    ("rows", "row_bytes", "error_alone", "error_together"),
                ),
                read_table(folder / "rounds.csv", ("data", "method"), ("round", "disagreement")),
            )
        except (OSError, ValueError) as error:
            raise InputError(
                f"{folder} does not hold the files of a demo ({error}): make them with peerlearn "
                f"demo --output {folder}"
            ) from error


def draw_demo(folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Draw demo, costs and rounds, each as .png and .svg, from the other files of the folder."""
    place = Path(folder)
    files = _Files.of(place)
    figures = {"demo": _agents_figure, "costs": _costs_figure, "rounds": _rounds_figure}
    return tuple(
        path
        for name, draw in figures.items()
        for path in save_figure(partial(draw, files), place, name)
    )


def _new_figure(width: float, height: float, point: str) -> Figure:
    """Return an empty figure that has the point it makes as its title."""
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    figure.suptitle(point, fontsize=14, weight="bold")
    return figure


def _agents_figure(files: _Files) -> Figure:
    """Draw the graph twice with the same colours: errors of agents alone, and together."""
    rows = _of(files.agents, "data", files.shown)
    alone = 100 * column(rows, "error_alone")
    together = 100 * column(rows, "error_together")
    point = (
        f"{len(files.graph)} agents learn as one: {alone.mean():.1f} % of {files.shown} wrong alone"
    )
    figure = _new_figure(10.5, 4.9, f"{point}, {together.mean():.1f} % together")
    colours = ScalarMappable(Normalize(0, max(alone.max(), together.max())), "viridis_r")
    places = _places(files.graph)
    panels = figure.subplots(1, 2)
    total = round(column(rows, "rows").sum())
    for axes, errors, links in zip(panels, (alone, together), (":", "-"), strict=True):
        _draw_graph(axes, files.graph, places, errors, colours, links)
    panels[0].set_title(f"Alone, on {total / len(rows):.0f} rows each")
    panels[1].set_title(f"Together, as if on {total:,} rows")
    bar = figure.colorbar(
        colours, ax=list(panels), aspect=25, label=f"error of an agent on unseen {files.shown}"
    )
    bar.ax.yaxis.set(
        major_locator=MaxNLocator(6, integer=True), major_formatter=StrMethodFormatter("{x:.0f} %")
    )
    return figure


def _places(graph: nx.Graph) -> Array:
    """Return the places of `level`, stretched to the unit square."""
    at = level(graph)
    at -= at.min(axis=0)
    return np.asarray(at / np.maximum(at.max(axis=0), 1e-6))


def _draw_graph(
    axes: Axes, graph: nx.Graph, places: Array, errors: Array, colours: ScalarMappable, links: str
) -> None:
    width = min(1.2, max(0.2, 100 / graph.number_of_edges()))
    lines = [places[list(link)] for link in graph.edges]
    axes.add_collection(LineCollection(lines, colors=FAINT, linestyles=links, linewidths=width))
    numbered = len(graph) <= NUMBERED_UP_TO
    fill = colours.to_rgba(errors)
    axes.scatter(
        places[:, 0],
        places[:, 1],
        s=330 if numbered else 90,
        c=fill,
        edgecolors=INK,
        linewidths=0.8,
        zorder=2,
    )
    for place, error, colour in zip(places, errors, fill, strict=True):
        if numbered:
            text = f"{error:.0f}"
            axes.text(
                place[0],
                place[1],
                text,
                ha="center",
                va="center",
                color=readable_on(colour),
                zorder=3,
            )
    axes.margins(0.07)
    axes.set_axis_off()


def _rounds_figure(files: _Files) -> Figure:
    """Draw how fast agents agree on the average of what each learned alone."""
    rows = _of(files.rounds, "data", files.shown)
    needed = {
        method: int(column(_of(rows, "method", method), "round")[-1]) for method, _, _ in AVERAGES
    }
    figure = _new_figure(
        7,
        4.6,
        f"Agreeing takes {needed['tree']} rounds by a tree, {needed['plain']} by plain mixing",
    )
    axes = figure.subplots()
    for method, colour, side in AVERAGES:
        own = _of(rows, "method", method)
        n = column(own, "round")[1:]
        left = column(own, "disagreement")[1:]
        axes.plot(
            n,
            left,
            color=colour,
            linewidth=2.2,
            drawstyle="steps-post" if method == "tree" else "default",
        )
        # Labels to the left of a falling curve must clear it at their upper edge.
        beside = n[-1] if side == "left" else n[left <= max(10 * AGREED, left.min())][0]
        label = f"{method.capitalize()}\n{needed[method]} rounds"
        shift = (6 if side == "left" else -6, 3)
        at = (beside, 1.3 * AGREED)
        axes.annotate(
            label, at, shift, textcoords="offset points", color=colour, linespacing=1.1, ha=side
        )
    axes.set(xscale="log", yscale="log", xlim=(1, 2.6 * max(needed.values())), ylim=(AGREED, 2))
    axes.set(
        xlabel="rounds (each agent talks to all its neighbors)",
        ylabel="disagreement, relative to the start",
    )
    axes.xaxis.set(major_locator=LogLocator(subs=(1, 2, 5)), minor_formatter=NullFormatter())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
    return figure


def _costs_figure(files: _Files) -> Figure:
    """Draw what each method sends for its test error, a panel per data set.

    A dashed line shows what sending the rows would take.
    """
    names = list(dict.fromkeys(row["data"] for row in files.results))
    sent = {
        (row["data"], row["method"]): row["bytes_sent"] / 1e6
        for row in files.results
        if row["bytes_sent"]
    }
    of_the_rows = {
        name: column(_of(files.agents, "data", name), "row_bytes").sum() / 1e6 for name in names
    }
    shown = [*sent.values(), *of_the_rows.values()]
    times = min(sent[name, "ADMM"] / sent[name, "auto"] for name in names)
    point = f"auto finds the centralised answer with over {int(times)} times fewer bytes than ADMM"
    figure = _new_figure(10.5, 3.7, point)
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        rows = _of(files.results, "data", name)
        _draw_costs(axes, [row for row in rows if row["bytes_sent"]], of_the_rows[name])
        axes.set(xlim=(min(shown) / 2, max(shown) * 2), xlabel="MB sent by all agents together")
        centralised = _of(rows, "method", "centralised")[0]["test_error"]
        axes.set_title(f"{name}: {100 * centralised:.1f} % wrong with all rows in one place")
    return figure


def _draw_costs(axes: Axes, rows: Rows, of_the_rows: float) -> None:
    """Draw a line per method at the error that its bytes buy; dashed: the bytes of the rows."""
    axes.axvline(of_the_rows, color=FAINT, linestyle="--", linewidth=1.2, zorder=0)
    axes.text(
        of_the_rows,
        len(rows) - 0.5,
        f" the rows themselves: {megabytes(of_the_rows)} MB",
        va="center",
    )
    edge = axes.get_yaxis_transform()
    for place, row in enumerate(rows):
        mb = row["bytes_sent"] / 1e6
        colour = GREEN if row["method"] == "auto" else BLUE
        axes.plot(mb, place, "o", color=colour)
        label = f"{megabytes(mb)} MB\n{100 * row['test_error']:.1f} % wrong"
        axes.text(1.01, place, label, transform=edge, color=colour, va="center", linespacing=1.1)
    axes.set(xscale="log", ylim=(len(rows), -0.6))
    axes.set_yticks(range(len(rows)), [row["method"] for row in rows])


def _of(rows: Rows, key: str, value: str) -> Rows:
    return [row for row in rows if row[key] == value]
