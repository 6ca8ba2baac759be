"""Tables and figures of a comparison that names none, and axes that can be logarithmic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from peerlearn.lab.analysis.cells import Cells, Place, Row, known_value, number, select_rows
from peerlearn.lab.description.metrics import METRICS
from peerlearn.lab.description.reliability import EVENTS
from peerlearn.lab.description.reliability import SHARES as SHARE_OF_EVENTS
from peerlearn.lab.description.specs import FigureKind, FigureSpec, TableSpec
from peerlearn.lab.results.parquet import CURVE

if TYPE_CHECKING:
    from peerlearn.lab.results.results import Results

SHARES = ("error", "balanced_error")  # shown in percent
APART = (
    "data",
    "model",
    "network",
    "repetition",
    "fold",
)  # what tells runs apart beside what is swept
EQUAL = 1e-9  # numbers that differ by less, of the larger, differ by rounding
ENOUGH = 4  # runs that a box is drawn of; fewer are a bar


def tables_to_show(results: Results) -> tuple[TableSpec, ...]:
    """Return the tables of the layout, or one per metric."""
    if results.layout.tables:
        return results.layout.tables
    rows = ("data", *varied_column(results, "network"), *swept_keys(results))
    return tuple(
        TableSpec(metric, metric, rows, unit=unit_of(metric)) for metric in metrics_found(results)
    )


def figures_to_show(results: Results) -> tuple[FigureSpec, ...]:
    """Return the figures of the layout or the usual ones, and a diagram per Friedman test."""
    units = {table.metric: table.unit for table in tables_to_show(results)}
    figures = tuple(
        replace(figure, unit=figure.unit or units.get(figure.y, unit_of(figure.y)))
        for figure in results.layout.figures or _figures(results)
    )
    drawn = {figure.y for figure in figures if figure.kind == "ranks"}
    tests = [
        each.metric
        for each in results.layout.statistics
        if "friedman" in each.tests and each.metric not in drawn
    ]
    return (
        *figures,
        *(FigureSpec(f"ranks-{metric}", "ranks", metric) for metric in dict.fromkeys(tests)),
    )


def _figures(results: Results) -> list[FigureSpec]:
    """Return lines over each swept key that a metric varies over, agents first; else boxes.

    Where runs are few, boxes are bars. Each network has its own figures.
    """
    keys = sorted(swept_keys(results), key=lambda key: key != "agents")
    kind: FigureKind = "boxes" if _runs_per_cell(results) >= ENOUGH else "bars"
    drawn = list[FigureSpec]()
    for metric in metrics_found(results):
        lines = [figure for key in keys for figure in _against(results, metric, key)]
        drawn += lines or _each_network(
            results, FigureSpec(metric, kind, metric, unit=unit_of(metric))
        )
    for name in curves(results):
        kind = "reliability" if name == CURVE + SHARE_OF_EVENTS else "curves"
        if name != CURVE + EVENTS:  # a number beside the other
            drawn += _each_network(results, FigureSpec(name.removeprefix(CURVE), kind, name))
    return drawn


def _each_network(results: Results, figure: FigureSpec) -> list[FigureSpec]:
    if not varied_column(results, "network"):
        return [figure]
    return [
        replace(figure, name=f"{figure.name}-{name}", where={"network": name, **figure.where})
        for name in results.order["network"]
    ]


def _against(results: Results, metric: str, key: str) -> list[FigureSpec]:
    """Return the metric over a swept key, if it varies over it.

    Shown are models that have the key and, as levels, those that have no swept key. A model that
    has another one only would be a mean over all its values, which says nothing here.
    """
    whole = FigureSpec(f"{metric}-against-{key}", "lines", metric, key, unit=unit_of(metric))
    others = swept_keys(results)
    of_network = any(row["network"] for row in results.rows if known_value(row, key) is not None)
    found = []
    for figure in _each_network(results, whole) if of_network else [whole]:
        rows = select_rows(results, figure.where)
        if not _varies(rows, metric, key, others):
            continue
        models = results.order["model"]
        shown = []
        for model in models:
            own = [row for row in rows if row["model"] == model]
            is_level = not any(_several(own, each) for each in ("network", *others))
            if _several(own, key) or is_level:
                shown.append(model)
        only = {} if len(shown) == len(models) else {"model": shown}
        found.append(replace(figure, where={**figure.where, **only}))
    return found


def _varies(rows: Sequence[Row], metric: str, key: str, keys: Sequence[str]) -> bool:
    """Return whether runs that differ in that key alone have different numbers."""
    same = [*APART, *(each for each in keys if each != key)]
    found: dict[Place, list[float]] = {}
    for row in rows:
        value = (
            number(row, metric)
            if row["status"] == "done" and known_value(row, key) is not None
            else None
        )
        if value is not None:
            found.setdefault(tuple(known_value(row, column) for column in same), []).append(value)
    return any(max(own) - min(own) > EQUAL * max(map(abs, own)) for own in found.values())


def _several(rows: Sequence[Row], key: str) -> bool:
    return len({known_value(row, key) for row in rows} - {None}) > 1


def metrics_found(results: Results) -> list[str]:
    """Return the metrics that some run has, seconds, and what was sent if anything was."""
    asked = [*results.facts.get("metrics", ()), *METRICS, *results.facts.get("words", {})]
    found = [name for name in dict.fromkeys(asked) if _has(results, name)]
    if not any(row["status"] == "done" for row in results.rows):
        # All runs have failed. The metrics that were asked for are shown, to say so.
        found = list(results.facts.get("metrics", ()))
    sent = any(row.get("bytes") for row in results.rows)
    return list(dict.fromkeys([*found, "seconds", *(("bytes",) if sent else ())]))


def curves(results: Results) -> list[str]:
    names = dict.fromkeys(name for row in results.rows for name in row if name.startswith(CURVE))
    return [name for name in names if not name.endswith(".at") and _has(results, name)]


def swept_keys(results: Results) -> list[str]:
    """Return the keys that have more than one value."""
    return [
        key
        for key in results.order
        if key not in ("data", "model", "network") and varied_column(results, key)
    ]


def varied_column(results: Results, column: str) -> tuple[str, ...]:
    """Return the column if it tells runs apart, else none."""
    return (column,) if _several(results.rows, column) else ()


def unit_of(metric: str) -> str:
    if metric in SHARES:
        return "%"
    return "MB" if metric == "bytes" else ""


def _has(results: Results, name: str) -> bool:
    return any(row.get(name) is not None for row in results.rows)


def _runs_per_cell(results: Results) -> int:
    cells: dict[tuple[str, ...], int] = {}
    for row in results.rows:
        place = (row["data"], row["model"], row["network"])
        cells[place] = cells.get(place, 0) + 1
    return max(cells.values(), default=0)


def drawable(results: Results, spec: FigureSpec) -> tuple[FigureSpec, list[str]]:
    """Return the figure with the logarithmic axes it can have, and why others are linear."""
    drawn = {"x": _across, "y": _up}
    linear = []
    for axis in spec.log:
        numbers = drawn[axis](results, spec)
        if any(number <= 0 for number in numbers):
            linear.append(axis)
    kept = "".join(axis for axis in spec.log if axis not in linear)
    why = "is linear, because it has values of zero or less"
    return replace(spec, log=kept), [f"The axis of {axis} {why}." for axis in linear]


def _across(results: Results, spec: FigureSpec) -> Iterator[float]:
    if spec.kind == "curves":
        for row in _cells(results, spec).rows:
            at = row.get(f"{_metric(spec)}.at")
            values = row.get(_metric(spec))
            yield from at or (range(1) if values else ())
    elif spec.kind == "lines":
        yield from (
            value
            for value in _cells(results, spec).values(spec.x)
            if isinstance(value, int | float)
        )


def _up(results: Results, spec: FigureSpec) -> Iterator[float]:
    """Yield what is drawn: means, or all runs of boxes."""
    cells = _cells(results, spec)
    for place, rows in cells.groups.items():
        cell = cells.at(place)
        if spec.kind == "boxes":
            yield from cell.values
        elif spec.kind == "curves":
            curves: list[Any] = [row[_metric(spec)] for row in rows if row.get(_metric(spec))]
            yield from (float(np.mean(points)) for points in zip(*curves, strict=False))
        elif cell.runs:
            yield cell.mean


def _metric(spec: FigureSpec) -> str:
    return f"{CURVE}{spec.y.removeprefix(CURVE)}" if spec.kind == "curves" else spec.y


def _cells(results: Results, spec: FigureSpec) -> Cells:
    columns = [column for column in (spec.panels, spec.series, spec.x) if column]
    return Cells.of(results, _metric(spec), columns, spec.where)
