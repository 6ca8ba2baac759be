"""The figures of a comparison, from its rows alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from peerlearn.lab.figures.boxes import bars_figure, boxes_figure
from peerlearn.lab.figures.curves import curves_figure
from peerlearn.lab.figures.lines import lines_figure
from peerlearn.lab.figures.ranks import ranks_figure
from peerlearn.lab.figures.reliability import reliability_figure
from peerlearn.lab.figures.style import save_figure
from peerlearn.system.files import file_name

if TYPE_CHECKING:
    from peerlearn.lab.description.specs import FigureSpec
    from peerlearn.lab.results.results import Results

KINDS: dict[str, Callable[[Results, FigureSpec], Figure]] = {
    "lines": lines_figure,
    "boxes": boxes_figure,
    "bars": bars_figure,
    "curves": curves_figure,
    "ranks": ranks_figure,
    "reliability": reliability_figure,
}


def draw_figure(results: Results, spec: FigureSpec, folder: Path) -> tuple[Path, Path]:
    """Draw name.png and name.svg in the folder, or raise InputError if there is nothing to draw."""
    return save_figure(lambda: KINDS[spec.kind](results, spec), folder, file_name(spec.name))
