"""What is shown of a comparison: title, tables, figures, tests and expectations.

Kept as comparison.json beside the rows, so that everything is drawn again from files alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

FigureKind = Literal["lines", "boxes", "bars", "curves", "ranks"]
Relation = Literal["below", "above", "equal"]
FACTORS = {"%": 100.0, "MB": 1e-6}  # by unit; other units are only named
Conditions = Mapping[str, Any]  # column -> value; rows must have all of them


@dataclass(frozen=True)
class TableSpec:
    """Mean and spread of a metric: a line per value of `rows`, a column per value of `columns`."""

    name: str
    metric: str
    rows: tuple[str, ...] = ("data", "network")
    columns: str = "model"
    title: str = ""
    unit: str = ""  # "%": times a hundred; "MB": bytes in megabytes
    where: Conditions = field(default_factory=dict)


@dataclass(frozen=True)
class FigureSpec:
    """A figure, with a panel per value of `panels` and a line per value of `series`.

    lines: y against the column x; curves: the curve y of each run; boxes, bars: y by series; ranks:
    the critical-difference diagram of y.
    """

    name: str
    kind: FigureKind
    y: str
    x: str = ""
    series: str = "model"
    panels: str = "data"
    title: str = ""
    xlabel: str = ""
    ylabel: str = ""
    unit: str = ""  # as of tables; "dB" of curves: ten times the logarithm of the mean power
    log: str = ""  # "x", "y" or "xy"
    where: Conditions = field(default_factory=dict)


@dataclass(frozen=True)
class StatisticsSpec:
    """Tests between models on one metric: pairs by Wilcoxon, all by Friedman and Nemenyi."""

    metric: str
    tests: tuple[str, ...] = ("wilcoxon", "friedman")
    level: float = 0.05
    # What a block of the tests is; of a single data set, beside repetition and fold.
    over: tuple[str, ...] = ("data",)


@dataclass(frozen=True)
class Expectation:
    """A number (value and spread), a bound (relation and value) or a claim (relation to rows)."""

    metric: str
    where: Conditions
    source: str  # "table 5.3", "figure 4.2a"
    value: float | None = None
    # Theirs; where none is printed, how far a reading of a figure may be off.
    spread: float | None = None
    relation: Relation | None = None  # with a value: below is at most, above at least
    to: Conditions = field(default_factory=dict)
    # equal: |difference| <= within |other|; below, above: by this share of the other.
    within: float = 0.0
    at: float | None = None  # of a curve: where; the last point if not said
    reason: str = ""  # why the thesis cannot be matched, where it cannot


@dataclass(frozen=True)
class Layout:
    """Everything that is shown of a comparison."""

    title: str = ""
    about: str = ""
    tables: tuple[TableSpec, ...] = ()
    figures: tuple[FigureSpec, ...] = ()
    statistics: tuple[StatisticsSpec, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    # Data sets left out -> why and where to get them.
    missing: Mapping[str, str] = field(default_factory=dict)
    size: str = "full"  # or quick, tiny
    text: str = ""  # the file as it was read
