"""Tables: the mean over runs and its spread, the best model of each line marked, and what is missing told apart.

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
from rich.console import Console

from peerlearn.lab.analysis.cells import SENT, Cell, Cells, Place, Row, chosen, of_its_task
from peerlearn.lab.analysis.labels import (
    factor,
    only_said,
    said,
    smaller_is_better,
    value_said,
    with_unit,
)
from peerlearn.lab.analysis.significance import examined
from peerlearn.lab.description.specs import TableSpec
from peerlearn.lab.report.defaults import shown_tables
from peerlearn.lab.report.table_text import printed
from peerlearn.lab.results.results import CHOSEN, Results

NAMED = ("data", "model", "network")  # columns that are no keys of the file
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
        """Where there is no mean."""
        return {"failed": f"failed ({self.cell.failed})", "not applicable": "n/a"}.get(
            self.cell.status, "-"
        )


@dataclass(frozen=True)
class Line:
    place: Place
    labels: tuple[str, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Table:
    spec: TableSpec
    title: str
    heads: tuple[str, ...]  # of the labels
    columns: tuple[Any, ...]  # values of the column that runs across
    names: tuple[str, ...]  # the same in words
    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    marks: str = ""  # what is marked; empty: nothing
    failures: tuple[str, ...] = ()  # who failed or refused, and why


def tables_of(results: Results) -> list[Table]:
    """Those that the layout asks for; one per metric if it asks for none."""
    return [table_of(results, spec) for spec in shown_tables(results)]


def show(console: Console, results: Results) -> None:
    """All tables in the terminal, what is missing in them, and what the tests say."""
    for table in tables_of(results):
        printed(console, table)
    for line in (*(missing := _failures(results.rows)), *([""] if missing else [])):
        console.print(line, markup=False, style="dim", soft_wrap=True)
    for spec in results.layout.statistics:
        found = examined(results, spec)
        for line in (f"Tests of {found.title}", *found.sentences, ""):
            console.print(line, markup=False, style="bold" if line.startswith("Tests of") else None)


def table_of(results: Results, spec: TableSpec) -> Table:
    words = results.facts.get("words", {})
    rows = of_its_task(chosen(results, spec.where), spec.metric)
    cells = Cells(results, spec.metric, (*spec.rows, spec.columns), rows)
    across = cells.values(spec.columns)
    grid = {
        place: [cells.at((*place, column)) for column in across]
        for place in cells.places(spec.rows)
    }
    # A metric is not of every task nor of every model: lines without a number or failure, and
    # columns of dashes, go.
    grid = {
        place: own for place, own in grid.items() if any(cell.runs or cell.failed for cell in own)
    }
    kept = [
        k for k in range(len(across)) if any(own[k].status != "not run" for own in grid.values())
    ]
    columns = [across[k] for k in kept]
    grid = {place: [own[k] for k in kept] for place, own in grid.items()}
    lines = _marked(spec, _written(grid, factor(spec.unit)))
    title = spec.title or _capital(with_unit(said(spec.metric, words), spec.unit))
    if spec.unit and spec.unit not in title:
        title += f", {spec.unit}"
    return Table(
        spec,
        title,
        tuple(_head(column) for column in spec.rows),
        tuple(columns),
        tuple(value_said(column) for column in columns),
        tuple(lines),
        tuple(_notes(spec, cells, lines)),
        _marks(spec.metric, lines),
        tuple(_failures(cells.rows)),
    )


def _head(column: str) -> str:
    """Names in words; keys as they are in the file."""
    return _capital(said(column)) if column in NAMED else column


def _capital(text: str) -> str:
    return text if "." in text else text[:1].upper() + text[1:]


def _written(grid: dict[Place, list[Cell]], times: float) -> list[Line]:
    """Numbers of one size have the same decimals: in the whole table, else in a line, else each has its own."""
    every = [cell for cells in grid.values() for cell in cells]
    whole = _decimals(every, times)
    lines = []
    for place, cells in grid.items():
        labels, decimals = tuple(value_said(value) for value in place), whole
        if decimals is None:
            decimals = _decimals(cells, times)
        entries = [
            _entry(cell, times, _decimals([cell], times) if decimals is None else decimals)
            for cell in cells
        ]
        lines.append(Line(place, labels, tuple(entries)))
    return lines


def _decimals(cells: Sequence[Cell], times: float) -> int | None:
    """How many, or None if the means differ too much in size, or need exponents."""
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
    return max(
        0, min(2 - least, 3 - most)
    )  # three digits of the smallest, unless the largest has four already


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
        return (
            f"{value:.2e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
            if value
            else "0"
        )
    return f"{value:,.{decimals}f}"


def _marked(spec: TableSpec, lines: list[Line]) -> list[Line]:
    """The best model of each line; equal as written is as good. Models in lines have no marks, for a mark would be of
    its column, and look as if it were of its line."""
    if spec.columns != "model" or spec.metric.startswith(CHOSEN):  # a setting is not good or bad
        return lines
    return [replace(line, entries=_best(spec.metric, line.entries)) for line in lines]


def _best(metric: str, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    if any(entry.cell.status == "not run" for entry in entries):
        return entries  # a model stands in other lines, swept over a key of its own, and may be better there
    rivals = [entry for entry in entries if math.isfinite(entry.cell.mean)]
    if metric in SENT:  # who sends nothing at all does not take part
        rivals = [entry for entry in rivals if entry.cell.mean]
    if rivals:  # who was measured on fewer rows, or failed more often, is compared with nobody
        most, least = (
            max(entry.cell.splits for entry in rivals),
            min(entry.cell.failed for entry in rivals),
        )
        rivals = [
            entry for entry in rivals if (entry.cell.splits, entry.cell.failed) == (most, least)
        ]
    if len({entry.mean for entry in rivals}) < 2:
        return entries  # nobody to be better than
    first = (min if smaller_is_better(metric) else max)(rivals, key=lambda entry: entry.cell.mean)
    return tuple(
        replace(entry, best=entry in rivals and entry.mean == first.mean) for entry in entries
    )


def _marks(metric: str, lines: Sequence[Line]) -> str:
    """What a mark says, if there is one."""
    if not any(entry.best for line in lines for entry in line.entries):
        return ""
    most = "smallest" if smaller_is_better(metric) else "largest"
    who = " of models that send" if metric in SENT else ""
    return f"the best of its line, which is the {most} mean{who}" + (
        FEWER if _passed_over(metric, lines) else ""
    )


def _passed_over(metric: str, lines: Sequence[Line]) -> bool:
    """Whether some mean is better than the marked one of its line."""
    sign = 1 if smaller_is_better(metric) else -1
    for line in lines:
        marked = [sign * entry.cell.mean for entry in line.entries if entry.best]
        others = [sign * entry.cell.mean for entry in line.entries if not entry.best]
        if metric in SENT:
            others = [mean for mean in others if mean]
        if marked and any(mean < min(marked) for mean in others):
            return True
    return False


def _notes(spec: TableSpec, cells: Cells, lines: list[Line]) -> list[str]:
    runs = sorted({entry.cell.runs for line in lines for entry in line.entries if entry.cell.runs})
    if not runs:
        return [f"No run has measured {spec.metric}."]
    over = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    notes = [f"Only {only_said(spec.where)}."] if spec.where else []
    notes += ["One run each." if runs == [1] else f"Mean ± standard deviation over {over} runs."]
    for column, values in cells.mixed().items():
        notes.append(
            f"Means run over {column} as well: {', '.join(value_said(value) for value in values)}."
        )
    missing = {entry.cell.status for line in lines for entry in line.entries} & {
        "not run",
        "not measured",
    }
    return notes + ([f"-: {' or '.join(sorted(missing, reverse=True))}."] if missing else [])


def _failures(rows: Sequence[Row]) -> list[str]:
    """Who failed or refused, how often, and what the first of them said."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row["status"] in ("failed", "not applicable"):
            found.setdefault((row["status"], row["model"], row["data"]), []).append(row)
    notes = []
    for (status, model, data), own in found.items():
        why = next((row["failure"] for row in own if row["failure"]), "no reason is known")
        if status == "failed":
            count = "1 run" if len(own) == 1 else f"{len(own)} runs"
            notes.append(f"{count} of {model} on {data} failed: {why}")
        else:
            notes.append(f"{model} is not applicable to {data}: {why}")
    return notes
