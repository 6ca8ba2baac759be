"""What is shown of a comparison that does not say: a table per metric, and figures over what was swept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peerlearn.experiments.lab.layout import FigureKind, FigureSpec, TableSpec
from peerlearn.experiments.lab.metrics import METRICS
from peerlearn.experiments.lab.report.cells import known
from peerlearn.experiments.lab.report.labels import CURVE

if TYPE_CHECKING:
    from peerlearn.experiments.lab.results import Results

SHARES = ("error", "balanced_error")  # shown in percent
ENOUGH = 4  # runs that a box is drawn of; fewer are a bar


def shown_tables(results: Results) -> tuple[TableSpec, ...]:
    if results.layout.tables:
        return results.layout.tables
    rows = ("data", *varied(results, "network"), *swept(results))
    return tuple(TableSpec(metric, metric, rows, unit=unit_of(metric)) for metric in measured(results))


def shown_figures(results: Results) -> tuple[FigureSpec, ...]:
    """The critical-difference diagram of every Friedman test is among them, whoever asked for the others."""
    units = {table.metric: table.unit for table in shown_tables(results)}
    figures = tuple(
        replace(figure, unit=figure.unit or units.get(figure.y, unit_of(figure.y)))
        for figure in results.layout.figures or _figures(results)
    )
    drawn = {figure.y for figure in figures if figure.kind == "ranks"}
    tests = [each.metric for each in results.layout.statistics if "friedman" in each.tests and each.metric not in drawn]
    return (*figures, *(FigureSpec(f"ranks-{metric}", "ranks", metric) for metric in dict.fromkeys(tests)))


def _figures(results: Results) -> list[FigureSpec]:
    """Lines over the first key that was swept, else boxes, or bars where runs are few; each network in its own."""
    keys, drawn = swept(results), list[FigureSpec]()
    kind: FigureKind = "lines" if keys else "boxes" if _runs_per_cell(results) >= ENOUGH else "bars"
    for metric in measured(results):
        name, x = (f"{metric}-against-{keys[0]}", keys[0]) if keys else (metric, "")
        drawn.append(FigureSpec(name, kind, metric, x, unit=unit_of(metric)))
    drawn += [FigureSpec(name.removeprefix(CURVE), "curves", name) for name in curves(results)]
    if not varied(results, "network"):
        return drawn
    networks = results.order["network"]
    return [replace(each, name=f"{each.name}-{name}", where={"network": name}) for each in drawn for name in networks]


def measured(results: Results) -> list[str]:
    """The metrics that some run has, seconds, and what was sent if anything was."""
    asked = [*results.facts.get("metrics", ()), *METRICS, *results.facts.get("words", {})]
    found = [name for name in dict.fromkeys(asked) if _has(results, name)]
    if not any(row["status"] == "done" for row in results.rows):
        found = list(results.facts.get("metrics", ()))  # so that there is a place to say that all have failed
    return [*found, "seconds", *(("bytes",) if any(row.get("bytes") for row in results.rows) else ())]


def curves(results: Results) -> list[str]:
    names = dict.fromkeys(name for row in results.rows for name in row if name.startswith(CURVE))
    return [name for name in names if not name.endswith(".at") and _has(results, name)]


def swept(results: Results) -> list[str]:
    """Keys that have more than one value."""
    return [key for key in results.order if key not in ("data", "model", "network") and varied(results, key)]


def varied(results: Results, column: str) -> tuple[str, ...]:
    """The column if it tells runs apart, else none."""
    return (column,) if len({known(row, column) for row in results.rows} - {None}) > 1 else ()


def unit_of(metric: str) -> str:
    return "%" if metric in SHARES else "MB" if metric == "bytes" else ""


def _has(results: Results, name: str) -> bool:
    return any(row.get(name) is not None for row in results.rows)


def _runs_per_cell(results: Results) -> int:
    cells: dict[tuple[str, ...], int] = {}
    for row in results.rows:
        place = (row["data"], row["model"], row["network"])
        cells[place] = cells.get(place, 0) + 1
    return max(cells.values(), default=0)
