"""The critical-difference diagram: models at their mean ranks, bars over those that are alike.

Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 2006, figure 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from peerlearn.errors import InputError
from peerlearn.lab.analysis.labels import in_words
from peerlearn.lab.analysis.significance import examine, probability
from peerlearn.lab.analysis.statistics import Friedman
from peerlearn.lab.description.specs import StatisticsSpec
from peerlearn.lab.figures import panels
from peerlearn.lab.figures.looks import wrap
from peerlearn.lab.figures.style import INK, VERMILION

if TYPE_CHECKING:
    from peerlearn.lab.description.specs import FigureSpec
    from peerlearn.lab.results.results import Results

STEP = 0.25  # inches between names
BAR = 0.17  # inches between bars
AXIS = 4.4  # inches that the ranks have
LETTER = 0.08  # inches


def ranks_figure(results: Results, spec: FigureSpec) -> Figure:
    asked = [
        each
        for each in results.layout.statistics
        if each.metric == spec.y and "friedman" in each.tests
    ]
    found = examine(results, (asked or [StatisticsSpec(spec.y, ("friedman",))])[0])
    if found.friedman is None:
        why = found.sentences[-1 if len(found.blocks.models) > 1 else 0]
        raise InputError(f"the figure {spec.name!r} is not drawn: {why}")
    heading = f"Mean ranks by {in_words(spec.y, results.facts.get('words', {}))}, 1 the best"
    return draw_ranks(found.friedman, spec.title or heading)


def draw_ranks(found: Friedman, heading: str) -> Figure:
    """Return the diagram of these mean ranks."""
    diagram = _Diagram(found)
    figure, (axes,) = panels.grid(1, (AXIS + diagram.names_wide, diagram.high), heading)
    diagram.draw(axes)
    return figure


@dataclass(frozen=True)
class _Diagram:
    """A diagram; heights are in inches above the axis of ranks."""

    found: Friedman

    @cached_property
    def names(self) -> list[str]:
        """The names from the best model."""
        return [wrap(self.found.models[k], 34) for k in self.found.order]

    @property
    def half(self) -> int:
        """The number of models that are named on the left."""
        return math.ceil(len(self.names) / 2)

    @property
    def names_wide(self) -> float:
        sides = self.names[: self.half], self.names[self.half :]
        longest = (
            max((len(line) for name in side for line in name.split("\n")), default=0)
            for side in sides
        )
        return LETTER * (sum(longest) + 18)

    @property
    def first(self) -> float:
        """The height where names begin, below the bars."""
        return 0.26 + BAR * len(self.found.alike)

    @property
    def step(self) -> float:
        return STEP * (1 + 0.7 * max(name.count("\n") for name in self.names))

    @property
    def low(self) -> float:
        return -self.first - self.step * self.half - 0.15

    @property
    def high(self) -> float:
        return 0.85 - self.low

    def draw(self, axes: Axes) -> None:
        models = len(self.names)
        edge = 0.03 * (models - 1)
        axes.plot([1, models], [0, 0], color=INK, linewidth=1.2)
        for rank in range(1, models + 1):
            axes.plot([rank] * 2, [0, 0.07], color=INK, linewidth=1.2)
            axes.text(rank, 0.1, str(rank), ha="center", va="bottom")
        for place in range(models):
            self._name(axes, place, edge)
        for place, group in enumerate(self.found.alike):
            at = [self.found.ranks[self.found.models.index(model)] for model in group]
            ends = [min(at) - edge / 3, max(at) + edge / 3]
            axes.plot(
                ends, [-0.15 - BAR * place] * 2, color=VERMILION, linewidth=4, solid_capstyle="butt"
            )
        self._difference(axes)
        axes.set(xlim=(1 - edge, models + edge), ylim=(self.low, 0.85))
        axes.set_axis_off()

    def _name(self, axes: Axes, place: int, edge: float) -> None:
        models = len(self.names)
        rank = self.found.ranks[self.found.order[place]]
        left = place < self.half
        down = -self.first - self.step * (place if left else models - 1 - place)
        end, side, shift = (1 - edge, "right", -4) if left else (models + edge, "left", 4)
        axes.plot([rank, rank, end], [0, down, down], color=INK, linewidth=0.9, clip_on=False)
        parts = [self.names[place], f"({rank:.2f})"]
        text = "  ".join(parts if left else reversed(parts))
        axes.annotate(
            text,
            (end, down),
            (shift, 0),
            textcoords="offset points",
            ha=side,
            va="center",
            linespacing=1.0,
        )

    def _difference(self, axes: Axes) -> None:
        """Draw the critical difference at its length, and write what it follows from."""
        found = self.found
        high = 0.5
        end = 1 + found.difference
        axes.plot([1, end], [high] * 2, color=VERMILION, linewidth=1.6, clip_on=False)
        for tip in (1, end):
            axes.plot(
                [tip] * 2, [high - 0.05, high + 0.05], color=VERMILION, linewidth=1.6, clip_on=False
            )
        axes.annotate(
            f"critical difference {found.difference:.2f}",
            (1, high),
            (0, 5),
            textcoords="offset points",
            va="bottom",
        )
        a, b = found.freedom
        f = "" if math.isinf(found.f) else f"F({a}, {b}) = {found.f:.3g}, "
        text = (
            f"{f}p {probability(found.p)} over {found.blocks} blocks; "
            "a bar joins models that are not told apart"
        )
        axes.text(
            0.5,
            self.low,
            text,
            transform=axes.get_yaxis_transform(),
            ha="center",
            va="bottom",
            size=8.5,
        )
