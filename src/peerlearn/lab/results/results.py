"""The rows of a comparison, read from its folder. Everything in a report is made from them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.lab.description.metrics import METRICS
from peerlearn.lab.description.specs import Conditions, Layout
from peerlearn.lab.results.comparison_file import COMPARISON, read_description
from peerlearn.lab.results.parquet import (
    FAILED,
    LISTS,
    NAMES,
    NOT_APPLICABLE,
    NUMBERS,
    ROWS,
    TEXTS,
    TYPES,
    open_parquet,
)
from peerlearn.toml_reader import near

MOST_SHOWN = 30  # lines of the table in a notebook
CHOSEN = "best."  # prefix of the columns with the settings that a search chose
PAGE = "report.html"
MOST_TOLD = 10  # kinds of failure that are listed one by one


@dataclass(frozen=True, repr=False)
class Results:
    """The results of a comparison: one row per run, and what the report shows of them.

    `run` returns them, and `Results.read` reads them from a folder.

    Parameters
    ----------
    folder : Path
        Where the files are.
    rows : list of dict
        One dictionary per run, by column, in the order of the comparison.
    layout : Layout
        Tables, figures, tests and expectations of the comparison.
    order : dict of str to list
        Values of data, model, network and every swept key, in the order of the comparison.
    facts : dict
        seed, folds, test_fraction, repetitions, metrics (if none were asked for, those that were
        measured), protocol, search, swept, runs (how many there should be), words (for the
        protocol's measures and curves) and graphs (those of the first repetition, each with its
        file, its network and the swept values of that network).
    columns : tuple of str, default ()
        Names of the columns, also if there are no rows.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from peerlearn.lab import Comparison, Data, Model, Results, run
    >>> majority = Model("majority", kind="sklearn.dummy.DummyClassifier")
    >>> comparison = Comparison(data=(Data("iris"), Data("wine")), models=(majority,), folds=3)
    >>> with TemporaryDirectory() as folder:
    ...     _ = run(comparison, folder, jobs=1)
    ...     results = Results.read(folder)
    >>> len(results), len(results.where({"data": "iris"}))
    (6, 3)
    >>> round(results.where({"data": "iris"}).mean("error"), 2)
    0.68
    """

    folder: Path
    rows: list[dict[str, Any]]
    layout: Layout
    order: dict[str, list[Any]]
    facts: dict[str, Any]
    columns: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Results:
        """Return the results that `run` left in a folder."""
        place = Path(folder).expanduser()
        layout, order, facts = read_description(place)
        file = place / ROWS
        if not file.exists():
            raise InputError(
                f"{place} has no {ROWS}, because none of its runs has ended: give the same run "
                "command again"
            )
        with open_parquet(file) as stored:
            names = stored.schema_arrow.names
            for name in (*TYPES, *NUMBERS):
                if name not in names and name != "bound":  # runs of 0.6 have none
                    raise _not_ours(file, f"it has no column {name}")
            rows: list[dict[str, Any]] = stored.read().to_pylist()
            measured = [name for name in names if _is_metric(name, order)]
        _check_rows(file, rows, names, order)
        # Settings that a search chose are shown even if the file does not ask for them.
        chosen = [name for name in measured if name.startswith(CHOSEN)]
        metrics = list(dict.fromkeys([*(facts["metrics"] or measured), *chosen]))
        return cls(place, rows, layout, order, {**facts, "metrics": metrics}, tuple(names))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        folder = self.folder.name or self.folder
        return f"Results({_count_runs(self.rows)} of {folder}{_count_statuses(self.rows)})"

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
        more = f"<p>and {hidden:,} more lines: .to_pandas() has all runs</p>" if hidden else ""
        return f"<p>{escape(repr(self))}</p><table>{body}</table>{more}"

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame."""
        try:
            import pandas
        except ImportError:
            raise InputError(
                "a data frame needs the package pandas, which is not installed: pip install pandas"
            ) from None
        return pandas.DataFrame(self.rows, columns=list(self.columns) or None)

    frame = to_pandas  # its name in 0.6

    def where(self, conditions: Conditions) -> Results:
        """Return the results of the runs with these values. A list means any of its values."""
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
        """Return the metric of each run that is done and has it.

        Of a curve it is the last point, or the last one up to `at`.
        """
        self._check_known(metric, "metric")
        if metric in TEXTS:
            raise InputError(f"{metric} is text and has no numbers: name a metric, such as seconds")
        found = (_number(row, metric, at) for row in self.rows if row["status"] == "done")
        return np.array([number for number in found if number is not None], dtype=float)

    def mean(self, metric: str, at: float | None = None) -> float:
        """Return the mean over runs; NaN if there are no runs."""
        values = self.values(metric, at)
        return float(values.mean()) if len(values) else float("nan")

    def spread(self, metric: str, at: float | None = None) -> float:
        """Return the standard deviation over runs; 0 for a single run."""
        values = self.values(metric, at)
        if not len(values):
            return float("nan")
        return deviation(values) if len(values) > 1 else 0.0

    def _check_known(self, name: str, what: str) -> None:
        """Check that a row or the description has this name.

        The description counts too, because runs at a smaller size may lack some columns.
        """
        if name in self.columns or any(name in row for row in self.rows):
            return
        known = {
            *self.columns,
            *(key for row in self.rows for key in row),
            *self._described_names(),
        }
        if name not in known:
            raise InputError(f"{name} is no {what} of these results{near(name, known)}")

    def _described_names(self) -> Iterator[str]:
        yield from (*TYPES, *NUMBERS, *METRICS, *self.order, *self.facts.get("metrics", ()))
        for word in self.facts.get("words", {}):
            yield from (word, f"curve.{word}")
        for table in self.layout.tables:
            yield from (table.metric, *table.where)
        for figure in self.layout.figures:
            yield from (figure.y, *figure.where)
        for expectation in self.layout.expectations:
            yield from (expectation.metric, *expectation.where, *expectation.to)


