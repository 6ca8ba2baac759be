"""Reliability curves: how often what has the probability p does happen, in the runs of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from peerlearn.arrays import Array
from peerlearn.lab.analysis.cells import Cells, Row
from peerlearn.lab.description.reliability import EVENTS, SHARES, merge_runs
from peerlearn.lab.figures import panels
from peerlearn.lab.figures.lines import handle, line_settings
from peerlearn.lab.figures.looks import Look, escape_math, looks
from peerlearn.lab.figures.style import FAINT
from peerlearn.lab.results.parquet import CURVE

if TYPE_CHECKING:
    from peerlearn.lab.description.specs import FigureSpec
    from peerlearn.lab.results.results import Results

SIZE = (3.9, 3.7)  # inches of a panel, which is nearly square
SMALLEST = 3.0  # points, the diameter of a dot
LARGEST = 11.0
NAME = CURVE + SHARES


def reliability_figure(results: Results, spec: FigureSpec) -> Figure:
    """Return a panel with one curve per series, and the diagonal."""
    columns = tuple(column for column in (spec.panels, spec.series) if column)
    cells = Cells.of(results, NAME, columns, spec.where)
    shown = panels.panels_of(cells, spec)
    series = cells.values(spec.series)
    style = looks(results, spec.series, series)
    figure, axes = panels.grid(len(shown), SIZE, spec.title)
    present: set[Any] = set()
    for each, panel in zip(axes, shown, strict=True):
        place = () if panel is None else (panel,)
        each.plot([0, 1], [0, 1], color=FAINT, linewidth=1.2, zorder=1)
        for value in series:
            found = pooled_curve(cells.rows_at((*place, value)))
            if found is not None:
                _draw(each, *found, style[value])
                present.add(value)
        panels.head(each, spec.panels, panel)
        each.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        for axis in ("x", "y"):
            panels.number_axis(each, axis, log=False)
    x = escape_math(spec.xlabel) or "probability of the class"
    panels.label(axes, x, escape_math(spec.ylabel) or "share of rows that have it")
    names = [value for value in series if value in present]
    panels.legend(figure, [handle(spec.series, value, style[value]) for value in names])
    return figure


def pooled_curve(rows: Sequence[Row]) -> tuple[Array, Array, Array] | None:
    """Return means of p, shares and numbers of events of all runs; None if there are none."""
    runs = [
        (np.array(row[f"{NAME}.at"]), np.array(row[NAME]), np.array(row[CURVE + EVENTS]))
        for row in rows
        if row["status"] == "done" and row.get(NAME)
    ]
    return merge_runs(runs) if runs else None


def _draw(axes: Axes, p: Array, shares: Array, events: Array, own: Look) -> None:
    """Draw a curve whose dots are the larger the more events they have."""
    settings = line_settings(own)
    axes.plot(p, shares, **{**settings, "marker": ""}, linewidth=1.6)
    sizes = SMALLEST + (LARGEST - SMALLEST) * np.sqrt(events / events.max())
    axes.scatter(
        p, shares, s=sizes**2, color=own.colour, marker=own.marker, edgecolors="white", zorder=4
    )
