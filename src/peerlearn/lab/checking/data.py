"""Whether the data sets of a comparison can be had, prepared, and cut into folds and shares."""

from __future__ import annotations

from math import ceil
from typing import get_args

from peerlearn.lab.checking.given_rows import with_rows
from peerlearn.lab.description.comparison import Comparison, Data, Scale, Settings
from peerlearn.lab.description.data_facts import GENERATORS, Facts, facts_of, source_of
from peerlearn.lab.training.estimators import imported, made, parameters_of
from peerlearn.lab.training.labelling import Labelling
from peerlearn.toml_reader import Table, near

FEW_CLASSES = (2, 20)  # as many are no amounts; between them, it depends on the number of rows


def with_given(entry: Data, told: str) -> Data:
    """The entry, rows that were given as objects in the form that runs need."""
    table = Table({}, told, f"data[{entry.name!r}].")
    if entry.scale not in get_args(Scale):
        raise table.wrong(
            "scale",
            f"is {entry.scale!r}, which is not known{near(str(entry.scale), get_args(Scale))}",
        )
    with table.about("given" if entry.given is not None else "task"):
        return with_rows(entry)


def check_data(entry: Data, comparison: Comparison, told: str) -> Facts:
    """What is known of a data set, if it can be used in this comparison."""
    with Table({}, told, f"data[{entry.name!r}].").about("options" if entry.options else "source"):
        facts = facts_of(entry)
    for place, step in enumerate(entry.prepare, 1):
        with Table({}, told, f"data[{entry.name!r}].prepare[{place}].").about_all():
            _check_transformer(step)
    if facts.classes == 1:
        raise Table({}, told).wrong(
            f"data[{entry.name!r}]", "has one class only: give rows of two classes at least"
        )
    if isinstance(comparison.protocol, Labelling):
        with Table({}, told).about("protocol"):
            comparison.protocol.only(entry)
    if facts.rows:
        _check_folds(entry, facts, comparison, Table({}, told))
        _check_agents(entry, facts, comparison, Table({}, told))
    return facts


def _check_transformer(step: Settings) -> None:
    if not isinstance(step.get("kind"), str):
        raise ValueError(
            "kind is missing: give the import path of a transformer, as sklearn.decomposition.PCA"
        )
    kind, settings = (
        imported(step["kind"]),
        {key: value for key, value in step.items() if key != "kind"},
    )
    if not hasattr(kind, "transform"):
        raise ValueError(f"{kind.__name__} has no transform: give the import path of a transformer")
    if unknown := sorted(set(settings) - set(parameters_of(kind))):
        raise ValueError(
            f"{unknown[0]} is no parameter of {kind.__name__}{near(unknown[0], parameters_of(kind))}"
        )
    transformer = made(kind, settings)
    if hasattr(kind, "_parameter_constraints"):  # scikit-learn's own
        transformer._validate_params()


def _check_folds(entry: Data, facts: Facts, comparison: Comparison, top: Table) -> None:
    """Rows of every class in every fold."""
    folds, search = comparison.folds, comparison.search
    if folds > facts.rows:
        raise top.wrong(
            "folds",
            f"is {folds}, but {entry.name} has {facts.rows} {_what(entry)}: give fewer folds",
        )
    amounts = _if_amounts(entry, facts)
    if facts.classes and folds > facts.rarest:
        rows = "one row" if facts.rarest == 1 else f"{facts.rarest} rows"
        raise top.wrong(
            "folds",
            f"is {folds}, but {entry.name} has a class with {rows}: give fewer folds{amounts}",
        )
    if folds == 1 and facts.rarest == 1:
        raise top.wrong(
            f"data[{entry.name!r}]",
            f"has a class with one row, which cannot be both trained and tested on: leave that class out{amounts}",
        )
    fewest, training = max(facts.classes, 1), _training(facts.rows, comparison)
    if min(training, facts.rows - training) < fewest:
        raise top.wrong(
            "test_fraction",
            f"is {comparison.test_fraction}, which leaves {training} of the {facts.rows} {_what(entry)} of "
            f"{entry.name} to train on and {facts.rows - training} to test on: {fewest} or more are needed of "
            f"both{amounts}",
        )
    if search is not None:
        _check_search_folds(entry, facts, comparison, search.folds, top)


def _check_search_folds(
    entry: Data, facts: Facts, comparison: Comparison, folds: int, top: Table
) -> None:
    """Rows of every class in every inner fold; where few have a label, one of these in each, and two of every class."""
    protocol, what = comparison.protocol, _what(entry)
    if isinstance(protocol, Labelling):
        labelled = protocol.count("labelled", entry)
        if labelled < 2 * (len(protocol.classes.get(entry.name, ())) or facts.classes):
            raise top.wrong(
                "protocol.labelled",
                f"is {labelled} for {entry.name}, and a search needs two rows of each class: give more",
            )
        if folds > labelled:
            raise top.wrong(
                "search.folds",
                f"is {folds}, but {entry.name} has {labelled} labelled rows: give fewer folds",
            )
        return
    smallest = _training(facts.rarest or facts.rows, comparison)
    if folds > smallest:
        rows = (
            f"a class with {smallest} training rows"
            if facts.classes
            else f"{smallest} training {what}"
        )
        raise top.wrong(
            "search.folds", f"is {folds}, but {entry.name} has {rows}: give fewer folds"
        )


def _if_amounts(entry: Data, facts: Facts) -> str:
    """The end of a sentence about classes that are too small: whole numbers may be amounts, if there are many."""
    many = facts.classes > max(FEW_CLASSES[0], min(FEW_CLASSES[1], facts.rows / 10))
    if entry.task is not None or not facts.counted or not many:
        return ""
    return f"; or, if its {facts.classes:,} classes are amounts, give it task = 'regression'"


def _check_agents(entry: Data, facts: Facts, comparison: Comparison, top: Table) -> None:
    """Something for every agent, of what is dealt as it is; signals are as many as there are agents."""
    by_columns = comparison.protocol.name == "columns"
    if by_columns and entry.prepare:
        return
    rows, search = _training(facts.rows, comparison), comparison.search
    inner = search is not None and search.where == "network"
    if search is not None and inner:
        rows -= ceil(rows / search.folds)
    most, what = (facts.columns, "columns") if by_columns else (rows, _what(entry))
    when = "to train on in a fold of the search" if inner and not by_columns else "to train on"
    for net in comparison.networks:
        if net.agents > most:
            raise top.wrong(
                f"networks[{net.name!r}].agents",
                f"is {net.agents}, but {entry.name} has {most} {what} {when}: give fewer agents",
            )


def _what(entry: Data) -> str:
    return "sequences" if entry.given is None and source_of(entry) in GENERATORS else "rows"


def _training(rows: int, comparison: Comparison) -> int:
    """How many of so many rows are trained on, at the least."""
    return rows - ceil(
        rows / comparison.folds if comparison.folds > 1 else rows * comparison.test_fraction
    )
