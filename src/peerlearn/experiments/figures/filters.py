"""Filters over the network: errors and deviations as agents learn, and the nonlinearities that they end with.

Colour tells the update, a dashed line that agents are alone; every line is named where it ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from peerlearn.arrays import Array
from peerlearn.experiments.figures.ends import spread
from peerlearn.experiments.figures.style import BLUE, FAINT, INK, ORANGE, VERMILION, saved

LOOKS = {  # colour and line of a filter, by its name
    "NC-LMS": (ORANGE, "--"),
    "D-LMS": (ORANGE, "-"),
    "NC-SAF": (VERMILION, "--"),
    "D-SAF": (VERMILION, "-"),
    "lone RLS": (BLUE, "--"),
    "joint RLS": (BLUE, "-"),
}
GREY = "#6e6e6e"  # FAINT, dark enough for letters
POINTS = 500  # of a curve; more are no finer in print
APART = 0.068  # between names at the ends of lines, of a panel's height


@dataclass(frozen=True)
class FilterCurves:
    """One experiment: curves in dB with one entry per sample, from the first that a full window ends at."""

    title: str
    window: int
    noise: float  # dB: no error is smaller
    errors: Mapping[str, Array]
    coefficients: Mapping[str, Array]
    control_points: Mapping[str, Array]
    s: Array
    f0: Array
    alone: Array  # agents x len(s), as the next
    together: Array


def draw_filters(experiments: Sequence[FilterCurves], folder: Path, name: str = "filters") -> tuple[Path, Path]:
    """name.png and name.svg in the folder: a row per experiment."""
    return saved(lambda: _figure(experiments), folder, name)


def _figure(experiments: Sequence[FilterCurves]) -> Figure:
    figure = Figure(figsize=(13.2, 3.2 * len(experiments)), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))
    rows = figure.subplots(len(experiments), 4, squeeze=False, width_ratios=[1, 1, 1, 1.1])
    for row, curves in zip(rows, experiments, strict=True):
        _learning(row[0], curves.errors, curves.window)
        row[0].axhline(curves.noise, color=INK, linestyle=":", linewidth=1.2)
        row[0].annotate("noise", (curves.window, curves.noise), (3, -3), textcoords="offset points", size=9, va="top")
        _learning(row[1], curves.coefficients, curves.window)
        _learning(row[2], curves.control_points, curves.window)
        _nonlinearities(row[3], curves)
        row[0].text(-0.4, 0.5, curves.title, transform=row[0].transAxes, rotation=90, va="center", weight="bold")
        row[0].set_ylabel("mean squared error, dB")
        row[1].set_ylabel("deviation of w, dB")
        row[2].set_ylabel("deviation of q, dB")
    heads = (
        "What agents fail to predict",
        "How far the linear part is off",
        "How far the spline is off",
        "The splines at the end",
    )
    for axes, head in zip(rows[0], heads, strict=True):
        axes.set_title(head)
    rows[0, 0].text(0.97, 0.97, "dashed: alone\nsolid: together", transform=rows[0, 0].transAxes, ha="right", va="top")
    for axes in rows[-1, :3]:
        axes.set_xlabel("samples heard")
    rows[-1, 3].set_xlabel("output of the linear part")
    return figure


def _learning(axes: Axes, curves: Mapping[str, Array], window: int) -> None:
    samples = window + max(len(curve) for curve in curves.values()) - 1
    for name, curve in curves.items():
        colour, line = LOOKS[name]
        drawn = np.unique(np.geomspace(window, samples, POINTS).astype(int)) - window
        axes.plot(drawn + window, curve[drawn], color=colour, linestyle=line, linewidth=1.5)
    axes.set(xscale="log", xlim=(window, samples))
    axes.margins(y=0.06)
    axes.xaxis.set(major_locator=FixedLocator([100, 1000, 5000, 25000]), minor_formatter=NullFormatter())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set(major_locator=MaxNLocator(6, integer=True), major_formatter=StrMethodFormatter("{x:.0f}"))
    _name_ends(axes, {name: float(curve[-POINTS:].mean()) for name, curve in curves.items()}, samples)


def _name_ends(axes: Axes, ends: Mapping[str, float], last: float) -> None:
    """Each name beside the end of its line, moved up or down to where it can be read."""
    low, high = axes.get_ylim()
    names = sorted(ends, key=lambda name: ends[name])
    wished = (np.array([ends[name] for name in names]) - low) / (high - low)
    for name, place in zip(names, spread(wished, np.full(len(names), APART)), strict=True):
        colour = LOOKS[name][0]
        leader = {"arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkA": 1, "shrinkB": 0, "relpos": (0, 0.5)}
        axes.annotate(
            name, (last, ends[name]), (1.06, place), xycoords="data", textcoords="axes fraction", color=colour,
            size=9, va="center", annotation_clip=False, arrowprops=leader,
        )  # fmt: skip


def _nonlinearities(axes: Axes, curves: FilterCurves) -> None:
    """Every agent's, over the true one."""
    axes.plot(curves.s, curves.alone.T, color=FAINT, linewidth=0.7)
    axes.plot(curves.s, curves.together.T, color=VERMILION, linewidth=1.2)
    axes.plot(curves.s, curves.f0, color=INK, linewidth=1.4, linestyle=":")
    axes.set_xlim(curves.s[0], curves.s[-1])
    for height, text, colour in (
        (0.95, "f0, dotted", INK),
        (0.87, "D-SAF, all agents", VERMILION),
        (0.79, "NC-SAF, all agents", GREY),
    ):
        axes.text(0.03, height, text, transform=axes.transAxes, color=colour, size=9, va="top")
