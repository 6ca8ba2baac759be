"""Panels of one figure: their grid, titles, labels and one legend for all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)

from peerlearn.errors import InputError
from peerlearn.lab.analysis.cells import Cells, Place
from peerlearn.lab.figures.looks import escape_math, wrap_value
from peerlearn.system.number_words import short

if TYPE_CHECKING:
    from peerlearn.lab.description.specs import FigureSpec

ACROSS = 3  # panels beside each other, at most
LETTER = 0.08  # inches, the width of a letter of a legend
LINE = 0.17  # inches, the height of a line of a legend
KEY = 0.62  # inches that the line before its letters takes
TICKED = 9  # values on an axis that may each have a tick


def grid(count: int, size: tuple[float, float], title: str = "") -> tuple[Figure, list[Axes]]:
    """Return a figure with so many panels of that size in inches."""
    across = across_of(count)
    down = math.ceil(count / across)
    space = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06, wspace=0.03, hspace=0.04)
    figure = Figure(figsize=(across * size[0], down * size[1]), layout=space)
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for spare in axes[count:]:
        spare.remove()
    if title:
        figure.set_figheight(figure.get_figheight() + 0.35)
        figure.suptitle(escape_math(title), x=0.01, ha="left", fontsize=12, weight="bold")
    return figure, axes[:count]


def across_of(count: int) -> int:
    """Return how many panels are beside each other: four are a square."""
    return 2 if count == 4 else min(count, ACROSS)


def panels_of(cells: Cells, spec: FigureSpec) -> list[Any]:
    """Return the values of the panels' column that have something to show, or raise if none has."""
    columns = (spec.panels,) if spec.panels else ()
    shown = [place for place in cells.places(columns) if _has_numbers(cells, place)]
    if not shown:
        raise InputError(f"the figure {spec.name!r} is not drawn, for no run has measured {spec.y}")
    return [place[0] for place in shown] if spec.panels else [None]


def _has_numbers(cells: Cells, panel: Place) -> bool:
    """Return whether a panel has numbers. panel: the first of the cells' columns, or nothing."""
    for place in cells.groups:
        if (not panel or place[0] in (panel[0], None)) and any(np.isfinite(cells.at(place).values)):
            return True
    return False


def legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Draw a legend below all panels; the figure grows by as much as it takes."""
    labels = [str(handle.get_label()) for handle in handles]
    letters = max(max(map(len, label.split("\n"))) for label in labels)
    lines = max(label.count("\n") for label in labels)
    columns = max(1, min(len(handles), int(figure.get_figwidth() / (KEY + LETTER * letters))))
    rows = math.ceil(len(handles) / columns)
    columns = math.ceil(len(handles) / rows)  # rows of the same length
    figure.set_figheight(figure.get_figheight() + 0.1 + rows * LINE * (lines + 1.5))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        handlelength=2.6,
        columnspacing=1.4,
    )


def label(axes: Sequence[Axes], x: str, y: str) -> None:
    """Write x below the lowest panels, and y left of the leftmost ones."""
    across = across_of(len(axes))
    for each in axes[::across]:
        each.set_ylabel(y)
    for each in axes[-across:]:
        each.set_xlabel(x)


def head(axes: Axes, column: str, value: Any) -> None:
    if value is not None:
        axes.set_title(wrap_value(column, value, 40))


def is_numeric(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def number_axis(axes: Axes, which: str, log: bool) -> None:
    """Write ticks as people write numbers."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    if log:
        axes.set(**{f"{which}scale": "log"})
        low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
        decades = math.log10(high / low) if 0 < low < high else 1.0
        axis.set_major_locator(LogLocator(subs=_subs(decades), numticks=7))
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))


def _subs(decades: float) -> tuple[int, ...]:
    if decades < 0.8:
        return 1, 2, 3, 4, 6, 8
    return (1, 2, 5) if decades < 2 else (1,)


def tick(value: float) -> str:
    size = abs(value)
    if value == 0 or 1e-3 <= size < 1e6:
        return f"{value:,.6g}".replace("-", "\N{MINUS SIGN}")
    return short(value).replace("e+0", "e").replace("e+", "e")


def ticks_at(axes: Axes, values: Sequence[float], log: bool) -> None:
    """Put ticks at the values themselves as far as their names do not run into each other."""
    if log:
        axes.set_xscale("log")
    if len(values) > TICKED:
        number_axis(axes, "x", log)
        return
    places = np.log(values) if log else np.asarray(values, dtype=float)
    apart = 0.075 * max(float(np.ptp(places)), 1e-12)
    kept = [0]
    for k in range(1, len(values)):
        if places[k] - places[kept[-1]] >= apart:
            kept.append(k)
    axes.xaxis.set(
        major_locator=FixedLocator([float(values[k]) for k in kept]), minor_locator=NullLocator()
    )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
