"""Errors of filters over the samples that agents have heard, one line per filter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from peerlearn.arrays import Array
from peerlearn.lab.figures.ends import End, name_ends
from peerlearn.lab.figures.style import BLUE, FAINT, VERMILION, save_figure

GREY = "#6e6e6e"  # FAINT, dark enough for letters
POINTS = 500  # of a curve; more are no finer in print
LINE = 0.06  # height of letters, of the panel's height


def draw_filters(
    title: str, curves: Mapping[str, Array], window: int, folder: Path, name: str = "filters"
) -> tuple[Path, Path]:
    """Draw name.png and name.svg in the folder.

    curves: errors in dB by the name of their filter, one per sample, from the first that a full
    window of samples ends
    at. The title is about the first two; all others are drawn in grey.
    """
    return save_figure(lambda: _figure(title, curves, window), folder, name)


def _figure(title: str, curves: Mapping[str, Array], window: int) -> Figure:
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    samples = window + max(len(curve) for curve in curves.values()) - 1
    drawn = np.unique(np.geomspace(window, samples, POINTS).astype(int))
    ends = []
    for number, (filter_name, curve) in enumerate(curves.items()):
        colour = (VERMILION, BLUE, FAINT)[min(number, 2)]
        axes.plot(drawn, curve[drawn - window], color=colour, linewidth=1.8)
        at = (float(samples), float(curve[-POINTS:].mean()))
        ends.append(End(filter_name, at, colour, GREY if number > 1 else colour))
    axes.set(
        xscale="log",
        xlim=(window, samples),
        xlabel="samples heard",
        ylabel="error beyond the noise, dB",
    )
    axes.margins(y=0.06)
    axes.xaxis.set(
        major_locator=FixedLocator([100, 1000, 5000, 25000]), minor_formatter=NullFormatter()
    )
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set(
        major_locator=MaxNLocator(6, integer=True), major_formatter=StrMethodFormatter("{x:.0f}")
    )
    name_ends(axes, ends, LINE, beside=1.03)
    figure.suptitle(title, weight="bold")
    return figure
