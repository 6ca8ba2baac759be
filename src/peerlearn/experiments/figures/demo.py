"""The demo's figure: each agent before and after, how fast they agree, and what an error costs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from peerlearn import graphs
from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.experiments.figures.style import (
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
    saved,
)
from peerlearn.experiments.files import read_table

AGREED = 1e-6  # disagreement down to which the rounds are drawn


@dataclass(frozen=True)
class _Files:
    """What a demo left in its folder; graph and rounds are drawn for its last data set."""

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
                read_table(folder / "results.csv", ("data", "method"), ("test_error", "bytes_sent")),
                read_table(folder / "agents.csv", ("data",), ("rows", "error_alone", "error_together")),
                read_table(folder / "rounds.csv", ("data", "method"), ("round", "disagreement")),
            )
        except (OSError, ValueError) as error:
            raise InputError(
                f"{folder} does not hold the files of a demo ({error}): make them with peerlearn demo --output {folder}"
            ) from error


def draw_demo(folder: str | os.PathLike[str]) -> tuple[Path, Path]:
    """demo.png and demo.svg from the other files of the folder."""
    files = _Files.of(Path(folder))
    return saved(lambda: _demo_figure(files), Path(folder), "demo")


def _demo_figure(files: _Files) -> Figure:
    figure = Figure(figsize=(10.5, 8.2), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    headline = f"{len(files.graph)} agents learn as one: no server, and no row leaves its agent"
    figure.suptitle(headline, fontsize=14, weight="bold")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.1, 1], hspace=0.04, squeeze=False)[:, 0]
    _draw_agents(top, files)
    names = dict.fromkeys(row["data"] for row in files.results)
    panels = bottom.subplot_mosaic([["rounds", name] for name in names])
    _draw_rounds(panels.pop("rounds"), [row for row in files.rounds if row["data"] == files.shown])
    _draw_costs(panels, files.results)
    return figure


def _draw_agents(figure: SubFigure, files: _Files) -> None:
    """The graph twice, with the same colours: what each agent errs on alone, and after talking to its neighbors."""
    rows = [row for row in files.agents if row["data"] == files.shown]
    alone, together = 100 * column(rows, "error_alone"), 100 * column(rows, "error_together")
    colours = ScalarMappable(Normalize(0, max(alone.max(), together.max())), "viridis_r")
    places, panels, total = _places(files.graph), figure.subplots(1, 2), round(column(rows, "rows").sum())
    for axes, errors, links in zip(panels, (alone, together), (":", "-"), strict=True):
        _draw_graph(axes, files.graph, places, errors, colours, links)
    each = f"Alone, on {total / len(rows):.0f} rows each"
    panels[0].set_title(f"{each}: {alone.mean():.1f} % of {files.shown} wrong")
    panels[1].set_title(f"Together, as if on {total:,} rows: {together.mean():.1f} % wrong")
    bar = figure.colorbar(colours, ax=list(panels), aspect=25, label=f"error of an agent on unseen {files.shown}")
    bar.ax.yaxis.set(major_locator=MaxNLocator(6, integer=True), major_formatter=StrMethodFormatter("{x:.0f} %"))


def _places(graph: nx.Graph) -> Array:
    """As `level`, stretched to the unit square."""
    at = level(graph)
    at -= at.min(axis=0)
    return np.asarray(at / np.maximum(at.max(axis=0), 1e-6))


def _draw_graph(axes: Axes, graph: nx.Graph, places: Array, errors: Array, colours: ScalarMappable, links: str) -> None:
    width = min(1.2, max(0.2, 100 / graph.number_of_edges()))
    lines = [places[list(link)] for link in graph.edges]
    axes.add_collection(LineCollection(lines, colors=FAINT, linestyles=links, linewidths=width))
    numbered, fill = len(graph) <= NUMBERED_UP_TO, colours.to_rgba(errors)
    axes.scatter(
        places[:, 0], places[:, 1], s=330 if numbered else 90, c=fill, edgecolors=INK, linewidths=0.8, zorder=2
    )
    for place, error, colour in zip(places, errors, fill, strict=True):
        if numbered:
            text = f"{error:.0f}"
            axes.text(place[0], place[1], text, ha="center", va="center", color=readable_on(colour), zorder=3)
    axes.margins(0.07)
    axes.set_axis_off()


def _draw_rounds(axes: Axes, rows: Rows) -> None:
    """How fast agents agree on the average of what each learned alone."""
    needed = {}
    for method, colour, side in (("plain", VERMILION, "left"), ("chebyshev", BLUE, "right"), ("tree", GREEN, "right")):
        own = [row for row in rows if row["method"] == method]
        n, left = column(own, "round")[1:], column(own, "disagreement")[1:]
        needed[method] = int(n[-1])
        axes.plot(n, left, color=colour, linewidth=2.2, drawstyle="steps-post" if method == "tree" else "default")
        # Labels to the left of a falling curve must clear it at their upper edge.
        beside = n[-1] if side == "left" else n[left <= max(10 * AGREED, left.min())][0]
        _label(axes, f"{method.capitalize()}\n{needed[method]} rounds", (beside, 1.3 * AGREED), colour, side)
    axes.set(xscale="log", yscale="log", xlim=(1, 2.6 * max(needed.values())), ylim=(AGREED, 2))
    axes.set(xlabel="rounds (each agent talks to all its neighbors)", ylabel="disagreement, relative to the start")
    axes.xaxis.set(major_locator=LogLocator(subs=(1, 2, 5)), minor_formatter=NullFormatter())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
    axes.set_title(f"Agreeing takes {needed['tree']} rounds by a tree, {needed['plain']} by plain mixing")


def _draw_costs(panels: dict[str, Axes], rows: Rows) -> None:
    """What a test error costs: a panel per data set, from those who send almost nothing to those who send most."""
    errors = {(row["data"], row["method"]): 100 * row["test_error"] for row in rows}
    sent = {(row["data"], row["method"]): row["bytes_sent"] / 1e6 for row in rows if row["bytes_sent"]}
    names = list(panels)
    for (name, axes), colour in zip(panels.items(), cycle((VERMILION, BLUE, GREEN)), strict=False):
        paid = sorted((megabytes, method) for (data, method), megabytes in sent.items() if data == name)
        _draw_cost(
            axes, {method: (mb, errors[name, method]) for mb, method in paid}, errors[name, "centralised"], colour
        )
        axes.set(xlim=(min(sent.values()) / 2, max(sent.values()) * 40), ylim=(0, 1.45 * max(errors.values())))
        axes.text(
            0.98, 0.95, name, transform=axes.transAxes, ha="right", va="top", color=colour, weight="bold", size=11
        )
        axes.tick_params(labelbottom=name == names[-1])
    panels[names[-1]].set_xlabel("MB sent by all agents together")
    times = min(sent[name, "ADMM"] / sent[name, "conjugate gradient"] for name in panels)
    panels[names[0]].set_title(f"Same error, and CG sends over {int(times)} times less than ADMM")


def _draw_cost(axes: Axes, points: dict[str, tuple[float, float]], centralised: float, colour: str) -> None:
    axes.axhline(centralised, color=FAINT, linestyle="--", linewidth=1.2, zorder=0)
    edge = axes.get_yaxis_transform()
    axes.text(1.01, centralised, f"centralised\n{centralised:.1f} %", transform=edge, va="center")
    axes.plot(*zip(*points.values(), strict=True), "o", color=colour)
    for method, (megabytes, error) in points.items():
        _label(axes, _price(method, megabytes), (megabytes, max(error, centralised)), colour)
    axes.set(xscale="log", ylabel="test error")
    axes.yaxis.set(major_locator=MaxNLocator(4, steps=[1, 2, 5, 10]), major_formatter=StrMethodFormatter("{x:g} %"))


def _price(method: str, megabytes: float) -> str:
    if method == "alone":
        return "alone\nlabels and settings"  # also for that all agents need to know which classes there are
    short = "CG" if method == "conjugate gradient" else method
    return f"{short}\n{megabytes:,.0f} MB" if megabytes >= 1 else f"{short}\n{megabytes:.1g} MB"


def _label(axes: Axes, text: str, at: tuple[float, float], colour: str, side: str = "left") -> None:
    shift = (6 if side == "left" else -6, 3)
    axes.annotate(text, at, shift, textcoords="offset points", color=colour, linespacing=1.1, ha=side)
