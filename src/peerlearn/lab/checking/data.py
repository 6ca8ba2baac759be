"""Checks of data sets: whether they load, and can be prepared, split and dealt."""

from __future__ import annotations

from math import ceil
from typing import get_args

from peerlearn.lab.checking.given_rows import convert_rows
from peerlearn.lab.description.comparison import Comparison, Data, Scale, Settings, Split
from peerlearn.lab.description.data_facts import (
    SERIES,
    SIGNALS,
    Facts,
    facts_of,
    get_extra,
    read_rows,
    source_of,
)
from peerlearn.lab.training.estimators import import_class, make_estimator, parameters_of
from peerlearn.lab.training.labelling import Labelling
from peerlearn.preparing.transformer import NetworkTransformer
from peerlearn.toml_reader import TomlTable, near

SPLIT_BY = ("rows", "columns", "stream", "averaging")  # protocols that split tables
FEW_CLASSES = (2, 20)  # as many are no amounts; between them, it depends on the number of rows


def convert_given(entry: Data, told: str) -> Data:
    """Return the entry with rows that were given as objects in the form that runs need."""
    table = TomlTable({}, told, f"data[{entry.name!r}].")
    if entry.scale not in get_args(Scale):
        raise table.wrong(
            "scale",
            f"is {entry.scale!r}, which is not known{near(str(entry.scale), get_args(Scale))}",
        )
    with table.about("given" if entry.given is not None else "task"):
        return convert_rows(entry)


def check_data(entry: Data, comparison: Comparison, told: str) -> Facts:
    """Check a data set for this comparison, and return what is known of it."""
    with TomlTable({}, told, f"data[{entry.name!r}].").about(
        "options" if entry.options else "source"
    ):
        facts = facts_of(entry)
    for place, step in enumerate(entry.prepare, 1):
        with TomlTable({}, told, f"data[{entry.name!r}].prepare[{place}].").about_all():
            _check_transformer(step)
    if facts.classes == 1:
        raise TomlTable({}, told).wrong(
            f"data[{entry.name!r}]", "has one class only: give rows of two classes at least"
        )
    if isinstance(comparison.protocol, Labelling):
        with TomlTable({}, told).about("protocol"):
            comparison.protocol.only(entry)
    _check_split(entry, facts, comparison, TomlTable({}, told))
    if facts.rows:
        _check_folds(entry, facts, comparison, TomlTable({}, told))
        _check_agents(entry, facts, comparison, TomlTable({}, told))
    return facts


def _check_transformer(step: Settings) -> None:
    if not isinstance(step.get("kind"), str):
        raise ValueError(
            "kind is missing: give the import path of a transformer, as sklearn.decomposition.PCA"
        )
    kind = import_class(step["kind"])
    settings = {key: value for key, value in step.items() if key != "kind"}
    if not hasattr(kind, "transform"):
        raise ValueError(f"{kind.__name__} has no transform: give the import path of a transformer")
    known = parameters_of(kind)
    for key in sorted(settings):
        if key not in known:
            raise ValueError(f"{key} is no parameter of {kind.__name__}{near(key, known)}")
    transformer = make_estimator(kind, settings)
    if hasattr(kind, "_parameter_constraints"):  # scikit-learn's own
        transformer._validate_params()
    if isinstance(transformer, NetworkTransformer):
        transformer.check_parameters()


def _check_split(entry: Data, facts: Facts, comparison: Comparison, top: TomlTable) -> None:
    """Check that sites and times are known where rows are dealt or split by them."""
    split = comparison.split
    by_site = split in ("within-sites", "leave-one-site-out")
    if split not in get_args(Split):
        raise top.wrong(
            "split", f"is {split!r:.60}, which is not known{near(split, get_args(Split))}"
        )
    if split != "auto" and comparison.protocol.name not in SPLIT_BY:
        raise top.wrong(
            "split", f"is for the protocols {', '.join(SPLIT_BY)}: leave it out with this one"
        )
    if entry.site is None and (by_site or _deals_by_site(comparison)):
        why = f"split = {split!r}" if by_site else "deal = 'site'"
        raise top.wrong(
            f"data[{entry.name!r}].site",
            f"is missing, and {why} needs the name of what has the site of each row: a column of "
            "a file of your own, or an array of a .npz file beside X and y",
        )
    if split == "time" and entry.time is None:
        raise top.wrong(
            f"data[{entry.name!r}].time",
            "is missing, and split = 'time' needs the name of what has the time of each row",
        )
    if entry.time is not None:
        with top.about(f"data[{entry.name!r}].time"):
            get_extra(read_rows(entry), entry.time, "time")
    if split == "leave-one-site-out" and comparison.folds != len(facts.sites):
        raise top.wrong(
            "folds",
            f"is {comparison.folds}, but {entry.name} has {len(facts.sites)} sites to leave out: "
            f"give {len(facts.sites)}",
        )


