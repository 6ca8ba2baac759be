"""Curves of runs: the mean curve of each series, and a band of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from peerlearn.arrays import Array
from peerlearn.lab.analysis.cells import Cells, Row, percentiles
from peerlearn.lab.analysis.labels import factor
from peerlearn.lab.figures import panels
from peerlearn.lab.figures.ends import End, name_ends
from peerlearn.lab.figures.lines import BANDS, DIRECT, SINGLE, SMALL, Curve, handle, line_settings
from peerlearn.lab.figures.looks import Look, escape_math, looks, wrap_value, y_label
from peerlearn.lab.results.parquet import CURVE

if TYPE_CHECKING:
    from peerlearn.lab.description.specs import FigureSpec
    from peerlearn.lab.results.results import Results

POINTS = 400  # of a curve; more are no finer in print
MARKED = 8  # points of a curve that have a marker


def curves_figure(results: Results, spec: FigureSpec) -> Figure:
    name = spec.y if spec.y.startswith(CURVE) else f"{CURVE}{spec.y}"
    columns = tuple(column for column in (spec.panels, spec.series) if column)
    cells = Cells.of(results, name, columns, spec.where)
    shown = panels.panels_of(cells, spec)
    series = cells.values(spec.series)
    style = looks(results, spec.series, series)
    size = SINGLE if len(shown) == 1 else SMALL
    figure, axes = panels.grid(len(shown), size, spec.title)
    present: set[Any] = set()
    for each, panel in zip(axes, shown, strict=True):
        place = () if panel is None else (panel,)
        found = {value: mean_curve(cells.rows_at((*place, value)), name, spec) for value in series}
        curves = {value: curve for value, curve in found.items() if curve is not None}
        _draw(each, curves, style, spec)
        panels.head(each, spec.panels, panel)
        if len(shown) == 1 and len(curves) <= DIRECT:
            last = {
                value: (float(curve.x[-1]), float(curve.mean[-1]))
                for value, curve in curves.items()
            }
            named_ends = [
                End(wrap_value(spec.series, k), at, style[k].colour, style[k].ink)
                for k, at in last.items()
            ]
            name_ends(each, named_ends, 0.052)
        present |= set(curves)
    panels.label(axes, escape_math(spec.xlabel), y_label(results, spec, size[1]))
    if len(shown) > 1 or len(present) > DIRECT:
        panels.legend(
            figure,
            [handle(spec.series, value, style[value]) for value in series if value in present],
        )
    return figure


def mean_curve(rows: Sequence[Row], name: str, spec: FigureSpec) -> Curve | None:
    """Return the mean of curves; between the points of a run its values are interpolated."""
    runs = [
        (_at(row, name), np.asarray(row[name], dtype=float))
        for row in rows
        if row["status"] == "done" and row.get(name)
    ]
    if not runs:
        return None
    x = np.unique(np.concatenate([at for at, _ in runs]))
    if len(x) > POINTS:
        spaced = (
            np.geomspace(1, len(x), POINTS) if "x" in spec.log else np.linspace(1, len(x), POINTS)
        )
        x = x[np.unique(spaced.round().astype(int)) - 1]
    values = factor(spec.unit) * np.array([np.interp(x, at, curve) for at, curve in runs])
    mean = values.mean(axis=0)
    decibels = spec.unit == "dB"
    if "y" in spec.log or decibels:
        low, high = percentiles(values)
    else:
        spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros_like(mean)
        low = mean - spread
        high = mean + spread
    if decibels:  # of a power, and of the mean of the powers
        with np.errstate(divide="ignore", invalid="ignore"):
            return Curve(x, *(10 * np.log10(each) for each in (mean, low, high)))
    return Curve(x, mean, low, high)


def _at(row: Row, name: str) -> Array:
    at = row.get(f"{name}.at")
    return np.asarray(at if at else range(len(row[name])), dtype=float)


def _draw(axes: Axes, curves: dict[Any, Curve], style: dict[Any, Look], spec: FigureSpec) -> None:
    for place, (value, curve) in enumerate(curves.items()):
        own = style[value]
        every = max(1, len(curve.x) // MARKED)
        look = {
            **line_settings(own),
            "linewidth": 1.8,
            "markersize": 5.5,
            "markevery": (place * every // max(1, len(curves)), every),
        }
        axes.plot(curve.x, curve.mean, **look)
        if (curve.high > curve.low).any():
            faint = 0.15 if len(curves) <= BANDS else 0.07
            axes.fill_between(
                curve.x, curve.low, curve.high, color=own.colour, alpha=faint, linewidth=0
            )
    axes.margins(x=0.02, y=0.06)
    panels.number_axis(axes, "x", "x" in spec.log)
    panels.number_axis(axes, "y", "y" in spec.log)
