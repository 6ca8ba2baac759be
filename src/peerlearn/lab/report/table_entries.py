"""Entries of a table: numbers as they are written, and the best model of each line marked.

n/a      the model cannot do that task
failed   all runs have; where some have, their number stands beside the mean of the others
-        nothing was run, or the run measures no such thing
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from peerlearn.lab.analysis.cells import SENT, Cell, Place
from peerlearn.lab.analysis.labels import smaller_is_better, value_label
from peerlearn.lab.description.specs import TableSpec
from peerlearn.lab.results.results import CHOSEN

FEWER = ", but for models that have fewer runs than others"
ALIKE = 300.0  # largest mean over smallest: up to here all are written with the same decimals
PLAIN = (1e-3, 1e7)  # between these, no exponents


@dataclass(frozen=True)
class Entry:
    """A cell as it is written."""

    cell: Cell
    mean: str = ""
    spread: str = ""  # empty: of a single run
    best: bool = False

    @property
    def word(self) -> str:
        """The word where there is no mean."""
        return {"failed": f"failed ({self.cell.failed})", "not applicable": "n/a"}.get(
            self.cell.status, "-"
        )


@dataclass(frozen=True)
class Line:
    """A line of a table."""

    place: Place
    labels: tuple[str, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class MetricTable:
    """A table of one metric, ready to be written."""

    spec: TableSpec
    title: str
    heads: tuple[str, ...]  # of the labels
    columns: tuple[Any, ...]  # values of the column that runs across
    names: tuple[str, ...]  # the same in words
    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    marks: str = ""  # what is marked; empty: nothing
    failures: tuple[str, ...] = ()  # who failed or refused, and why


def write_lines(grid: dict[Place, list[Cell]], times: float) -> list[Line]:
    """Write numbers of one size with the same decimals: in the table, else line, else cell."""
    every = [cell for cells in grid.values() for cell in cells]
    whole = _decimals(every, times)
    lines = []
    for place, cells in grid.items():
        labels = tuple(value_label(value) for value in place)
        decimals = _decimals(cells, times) if whole is None else whole
        entries = [
            _entry(cell, times, _decimals([cell], times) if decimals is None else decimals)
            for cell in cells
        ]
        lines.append(Line(place, labels, tuple(entries)))
    return lines


def _decimals(cells: Sequence[Cell], times: float) -> int | None:
    """Return how many decimals; None if means differ too much in size or need exponents."""
    means = np.array(
        [abs(cell.mean) * times for cell in cells if math.isfinite(cell.mean) and cell.mean != 0]
    )
    if not len(means):
        return 0
    if means.max() > ALIKE * means.min() or means.min() < PLAIN[0] or means.max() >= PLAIN[1]:
        return None
    spreads = [cell.spread * times for cell in cells if math.isfinite(cell.spread)]
    if all(float(number).is_integer() for number in (*means, *spreads)):
        return 0
    least, most = (math.floor(math.log10(number)) for number in (means.min(), means.max()))
    # Three digits of the smallest, unless the largest has four already.
    return max(0, min(2 - least, 3 - most))


def _entry(cell: Cell, times: float, decimals: int | None) -> Entry:
    if not cell.runs:
        return Entry(cell)
    if cell.lost:
        return Entry(
            cell,
            f"{cell.mean} ({cell.lost} of {cell.runs} runs)" if cell.runs > 1 else f"{cell.mean}",
        )
    if cell.mean == 0 and cell.spread == 0:
        return Entry(cell, "0")
    spread = _number(cell.spread * times, decimals) if math.isfinite(cell.spread) else ""
    return Entry(cell, _number(cell.mean * times, decimals), spread)


def _number(value: float, decimals: int | None) -> str:
    if decimals is None:
        if not value:
            return "0"
        return f"{value:.2e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    return f"{value:,.{decimals}f}"


def mark_best(spec: TableSpec, lines: list[Line]) -> list[Line]:
    """Mark the best model of each line; an entry that is written the same is as good.

    Where models are in lines there are no marks: a mark would be of its column, and look as if it
    were of its line.
    """
    if spec.columns != "model" or spec.metric.startswith(CHOSEN):  # a setting is not good or bad
        return lines
    return [replace(line, entries=_mark_entries(spec.metric, line.entries)) for line in lines]


def _mark_entries(metric: str, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    if any(entry.cell.status == "not run" for entry in entries):
        # A model is in other lines, swept over a key of its own, and may be better there.
        return entries
    rivals = [entry for entry in entries if math.isfinite(entry.cell.mean)]
    if metric in SENT:  # who sends nothing at all does not take part
        rivals = [entry for entry in rivals if entry.cell.mean]
    if rivals:  # who was measured on fewer rows, or failed more often, is compared with nobody
        splits = max(entry.cell.splits for entry in rivals)
        failed = min(entry.cell.failed for entry in rivals)
        rivals = [
            entry for entry in rivals if (entry.cell.splits, entry.cell.failed) == (splits, failed)
        ]
    if len({entry.mean for entry in rivals}) < 2:
        return entries  # nobody to be better than
    first = (min if smaller_is_better(metric) else max)(rivals, key=lambda entry: entry.cell.mean)
    return tuple(
        replace(entry, best=entry in rivals and entry.mean == first.mean) for entry in entries
    )


def explain_marks(metric: str, lines: Sequence[Line]) -> str:
    """Return what a mark means, if there is one."""
    if not any(entry.best for line in lines for entry in line.entries):
        return ""
    most = "smallest" if smaller_is_better(metric) else "largest"
    who = " of models that send" if metric in SENT else ""
    fewer = FEWER if _is_passed_over(metric, lines) else ""
    return f"the best of its line, which is the {most} mean{who}{fewer}"


def _is_passed_over(metric: str, lines: Sequence[Line]) -> bool:
    """Return whether some mean is better than the marked one of its line."""
    sign = 1 if smaller_is_better(metric) else -1
    for line in lines:
        marked = [sign * entry.cell.mean for entry in line.entries if entry.best]
        others = [sign * entry.cell.mean for entry in line.entries if not entry.best]
        if metric in SENT:
            others = [mean for mean in others if mean]
        if marked and any(mean < min(marked) for mean in others):
            return True
    return False