def _deals_by_site(comparison: Comparison) -> bool:
    return getattr(comparison.protocol, "deal", None) == "site"


def _check_folds(entry: Data, facts: Facts, comparison: Comparison, top: TomlTable) -> None:
    """Check that every fold has rows of every class."""
    folds = comparison.folds
    search = comparison.search
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
            f"has a class with one row, which cannot be both trained and tested on: leave that "
            f"class out{amounts}",
        )
    fewest = max(facts.classes, 1)
    training = _training(facts.rows, comparison)
    if min(training, facts.rows - training) < fewest:
        raise top.wrong(
            "test_fraction",
            f"is {comparison.test_fraction}, which leaves {training} of the {facts.rows} "
            f"{_what(entry)} of "
            f"{entry.name} to train on and {facts.rows - training} to test on: {fewest} or more "
            f"are needed of "
            f"both{amounts}",
        )
    if search is not None:
        _check_search_folds(entry, facts, comparison, search.folds, top)


def _check_search_folds(
    entry: Data, facts: Facts, comparison: Comparison, folds: int, top: TomlTable
) -> None:
    """Check the inner folds of a search.

    Each needs rows of every class. Where few rows have a label, each needs one of them, and every
    class two.
    """
    protocol = comparison.protocol
    what = _what(entry)
    if isinstance(protocol, Labelling):
        labelled = protocol.count("labelled", entry)
        if labelled < 2 * (len(protocol.classes.get(entry.name, ())) or facts.classes):
            raise top.wrong(
                "protocol.labelled",
                f"is {labelled} for {entry.name}, and a search needs two rows of each class: give "
                f"more",
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
    """Return the end of a sentence about small classes: many whole numbers may be amounts."""
    many = facts.classes > max(FEW_CLASSES[0], min(FEW_CLASSES[1], facts.rows / 10))
    if entry.task is not None or not facts.counted or not many:
        return ""
    return f"; or, if its {facts.classes:,} classes are amounts, give it task = 'regression'"


def _check_agents(entry: Data, facts: Facts, comparison: Comparison, top: TomlTable) -> None:
    """Check that every agent gets something of what is dealt.

    Signals are made for as many agents as there are.
    """
    by_columns = comparison.protocol.name == "columns"
    if by_columns and entry.prepare:
        return
    if _deals_by_site(comparison):
        _check_agents_of_sites(entry, facts, comparison, top)
        return
    rows = _training(facts.rows, comparison)
    search = comparison.search
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


def _check_agents_of_sites(
    entry: Data, facts: Facts, comparison: Comparison, top: TomlTable
) -> None:
    left_out = comparison.split == "leave-one-site-out"
    wanted = len(facts.sites) - left_out
    for net in comparison.networks:
        if net.agents != wanted:
            rest = ", one of which is left out" if left_out else ""
            raise top.wrong(
                f"networks[{net.name!r}].agents",
                f"is {net.agents}, but {entry.name} has {len(facts.sites)} sites{rest}, and each "
                f"has an agent: give {wanted}",
            )
    if min(facts.sites) < 2 * max(2, comparison.folds):
        raise top.wrong(
            f"data[{entry.name!r}].site",
            f"has a site with {min(facts.sites)} rows, too few to train and test on: leave it out",
        )


def _what(entry: Data) -> str:
    series = entry.given is None and source_of(entry) in {**SERIES, **SIGNALS}
    return "sequences" if series else "rows"


def _training(rows: int, comparison: Comparison) -> int:
    """Return how many of so many rows are trained on at least."""
    return rows - ceil(
        rows / comparison.folds if comparison.folds > 1 else rows * comparison.test_fraction
    )
