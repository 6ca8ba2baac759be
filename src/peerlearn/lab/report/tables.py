"""Tables of a comparison: mean and spread of a metric over runs, and notes on what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from peerlearn.lab.analysis.cells import Cells, Row, rows_of_task, select_rows
from peerlearn.lab.analysis.labels import (
    conditions_label,
    factor,
    in_words,
    value_label,
    with_unit,
)
from peerlearn.lab.analysis.significance import examine
from peerlearn.lab.description.specs import TableSpec
from peerlearn.lab.report.defaults import tables_to_show
from peerlearn.lab.report.table_entries import (
    Line,
    MetricTable,
    explain_marks,
    mark_best,
    write_lines,
)
from peerlearn.lab.report.table_text import print_table
from peerlearn.lab.results.results import Results

NAMED = ("data", "model", "network")  # columns that are no keys of the file


def tables_of(results: Results) -> list[MetricTable]:
    """Return the tables of the layout, or one per metric."""
    return [table_of(results, spec) for spec in tables_to_show(results)]


def show(console: Console, results: Results) -> None:
    """Print all tables, what is missing in them, and the tests."""
    for table in tables_of(results):
        print_table(console, table)
    missing = _failures(results.rows)
    if missing:
        missing = [*missing, ""]
    for line in missing:
        console.print(line, markup=False, style="dim", soft_wrap=True)
    for spec in results.layout.statistics:
        found = examine(results, spec)
        for line in (f"Tests of {found.title}", *found.sentences, ""):
            console.print(line, markup=False, style="bold" if line.startswith("Tests of") else None)


def table_of(results: Results, spec: TableSpec) -> MetricTable:
    words = results.facts.get("words", {})
    rows = rows_of_task(select_rows(results, spec.where), spec.metric)
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
    lines = mark_best(spec, write_lines(grid, factor(spec.unit)))
    title = spec.title or _capital(with_unit(in_words(spec.metric, words), spec.unit))
    if spec.unit and spec.unit not in title:
        title += f", {spec.unit}"
    return MetricTable(
        spec,
        title,
        tuple(_head(column) for column in spec.rows),
        tuple(columns),
        tuple(value_label(column) for column in columns),
        tuple(lines),
        tuple(_notes(spec, cells, lines)),
        explain_marks(spec.metric, lines),
        tuple(_failures(cells.rows)),
    )


def _head(column: str) -> str:
    """Return a heading: names in words, keys as they are in the file."""
    return _capital(in_words(column)) if column in NAMED else column


def _capital(text: str) -> str:
    return text if "." in text else text[:1].upper() + text[1:]


def _notes(spec: TableSpec, cells: Cells, lines: list[Line]) -> list[str]:
    runs = sorted({entry.cell.runs for line in lines for entry in line.entries if entry.cell.runs})
    if not runs:
        return [f"No run has measured {spec.metric}."]
    over = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    notes = [f"Only {conditions_label(spec.where)}."] if spec.where else []
    notes += ["One run each." if runs == [1] else f"Mean ± standard deviation over {over} runs."]
    for column, values in cells.mixed().items():
        notes.append(
            f"Means run over {column} as well: {', '.join(value_label(value) for value in values)}."
        )
    missing = {entry.cell.status for line in lines for entry in line.entries} & {
        "not run",
        "not measured",
    }
    return notes + ([f"-: {' or '.join(sorted(missing, reverse=True))}."] if missing else [])


def _failures(rows: Sequence[Row]) -> list[str]:
    """Return who failed or refused, how often, and the first sentence."""
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
