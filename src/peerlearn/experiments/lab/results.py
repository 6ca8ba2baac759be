"""The rows of a comparison, read again from its folder: everything that is shown is made of them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.experiments.lab.layout import (
    Conditions,
    Expectation,
    FigureSpec,
    Layout,
    StatisticsSpec,
    TableSpec,
)
from peerlearn.experiments.lab.metrics import METRICS
from peerlearn.experiments.lab.parquet import LISTS, SECONDS, TEXTS, TYPES, opened
from peerlearn.toml_reader import near

MOST_SHOWN = 30  # lines of the table in a notebook
CHOSEN = "best."  # how columns with what a search chose begin
ROWS, COMPARISON, PAGE = "results.parquet", "comparison.json", "report.html"
FACTS, NAMED = ("metrics", "runs"), ("data", "model", "network")  # that a description has at least
PARTS = {
    "tables": TableSpec,
    "figures": FigureSpec,
    "statistics": StatisticsSpec,
    "expectations": Expectation,
}


@dataclass(frozen=True, repr=False)
class Results:
    """One row per run, in the order of the file, and what is to be shown of them.

    order: the values of data, model, network and every swept key, as the file has them. facts:
    seed, folds,
    test_fraction, repetitions, metrics (if the file names none, those that were measured),
    protocol, search, swept, runs (how many there should be), words (of the protocol's measures and
    curves) and graphs (of the first repetition: each with its file, its network and the swept
    values of that).
    """

    folder: Path
    rows: list[dict[str, Any]]
    layout: Layout
    order: dict[str, list[Any]]
    facts: dict[str, Any]
    columns: tuple[str, ...] = ()  # of the rows, though there be none

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Results:
        """What `run` left there."""
        place = Path(folder).expanduser()
        layout, order, facts = read_description(place)
        file = place / ROWS
        if not file.exists():
            raise InputError(
                f"{place} has no {ROWS}, for none of its runs has ended: give the same run command again"
            )
        with opened(file) as stored:
            names = stored.schema_arrow.names
            if lacking := [name for name in (*TYPES, *SECONDS) if name not in names]:
                raise _not_ours(file, f"it has no column {lacking[0]}")
            rows: list[dict[str, Any]] = stored.read().to_pylist()
            measured = [name for name in names if _is_metric(name, order)]
        _check_rows(file, rows, names, order)
        chosen = [
            name for name in measured if name.startswith(CHOSEN)
        ]  # nobody asks for them, and all want to know
        metrics = list(dict.fromkeys([*(facts["metrics"] or measured), *chosen]))
        return cls(place, rows, layout, order, {**facts, "metrics": metrics}, tuple(names))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Results({_counted(self.rows)} of {self.folder.name or self.folder}{_statuses(self.rows)})"

    def _repr_html_(self) -> str:
        """Return a table for notebooks: means by data set, model, network and swept keys."""
        keys = [key for key in self.order if any(row.get(key) for row in self.rows)]
        metrics = [name for name in self.facts["metrics"] if not name.startswith(CHOSEN)]
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in self.rows:
            groups.setdefault(tuple(row.get(key) for key in keys), []).append(row)
        heads = "".join(f"<th>{escape(head)}</th>" for head in (*keys, "runs", *metrics))
        lines = []
        for group, rows in list(groups.items())[:MOST_SHOWN]:
            part = replace(self, rows=rows)
            cells = ["" if value is None else str(value) for value in group]
            cells.append(str(len(rows)))
            for metric in metrics:
                known = len(part.values(metric)) > 0
                text = f"{part.mean(metric):.4g} ± {part.spread(metric):.2g}" if known else "n/a"
                cells.append(text)
            lines.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
        body = "".join(f"<tr>{line}</tr>" for line in (heads, *lines))
        hidden = len(groups) - len(lines)
        more = f"<p>and {hidden:,} more lines: .frame() has all runs</p>" if hidden else ""
        return f"<p>{escape(repr(self))}</p><table>{body}</table>{more}"

    def frame(self) -> Any:
        """The rows as a data frame of pandas."""
        try:
            import pandas
        except ImportError:
            raise InputError(
                "a data frame needs the package pandas, which is not installed: pip install pandas"
            ) from None
        return pandas.DataFrame(self.rows, columns=list(self.columns) or None)

    def where(self, conditions: Conditions) -> Results:
        """Only the rows that have these values; a list stands for any of its values."""
        for column in conditions:
            self._check_known(column, "column")
        wanted = {
            column: value if isinstance(value, list | tuple) else [value]
            for column, value in conditions.items()
        }
        kept = [
            row
            for row in self.rows
            if all(row.get(column) in any_of for column, any_of in wanted.items())
        ]
        return replace(self, rows=kept)

    def values(self, metric: str, at: float | None = None) -> Array:
        """One number per run that is done and has it; of a curve its last point, or the one at or before `at`."""
        self._check_known(metric, "metric")
        if metric in TEXTS:
            raise InputError(
                f"{metric} is a text, of which there are no numbers: name a metric, such as seconds"
            )
        found = (_number(row, metric, at) for row in self.rows if row["status"] == "done")
        return np.array([number for number in found if number is not None], dtype=float)

    def mean(self, metric: str, at: float | None = None) -> float:
        """Over runs; not a number where there is none."""
        values = self.values(metric, at)
        return float(values.mean()) if len(values) else float("nan")

    def spread(self, metric: str, at: float | None = None) -> float:
        """The standard deviation over runs; zero of a single one."""
        values = self.values(metric, at)
        return deviation(values) if len(values) > 1 else 0.0 if len(values) else float("nan")

    def _check_known(self, name: str, what: str) -> None:
        """A name of some row, or one that the description has: at a smaller size a run may lack what others measure."""
        if name in self.columns or any(name in row for row in self.rows):
            return
        known = {*self.columns, *(key for row in self.rows for key in row), *self._described()}
        if name not in known:
            raise InputError(f"{name} is no {what} of these results{near(name, known)}")

    def _described(self) -> Iterator[str]:
        yield from (*TYPES, *SECONDS, *METRICS, *self.order, *self.facts.get("metrics", ()))
        for word in self.facts.get("words", {}):
            yield from (word, f"curve.{word}")
        for table in self.layout.tables:
            yield from (table.metric, *table.where)
        for figure in self.layout.figures:
            yield from (figure.y, *figure.where)
        for expectation in self.layout.expectations:
            yield from (expectation.metric, *expectation.where, *expectation.to)


def deviation(values: Array) -> float:
    """The standard deviation of a sample; of equal numbers none at all, where a rounded mean would leave some."""
    return 0.0 if (values == values[0]).all() else float(np.std(values, ddof=1))


def _counted(rows: list[dict[str, Any]]) -> str:
    return "1 run" if len(rows) == 1 else f"{len(rows):,} runs"


def _statuses(rows: list[dict[str, Any]]) -> str:
    found = Counter(row["status"] for row in rows)
    return (
        ": " + ", ".join(f"{number:,} {status}" for status, number in found.items())
        if found
        else ""
    )


def _check_rows(
    file: Path, rows: list[dict[str, Any]], names: list[str], order: Mapping[str, list[Any]]
) -> None:
    """They are of this description."""
    if not rows:
        raise _not_ours(file, "it has no rows")
    if lacking := [key for key in order if key not in names]:
        raise _not_ours(file, f"it has no column {lacking[0]}, which {COMPARISON} names")
    for column in NAMED:
        if strange := {row[column] for row in rows} - {"", *order[column]}:
            raise _not_ours(file, f"its {column} {min(map(repr, strange))} is not named there")


def _not_ours(file: Path, why: str) -> InputError:
    return InputError(
        f"{file} does not hold the rows of {COMPARISON} beside it ({why}): name a folder that a run has left, or give "
        "its run command again"
    )


def _number(row: Mapping[str, Any], metric: str, at: float | None) -> float | None:
    value = row.get(metric)
    if value is None:
        return None
    if not isinstance(value, list):
        return float(value)
    if not value:
        return None
    if at is None:
        return float(value[-1])
    places = row.get(f"{metric}.at") or range(len(value))
    before = [number for place, number in zip(places, value, strict=True) if place <= at]
    return float(before[-1]) if before else None


def _is_metric(name: str, order: Mapping[str, list[Any]]) -> bool:
    return name not in {*TYPES, *SECONDS, *order} and not name.startswith(LISTS)


def description(layout: Layout, order: Mapping[str, list[Any]], facts: Mapping[str, Any]) -> str:
    """comparison.json: what is shown and in which order."""
    return (
        json.dumps(
            {"layout": asdict(layout), "order": order, **facts}, indent=2, ensure_ascii=False
        )
        + "\n"
    )


def read_description(folder: Path) -> tuple[Layout, dict[str, list[Any]], dict[str, Any]]:
    file = folder / COMPARISON
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        shown, order = facts.pop("layout"), facts.pop("order")
        for name, kind in PARTS.items():
            shown[name] = tuple(_made(kind, each) for each in shown[name])
        layout, missing = _made(Layout, shown), [name for name in FACTS if name not in facts]
        missing += [name for name in NAMED if name not in order]
    except FileNotFoundError:
        way_out = "make it with peerlearn run FILE, or name the folder that a run has left"
        raise InputError(
            f"{folder} does not hold results, for it has no {COMPARISON}: {way_out}"
        ) from None
    except OSError as error:
        raise InputError(
            f"{file} cannot be read ({error.strerror}): give a folder that this user may read"
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        told = f"{type(error).__name__}: {error}"
        raise InputError(
            f"{file} is not as a run writes it ({told}): give the same run command again"
        ) from None
    if missing:
        raise InputError(
            f"{file} does not say {missing[0]}, as a run does: name a folder that a run has left"
        )
    return layout, order, facts


def _made(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """A spec of its values in JSON, where tuples have become lists."""
    texts = {each.name for each in fields(kind) if "tuple" in str(each.type)}
    return kind(
        **{name: tuple(value) if name in texts else value for name, value in values.items()}
    )
