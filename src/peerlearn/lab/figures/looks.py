"""Looks of series: colour, line and marker at once, so that all readers tell them apart.

The colours are Okabe and Ito's without the yellow, which white paper swallows; colours and lines
repeat after a different number of series, so that no two look alike.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.colors import to_hex, to_rgb

from peerlearn.lab.analysis.labels import in_words, setting_label, value_label, with_unit
from peerlearn.lab.figures.style import BLUE, GREEN, INK, ORANGE, VERMILION

if TYPE_CHECKING:
    from peerlearn.lab.description.specs import FigureSpec
    from peerlearn.lab.results.results import Results

COLOURS = (BLUE, VERMILION, GREEN, ORANGE, "#CC79A7", "#56B4E9", INK)
LINES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))
MARKERS = "os^DvPX<>*ph"
LONG = 26  # letters of a name on a line; more go on below
HIGH = 11  # letters of an axis label per inch


@dataclass(frozen=True)
class Look:
    colour: str
    line: Any
    marker: str

    @property
    def ink(self) -> str:
        """The colour, dark enough for letters on white."""
        red, green, blue = (0.72 * part for part in to_rgb(self.colour))
        return to_hex((red, green, blue))


def look(place: int) -> Look:
    return Look(
        COLOURS[place % len(COLOURS)], LINES[place % len(LINES)], MARKERS[place % len(MARKERS)]
    )


def looks(results: Results, column: str, values: list[Any]) -> dict[Any, Look]:
    """Return a look per value, the same in all figures of a comparison."""
    order = list(results.order.get(column, ()))
    order += [value for value in values if value not in order]
    return {value: look(order.index(value)) for value in values}


def wrap_value(column: str, value: Any, width: int = LONG) -> str:
    """Return a value as matplotlib shows it letter by letter, in lines of moderate length."""
    return wrap(
        setting_label(column, value) if isinstance(value, int | float) else value_label(value),
        width,
    )


def wrap(name: str, width: int = LONG) -> str:
    text = escape_math(name)
    return "\n".join(textwrap.wrap(text, width, break_on_hyphens=True)) or text


def escape_math(text: str) -> str:
    """Return a text in which dollars and a leading underscore are only letters."""
    escaped = text.replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped


def axis_label(text: str, metric: str, results: Results, inches: float, unit: str = "") -> str:
    """Return a label in as many lines as an axis of that length needs."""
    label = text or with_unit(in_words(metric, results.facts.get("words", {})), unit)
    return wrap(label, round(HIGH * inches))


def y_label(results: Results, spec: FigureSpec, inches: float) -> str:
    return axis_label(spec.ylabel, spec.y, results, inches, spec.unit)
