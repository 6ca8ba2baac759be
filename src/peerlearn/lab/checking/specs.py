"""Checks of tables, figures, tests and expectations against what the runs will have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import isfinite
from typing import Any

from peerlearn.arrays import is_real
from peerlearn.data.dataset import Task
from peerlearn.lab.description.comparison import Comparison
from peerlearn.lab.description.metrics import METRICS, USUAL
from peerlearn.lab.description.reliability import SHARES
from peerlearn.lab.description.specs import FACTORS, Expectation, FigureSpec, Layout
from peerlearn.lab.file.fields import check_fields
from peerlearn.lab.results.parquet import CURVE
from peerlearn.toml_reader import TomlTable, near

ALWAYS = (
    "seconds",
    "total_seconds",
    "rounds",
    "messages",
    "bytes",
    "iterations",
    "converged",
    "bound",
)  # of every row
UNITS = (*FACTORS, "dB")
TESTS = ("wilcoxon", "friedman")
LOGS = ("", "x", "y", "xy")


def check_layout(comparison: Comparison, told: str, tasks: Collection[Task] = ()) -> None:
    """Check metrics, columns and values of all that is shown.

    tasks: those of all data sets, if known.
    """
    layout = comparison.layout
    columns = columns_of(comparison)
    metrics = _Metrics(_metrics(comparison), tasks, comparison)
    for key, specs in (("tables", layout.tables), ("figures", layout.figures)):
        _check_names(key, [spec.name for spec in specs], told)
    for spec in layout.tables:
        table = TomlTable({}, told, f"tables[{spec.name!r}].")
        metrics.check(spec.metric, table, "metric")
        _check_unit(spec.unit, spec.metric, table)
        for column in spec.rows:
            _one_of(column, columns, table, "rows")
        _one_of(spec.columns, columns, table, "columns")
        _check_where(spec.where, columns, table, "where")
    for figure in layout.figures:
        _check_figure(
            figure, comparison, metrics, TomlTable({}, told, f"figures[{figure.name!r}].")
        )
    for place, test in enumerate(layout.statistics, 1):
        table = TomlTable({}, told, f"statistics[{place}].")
        metrics.check(test.metric, table, "metric")
        if not test.tests:
            raise table.wrong("tests", f"is empty: name one or more of {', '.join(TESTS)}")
        for name in test.tests:
            _one_of(name, TESTS, table, "tests")
        for column in test.over:
            _one_of(
                column, [each for each in columns if each != "model"], table, "over"
            )  # models are what is tested
        if not is_real(test.level) or not 0 < test.level < 1:
            raise table.wrong(
                "level", f"is {test.level!r}: give a number between 0 and 1, such as 0.05"
            )
    for expectation in layout.expectations:
        _check_expectation(
            expectation,
            comparison,
            metrics,
            TomlTable({}, told, f"expect[{expectation.source!r}]."),
        )


def check_types(layout: Layout, told: str) -> Layout:
    """Return the layout with every field of the type that a file must have."""
    check_fields(layout, TomlTable({}, told, "layout."))
    parts: dict[str, Any] = {}
    for key in ("tables", "figures", "statistics"):
        specs = enumerate(getattr(layout, key), 1)
        parts[key] = tuple(
            check_fields(spec, TomlTable({}, told, f"{key}[{getattr(spec, 'name', place)!r}]."))
            for place, spec in specs
        )
    expected = (
        check_fields(each, TomlTable({}, told, f"expect[{each.source!r}]."))
        for each in layout.expectations
    )
    return replace(layout, expectations=tuple(expected), **parts)


def columns_of(comparison: Comparison) -> dict[str, list[Any]]:
    """Return the columns that tell rows apart, with the values that there will be."""
    columns: dict[str, list[Any]] = {
        "data": [data.name for data in comparison.data],
        "model": [model.name for model in comparison.models],
        "network": ["", *(net.name for net in comparison.networks)],
        "agents": [1, *(net.agents for net in comparison.networks)],
        "repetition": list(range(comparison.repetitions)),
        "fold": list(range(comparison.folds)),
    }
    for entry in chain.from_iterable(comparison.entries.values()):
        for key, value in entry.swept.items():
            columns.setdefault(key, []).append(value)
    return columns


def metrics_to_measure(comparison: Comparison, tasks: Iterable[Task]) -> tuple[str, ...]:
    """Return all that is to be measured: the metrics asked for or usual, and those shown."""
    layout = comparison.layout
    shown = [table.metric for table in layout.tables] + [figure.y for figure in layout.figures]
    shown += [test.metric for test in layout.statistics] + [
        each.metric for each in layout.expectations
    ]
    if CURVE + SHARES in shown:
        shown.append("log_loss")  # has the curve beside it
    measured = [name for name in shown if name in METRICS or name in comparison.protocol.measures]
    if not comparison.metrics and not measured:
        return ()
    usual = [name for task in sorted(tasks) for name in USUAL[task]]
    return tuple(dict.fromkeys([*(comparison.metrics or usual), *measured]))


def _metrics(comparison: Comparison) -> list[str]:
    found = [
        *METRICS,
        *comparison.protocol.measures,
        *ALWAYS,
        *(CURVE + name for name in comparison.protocol.curves),
    ]
    return found + [f"best.{key}" for key in (comparison.search.grid if comparison.search else ())]


@dataclass(frozen=True)
class _Metrics:
    known: Sequence[str]
    tasks: Collection[Task]
    comparison: Comparison

    def check(self, given: str, table: TomlTable, key: str) -> None:
        """Check that a metric exists, and that a data set has it."""
        _one_of(given, self.known, table, key)
        own = self.comparison.protocol.measures
        metric = METRICS.get(given)
        if self.tasks and metric is not None and given not in own and metric.task not in self.tasks:
            of_task = [name for name, each in METRICS.items() if each.task in self.tasks]
            raise table.wrong(
                key,
                f"is {given!r}, which is of {metric.task}, and no data set is: choose from "
                f"{', '.join(of_task)}",
            )


def _check_names(key: str, names: Sequence[str], told: str) -> None:
    """Check names that files will have."""
    folded = [name.casefold() for name in names]
    for name in names:
        table = TomlTable({}, told, f"{key}[{name!r}].")
        if not name.strip() or set(name) & set("/\\\0"):
            raise table.wrong(
                "name", "cannot be the name of a file: give letters, without / and \\"
            )
        if folded.count(name.casefold()) > 1:
            raise table.wrong("name", "stands twice: files are named by it")


def _check_figure(
    figure: FigureSpec, comparison: Comparison, metrics: _Metrics, table: TomlTable
) -> None:
    columns = columns_of(comparison)
    curves = [CURVE + name for name in comparison.protocol.curves]
    if figure.kind == "curves":
        _one_of(figure.y, curves, table, "y")
    elif figure.kind == "reliability":
        _one_of(figure.y, [each for each in curves if each == CURVE + SHARES], table, "y")
    else:
        metrics.check(figure.y, table, "y")
    _check_unit(figure.unit, figure.y, table)
    if figure.kind == "lines" and not figure.x:
        raise table.wrong(
            "x", f"is missing: name the column that lines run along{near('', columns)}"
        )
    for key in ("x", "series", "panels"):
        if getattr(figure, key):
            _one_of(getattr(figure, key), columns, table, key)
    _one_of(figure.log, LOGS, table, "log")
    _check_where(figure.where, columns, table, "where")


def _check_expectation(
    expectation: Expectation, comparison: Comparison, metrics: _Metrics, table: TomlTable
) -> None:
    columns = columns_of(comparison)
    metrics.check(expectation.metric, table, "metric")
    _check_where(expectation.where, columns, table, "where")
    _check_where(expectation.to, columns, table, "to")
    if expectation.value is None and expectation.relation is None:
        raise table.wrong(
            "value", "is missing: give the number, or a relation and the rows it is to"
        )
    for key in ("value", "spread", "within"):
        value = getattr(expectation, key)
        if value is not None and (
            not is_real(value) or not isfinite(value) or (key != "value" and value < 0)
        ):
            raise table.wrong(
                key, f"is {value!r}: give a number" + (" of 0 or more" if key != "value" else "")
            )
    if expectation.value is not None and expectation.to:
        raise table.wrong(
            "to", "stands beside a value: give one of them, and another [[expect]] for the other"
        )
    if expectation.value is not None and expectation.relation == "equal":
        raise table.wrong(
            "relation", "is 'equal' to a value: say by `spread` how far from it our mean may be"
        )
    if (
        expectation.value is not None
        and expectation.relation is None
        and expectation.spread is None
    ):
        raise table.wrong("spread", "is missing: say how far from the value our mean may be")
    if expectation.relation is not None and expectation.value is None and not expectation.to:
        raise table.wrong("to", "is missing: say which rows the relation is to")
    if expectation.at is not None and not expectation.metric.startswith(CURVE):
        raise table.wrong(
            "at", f"goes with a curve, and {expectation.metric} is none: leave it out"
        )


def _check_where(
    where: Mapping[str, Any], columns: Mapping[str, list[Any]], table: TomlTable, key: str
) -> None:
    for column, wanted in where.items():
        if column not in columns:
            raise table.wrong(
                f"{key}.{column}", f"is no column of the results{near(column, columns)}"
            )
        if isinstance(wanted, list | tuple) and not wanted:
            raise table.wrong(
                f"{key}.{column}", "is an empty list, which no run has: give one value or more"
            )
        for value in wanted if isinstance(wanted, list | tuple) else [wanted]:
            if value not in columns[column]:
                hint = near(str(value), {str(each) for each in columns[column]})
                raise table.wrong(f"{key}.{column}", f"is {value!r}, which no run will have{hint}")


def _check_unit(unit: str, metric: str, table: TomlTable) -> None:
    if unit and unit not in UNITS:
        raise table.wrong(
            "unit",
            f"is {unit!r}, which is not known: give one of {', '.join(UNITS)}, or leave it out",
        )
    if unit == "MB" and metric != "bytes":
        raise table.wrong(
            "unit", f"is 'MB', which is for bytes, and {metric} is none of these: leave it out"
        )


def _one_of(given: str, known: Iterable[str], table: TomlTable, key: str) -> None:
    known = list(known)
    if given not in known:
        raise table.wrong(key, f"is {given!r}, which is not known{near(given, known)}")
