"""A metric by model: a box of the runs, or a bar of their mean, beside names of any length."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from peerlearn.lab.analysis.cells import Cell, Cells
from peerlearn.lab.analysis.labels import factor
from peerlearn.lab.description.specs import FigureSpec
from peerlearn.lab.figures import panels
from peerlearn.lab.figures.looks import Look, looks, wrap_value, y_label
from peerlearn.lab.figures.style import FAINT, INK

if TYPE_CHECKING:
    from peerlearn.lab.results.results import Results

HATCHES = (
    "",
    "////",
    "....",
    "xxxx",
    "\\\\\\\\",
    "----",
    "oooo",
    "++++",
    "||||",
    "**",
    "//..",
    "xx--",
)
FEW = 25  # runs that are drawn one by one over their box
REACH = 1.5  # box widths that whiskers reach at most (Tukey, Exploratory data analysis, 1977)
ROW = 0.3  # inches that a box takes
Draw = Callable[[Axes, float, Cell, Look, FigureSpec, float], None]


def boxes_figure(results: Results, spec: FigureSpec) -> Figure:
    return _figure(results, spec, _box)


def bars_figure(results: Results, spec: FigureSpec) -> Figure:
    return _figure(results, spec, _bar)


def _figure(results: Results, spec: FigureSpec, draw: Draw) -> Figure:
    columns = tuple(column for column in (spec.panels, spec.x, spec.series) if column)
    cells = Cells.of(results, spec.y, columns, spec.where)
    shown = panels.panels_of(cells, spec)
    series = cells.values(spec.series)
    groups = cells.values(spec.x) if spec.x else [None]
    style = looks(results, spec.series, series)
    rows = [(group, name) for group in groups for name in series]
    heights = [k + 0.7 * (k // len(series) if spec.x else 0) for k in range(len(rows))]
    lines = 1 if spec.x else max(wrap_value(spec.series, name).count("\n") + 1 for name in series)
    size = (
        6.4 if len(shown) == 1 else 4.2,
        max(1.9, ROW * max(1.0, 0.55 * lines) * (heights[-1] + 1) + 0.95),
    )
    figure, axes = panels.grid(len(shown), size, spec.title)
    for each, panel in zip(axes, shown, strict=True):
        for height, (group, name) in zip(heights, rows, strict=True):
            place = tuple(
                value for value, column in ((panel, spec.panels), (group, spec.x)) if column
            )
            cell = cells.at((*place, name))
            if np.isfinite(cell.values).any():
                draw(each, height, cell, style[name], spec, series.index(name) if spec.x else 0)
            else:
                word = {"not applicable": "n/a", "failed": "failed"}.get(cell.status, "-")
                each.text(
                    0.02,
                    height,
                    word,
                    transform=each.get_yaxis_transform(),
                    color=FAINT,
                    va="center",
                    size=8.5,
                )
        panels.head(each, spec.panels, panel)
        _axes(each, spec, heights, draw is _bar)
    for k, each in enumerate(axes):
        _name_rows(each, spec, heights, series, groups, first=k % panels.across_of(len(axes)) == 0)
    panels.label(axes, y_label(results, spec, size[0]), "")
    if spec.x:
        handles = [
            Patch(
                facecolor=style[name].colour,
                edgecolor=INK,
                hatch=HATCHES[k % len(HATCHES)],
                alpha=0.6,
                label=wrap_value(spec.series, name),
            )
            for k, name in enumerate(series)
        ]
        panels.legend(figure, handles)
    return figure


def _axes(axes: Axes, spec: FigureSpec, heights: list[float], from_zero: bool) -> None:
    log = "y" in spec.log
    axes.set_ylim(heights[-1] + 0.6, -0.6)  # the first on top
    axes.margins(x=0.06)
    low = axes.get_xlim()[0]
    if not log and (from_zero or axes.dataLim.x0 >= 0):
        left = low
        if axes.dataLim.x0 >= 0:
            left = 0.0 if from_zero else max(0.0, low)
        axes.set_xlim(left=left)
    panels.number_axis(axes, "x", log)
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)


def _name_rows(
    axes: Axes,
    spec: FigureSpec,
    heights: list[float],
    series: list[Any],
    groups: list[Any],
    *,
    first: bool,
) -> None:
    axes.tick_params(axis="y", length=0)
    if spec.x:
        middles = [
            np.mean(heights[k : k + len(series)]) for k in range(0, len(heights), len(series))
        ]
        axes.set_yticks(
            middles,
            [wrap_value(spec.x, group) for group in groups] if first else [""] * len(groups),
        )
    else:
        axes.set_yticks(
            heights,
            [wrap_value(spec.series, name) for name in series] if first else [""] * len(series),
        )


def _box(axes: Axes, height: float, cell: Cell, own: Look, spec: FigureSpec, hatch: float) -> None:
    values = factor(spec.unit) * np.array([value for value in cell.values if np.isfinite(value)])
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    inside = values[
        (values >= low - REACH * (high - low)) & (values <= high + REACH * (high - low))
    ]
    whiskers = (min(inside.min(), low), max(inside.max(), high))
    for a, b in ((whiskers[0], low), (high, whiskers[1])):
        axes.plot([a, b], [height] * 2, color=INK, linewidth=1.0)
    for end in whiskers:
        axes.plot([end] * 2, [height - 0.16, height + 0.16], color=INK, linewidth=1.0)
    look: dict[str, Any] = {
        "edgecolor": INK,
        "linewidth": 0.9,
        "hatch": HATCHES[int(hatch) % len(HATCHES)],
    }
    axes.add_patch(
        Rectangle((low, height - 0.3), high - low, 0.6, facecolor=own.colour, alpha=0.45, **look)
    )
    axes.plot(
        [middle] * 2, [height - 0.3, height + 0.3], color=INK, linewidth=2.2, solid_capstyle="butt"
    )
    if len(values) <= FEW:
        apart = 0.16 * np.sin(2.4 * np.arange(len(values)))  # so that equal ones are told apart
        axes.plot(values, height + apart, ".", color=INK, markersize=3.6, alpha=0.75, zorder=3)
    else:
        outside = values[(values < whiskers[0]) | (values > whiskers[1])]
        axes.plot(
            outside,
            np.full(len(outside), height),
            "o",
            color="none",
            markeredgecolor=INK,
            markersize=3.4,
        )


def _bar(axes: Axes, height: float, cell: Cell, own: Look, spec: FigureSpec, hatch: float) -> None:
    look: dict[str, Any] = {
        "edgecolor": INK,
        "linewidth": 0.8,
        "hatch": HATCHES[int(hatch) % len(HATCHES)],
        "alpha": 0.6,
    }
    mean = cell.mean
    low, high = cell.band("y" in spec.log)
    axes.barh(height, factor(spec.unit) * mean, 0.66, color=own.colour, **look)
    if cell.runs > 1:
        ends = factor(spec.unit) * np.maximum([[mean - low], [high - mean]], 0.0)
        axes.errorbar(
            factor(spec.unit) * mean, height, xerr=ends, color=INK, elinewidth=1.1, capsize=2.5
        )