def deviation(values: Array) -> float:
    """Return the standard deviation of a sample; exactly 0 if all numbers are equal."""
    return 0.0 if (values == values[0]).all() else float(np.std(values, ddof=1))


def _count_runs(rows: list[dict[str, Any]]) -> str:
    return "1 run" if len(rows) == 1 else f"{len(rows):,} runs"


def _count_statuses(rows: list[dict[str, Any]]) -> str:
    found = Counter(row["status"] for row in rows)
    if not found:
        return ""
    return ": " + ", ".join(f"{number:,} {status}" for status, number in found.items())


def _check_rows(
    file: Path, rows: list[dict[str, Any]], names: list[str], order: Mapping[str, list[Any]]
) -> None:
    """Check that the rows are those of this description."""
    if not rows:
        raise _not_ours(file, "it has no rows")
    for key in order:
        if key not in names:
            raise _not_ours(file, f"it has no column {key}, which {COMPARISON} names")
    for column in NAMES:
        strange = {row[column] for row in rows} - {"", *order[column]}
        if strange:
            raise _not_ours(file, f"its {column} {min(map(repr, strange))} is not named there")


def _not_ours(file: Path, why: str) -> InputError:
    return InputError(
        f"{file} does not hold the rows of {COMPARISON} beside it ({why}): name a folder that a "
        "run has left, or give its run command again"
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
    return name not in {*TYPES, *NUMBERS, *order} and not name.startswith(LISTS)


def counts(results: Results) -> str:
    """Return how runs ended: "96 runs: 90 done, 4 not applicable, 2 failed"."""
    found = Counter(row["status"] for row in results.rows)
    missing = results.facts["runs"] - len(results.rows)
    parts = [f"{found['done']:,} done"]
    parts += [f"{found[status]:,} {status}" for status in (NOT_APPLICABLE, FAILED) if found[status]]
    parts += [f"{missing:,} not made yet"] if missing else []
    runs = results.facts["runs"]
    return f"{runs:,} {'run' if runs == 1 else 'runs'}: {', '.join(parts)}"


def failures(results: Results) -> list[str]:
    """Return a line for each kind of failure, and how many more there are after MOST_TOLD."""
    found = Counter(
        (row["model"], row["data"], row["network"], row["failure"])
        for row in results.rows
        if row["status"] == FAILED
    )
    lines = []
    for (model, data, network, error), number in found.items():
        over = f" over {network}" if network else ""
        lines.append(f"{number:,} of {model} on {data}{over}: {error}")
    more = [f"and {len(lines) - MOST_TOLD} more, in the report"] if len(lines) > MOST_TOLD else []
    return lines[:MOST_TOLD] + more
