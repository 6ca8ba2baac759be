"""What a report shows of a comparison: title, tables, figures, tests and expectations.

It is saved as comparison.json beside the rows. So a report can be made again from files alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

FigureKind = Literal["lines", "boxes", "bars", "curves", "ranks", "reliability"]
Relation = Literal["below", "above", "equal"]
FACTORS = {"%": 100.0, "MB": 1e-6}  # by unit; other units are only named
Conditions = Mapping[str, Any]  # column -> value; rows must have all of them


@dataclass(frozen=True)
class TableSpec:
    """A table of a report: means and spreads of a metric.

    Parameters
    ----------
    name : str
        Name of its files.
    metric : str
        What is shown, such as "error".
    rows : tuple of str, default ("data", "network")
        Columns of the results. The table has a line for each combination of their values.
    columns : str, default "model"
        Column of the results. The table has a column for each of its values.
    title : str, default ""
        Title in the report.
    unit : str, default ""
        "%" multiplies by a hundred, "MB" divides bytes by 1e6. Other units are only written.
    where : mapping of str to object, default {}
        Values that runs must have to be counted, by column. A list means any of its values.

    Examples
    --------
    >>> from peerlearn.lab import TableSpec
    >>> TableSpec("error", "error", rows=("data", "agents"), unit="%").columns
    'model'
    """

    name: str
    metric: str
    rows: tuple[str, ...] = ("data", "network")
    columns: str = "model"
    title: str = ""
    unit: str = ""
    where: Conditions = field(default_factory=dict)


@dataclass(frozen=True)
class FigureSpec:
    """A figure of a report.

    Parameters
    ----------
    name : str
        Name of its files.
    kind : {"lines", "boxes", "bars", "curves", "ranks", "reliability"}
        "lines" draws y against the column x, "curves" the curve y of the runs, "boxes" and "bars"
        y by series, "ranks" the critical-difference diagram of y, "reliability" how often what has
        a probability does happen; its y is "curve.reliability".
    y : str
        The metric, such as "error", or the curve, such as "curve.residual".
    x : str, default ""
        Column of the results on the horizontal axis.
    series : str, default "model"
        Column of the results. There is a line, box or bar for each of its values.
    panels : str, default "data"
        Column of the results. There is a panel for each of its values.
    title, xlabel, ylabel : str, default ""
        Words of the figure. Empty: made from the names of the columns.
    unit : str, default ""
        As for `TableSpec`; for curves also "dB", ten times the logarithm of the mean power.
    log : str, default ""
        Logarithmic axes: "x", "y" or "xy".
    where : mapping of str to object, default {}
        Values that runs must have to be drawn, by column. A list means any of its values.

    Examples
    --------
    >>> from peerlearn.lab import FigureSpec
    >>> FigureSpec("error-against-agents", "lines", "error", "agents", log="x").panels
    'data'
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
    unit: str = ""
    log: str = ""
    where: Conditions = field(default_factory=dict)


@dataclass(frozen=True)
class StatisticsSpec:
    """Tests between models on one metric.

    Parameters
    ----------
    metric : str
        The metric that is compared.
    tests : tuple of str, default ("wilcoxon", "friedman")
        "wilcoxon" compares models in pairs, with Holm's correction. "friedman" compares all of them
        together, followed by Nemenyi's critical difference.
    level : float, default 0.05
        Level of significance.
    over : tuple of str, default ("data",)
        Columns whose values make the blocks of a test. Runs within a block are averaged. If only
        one data set has the metric, blocks also differ in repetition and fold.

    Examples
    --------
    >>> from peerlearn.lab import StatisticsSpec
    >>> StatisticsSpec("error", tests=("friedman",)).level
    0.05
    """

    metric: str
    tests: tuple[str, ...] = ("wilcoxon", "friedman")
    level: float = 0.05
    over: tuple[str, ...] = ("data",)


@dataclass(frozen=True)
class Expectation:
    """A published result that the runs should agree with.

    It is a number (`value` and `spread`), a bound (`relation` and `value`) or a claim about two
    groups of runs (`relation` and `to`).

    Parameters
    ----------
    metric : str
        The metric or curve that it is about.
    where : mapping of str to object
        Values that runs must have to be compared, by column.
    source : str
        Where it is printed, such as "table 5.3".
    value : float, default None
        The published number, or the bound.
    spread : float, default None
        How far the mean of our runs may be from `value`: the published spread, or the error of
        reading a figure.
    relation : {"below", "above", "equal"}, default None
        With `value`, "below" means at most and "above" at least. With `to`, how the runs of `where`
        compare with those of `to`.
    to : mapping of str to object, default {}
        The runs to compare with, by column.
    within : float, default 0.0
        As a share of the other mean: how far equal means may differ, or by how much the mean must
        be below or above.
    at : float, default None
        Where a curve is compared. None: at its last point.
    reason : str, default ""
        Why the result cannot be reproduced, if it cannot.

    Examples
    --------
    >>> from peerlearn.lab import Expectation
    >>> rvfl = {"data": "g50c", "model": "centralised"}
    >>> number = Expectation("error", rvfl, "table 4.2", value=0.06, spread=0.02)
    >>> other = {"data": "g50c", "model": "together"}
    >>> claim = Expectation("error", other, "section 4.4", relation="equal", to=rvfl, within=0.3)
    >>> number.relation, claim.value
    (None, None)
    """

    metric: str
    where: Conditions
    source: str
    value: float | None = None
    spread: float | None = None
    relation: Relation | None = None
    to: Conditions = field(default_factory=dict)
    within: float = 0.0
    at: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Layout:
    """Everything that a report shows of a comparison.

    Parameters
    ----------
    title : str, default ""
        Title of the report.
    about : str, default ""
        Text below the title.
    tables : tuple of TableSpec, default ()
        Tables. Empty: one per metric.
    figures : tuple of FigureSpec, default ()
        Figures. Empty: lines over each swept key that a metric varies with, or boxes.
    statistics : tuple of StatisticsSpec, default ()
        Tests between models.
    expectations : tuple of Expectation, default ()
        Published results to compare with.
    missing : mapping of str to str, default {}
        Data sets that are left out, and why.
    size : {"full", "quick", "tiny"}, default "full"
        The size at which a file was read.
    text : str, default ""
        The file as it was read.

    Examples
    --------
    >>> from peerlearn.lab import Layout, TableSpec
    >>> Layout("Two small tables", tables=(TableSpec("error", "error", unit="%"),)).size
    'full'
    """

    title: str = ""
    about: str = ""
    tables: tuple[TableSpec, ...] = ()
    figures: tuple[FigureSpec, ...] = ()
    statistics: tuple[StatisticsSpec, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    size: str = "full"
    text: str = ""
