"""A metric against a swept key: mean and spread over runs, and levels of models without it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.lab.analysis.cells import Cell, Cells
from peerlearn.lab.analysis.labels import factor
from peerlearn.lab.figures import panels
from peerlearn.lab.figures.ends import End, name_ends
from peerlearn.lab.figures.looks import Look, axis_label, looks, wrap_value, y_label

if TYPE_CHECKING:
    from peerlearn.lab.description.specs import FigureSpec
    from peerlearn.lab.results.results import Results

BANDS = 4  # series that may have a band; more have bars, a little apart
DIRECT = 8  # series that are named at their ends, in a single panel
# Inches of a panel: alone, and beside others.
SINGLE = (6.4, 4.0)
SMALL = (3.9, 3.1)


@dataclass(frozen=True)
class Curve:
    """A line with its spread; a single point is a level that holds for all x."""

    x: Array
    mean: Array
    low: Array
    high: Array
    level: bool = False


def lines_figure(results: Results, spec: FigureSpec) -> Figure:
    columns = tuple(column for column in (spec.panels, spec.series, spec.x) if column)
    if not spec.x:
        raise InputError(
            f"the figure {spec.name!r} of kind 'lines' does not say what x is: name a swept key"
        )
    cells = Cells.of(results, spec.y, columns, spec.where)
    shown = panels.panels_of(cells, spec)
    x = _values(cells, spec.x)
    scale = _Scale.of(x, "x" in spec.log)
    series = cells.values(spec.series)
    style = looks(results, spec.series, series)
    levels: set[Any] = set()
    somewhere: set[Any] = set()
    size = SINGLE if len(shown) == 1 else SMALL
    figure, axes = panels.grid(len(shown), size, spec.title)
    for each, panel in zip(axes, shown, strict=True):
        place = () if panel is None else (panel,)
        curves = {name: _curve(cells, (*place, name), x, scale, spec) for name in series}
        present = {name: curve for name, curve in curves.items() if np.isfinite(curve.mean).any()}
        present = _apart(present, scale)
        _draw(each, present, style, scale, spec)
        panels.head(each, spec.panels, panel)
        if len(shown) == 1 and len(present) <= DIRECT:
            _name_ends(each, spec.series, present, style)
        levels |= {name for name, curve in present.items() if curve.level}
        somewhere |= set(present)
    panels.label(
        axes, axis_label(spec.xlabel, spec.x, results, size[0]), y_label(results, spec, size[1])
    )
    if len(shown) > 1 or len(series) > DIRECT:
        names = [name for name in series if name in somewhere]
        panels.legend(
            figure,
            [handle(spec.series, name, style[name], marked=name not in levels) for name in names],
        )
    return figure


def _values(cells: Cells, column: str) -> list[Any]:
    values = [value for value in cells.values(column) if value is not None]
    if not values:
        raise InputError(
            f"no run has a value of {column}, which the figure has as its x: name a swept key"
        )
    return sorted(values) if panels.is_numeric(values) else values


def _curve(
    cells: Cells, place: tuple[Any, ...], x: list[Any], scale: _Scale, spec: FigureSpec
) -> Curve:
    if (*place, None) in cells.groups:
        return _spread([cells.at((*place, None))], np.zeros(1), spec, level=True)
    return _spread([cells.at((*place, value)) for value in x], scale.at, spec)


def _spread(found: list[Cell], at: Array, spec: FigureSpec, *, level: bool = False) -> Curve:
    times = factor(spec.unit)
    low, high = times * np.array([cell.band("y" in spec.log) for cell in found]).T
    return Curve(at, times * np.array([cell.mean for cell in found]), low, high, level)


def _apart(curves: dict[Any, Curve], scale: _Scale) -> dict[Any, Curve]:
    """Shift many series a little beside each other, so that their bars are told apart."""
    rivals = [name for name, curve in curves.items() if not curve.level]
    if len(curves) <= BANDS or len(rivals) < 2:
        return curves
    shares = {name: place / (len(rivals) - 1) - 0.5 for place, name in enumerate(rivals)}
    shifted = dict(curves)
    for name, share in shares.items():
        shifted[name] = replace(curves[name], x=scale.shift(curves[name].x, share))
    return shifted


def _draw(
    axes: Axes, curves: dict[Any, Curve], style: dict[Any, Look], scale: _Scale, spec: FigureSpec
) -> None:
    bands = len(curves) <= BANDS
    for place, (name, curve) in enumerate(curves.items()):
        own = style[name]
        if curve.level:
            axes.plot(
                scale.ends,
                [curve.mean[0]] * 2,
                color=own.colour,
                linestyle=own.line,
                linewidth=1.6,
                zorder=2,
            )
            axes.fill_between(
                scale.ends, curve.low[0], curve.high[0], color=own.colour, alpha=0.12, linewidth=0
            )
        elif bands:  # of equal lines all are seen, the later ones thinner
            thin = place / BANDS
            axes.plot(
                curve.x,
                curve.mean,
                **line_settings(own),
                linewidth=3 - 1.8 * thin,
                markersize=8.5 - 4 * thin,
            )
            axes.fill_between(
                curve.x, curve.low, curve.high, color=own.colour, alpha=0.15, linewidth=0
            )
        else:
            bars = np.maximum(
                [curve.mean - curve.low, curve.high - curve.mean], 0.0
            )  # a mean may be above most runs
            look = {**line_settings(own), "linewidth": 1.7, "markersize": 5.5}
            axes.errorbar(curve.x, curve.mean, yerr=bars, elinewidth=0.9, capsize=2, **look)
    if scale.values:
        axes.set_xticks(
            range(len(scale.values)), [wrap_value(spec.x, value, 14) for value in scale.values]
        )
    else:
        panels.ticks_at(axes, list(scale.at), scale.log)
    axes.set_xlim(*scale.ends)
    axes.margins(y=0.08)
    if "y" not in spec.log and all(
        (curve.mean[np.isfinite(curve.mean)] >= 0).all() for curve in curves.values()
    ):
        axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))
    panels.number_axis(axes, "y", "y" in spec.log)


@dataclass(frozen=True)
class _Scale:
    """The axis of x: where its values are, and how far series may be shifted."""

    at: Array
    values: tuple[Any, ...]  # where they are no numbers
    log: bool

    @classmethod
    def of(cls, x: list[Any], log: bool) -> _Scale:
        if panels.is_numeric(x):
            return cls(np.array(x, dtype=float), (), log)
        return cls(np.arange(len(x), dtype=float), tuple(x), False)

    @property
    def _places(self) -> Array:
        return np.log(self.at) if self.log else self.at

    @property
    def ends(self) -> tuple[float, float]:
        edge = 0.05 * float(np.ptp(self._places)) or 1.0  # a single value is in the middle
        low = float(self._places.min()) - edge
        high = float(self._places.max()) + edge
        return (math.exp(low), math.exp(high)) if self.log else (low, high)

    def shift(self, x: Array, share: float) -> Array:
        wide = float(np.ptp(self._places)) or 1.0
        gap = float(np.diff(self._places).min()) if len(self.at) > 1 else 1.0
        apart = share * min(0.06 * wide, 0.6 * gap)
        return np.asarray(x * np.exp(apart) if self.log else x + apart)


def _name_ends(axes: Axes, column: str, curves: dict[Any, Curve], style: dict[Any, Look]) -> None:
    right = axes.get_xlim()[1]
    ends = []
    for name, curve in curves.items():
        last = np.flatnonzero(np.isfinite(curve.mean))[-1]
        at = (right if curve.level else float(curve.x[last]), float(curve.mean[last]))
        ends.append(End(wrap_value(column, name), at, style[name].colour, style[name].ink))
    name_ends(axes, ends, 0.052)


def line_settings(own: Look) -> dict[str, Any]:
    edge = {"markeredgecolor": "white", "markeredgewidth": 0.6}
    return {"color": own.colour, "linestyle": own.line, "marker": own.marker, "zorder": 3, **edge}


def handle(column: str, name: Any, own: Look, *, marked: bool = True) -> Line2D:
    look = {**line_settings(own), "marker": own.marker if marked else ""}
    return Line2D([], [], linewidth=1.8, markersize=6, label=wrap_value(column, name), **look)
