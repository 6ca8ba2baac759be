"""The checks of a whole comparison: whatever can be known before the first run.

A model that cannot do a task is no mistake: its protocol says so, and tables show it as not
applicable.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from peerlearn.arrays import is_real, is_whole
from peerlearn.errors import InputError
from peerlearn.lab.checking.data import check_data, convert_given
from peerlearn.lab.checking.models import check_models
from peerlearn.lab.checking.networks import check_networks
from peerlearn.lab.checking.specs import ALWAYS, check_layout, check_types, metrics_to_measure
from peerlearn.lab.description.comparison import MOST_RUNS, Comparison, Data, Model, Net
from peerlearn.lab.description.data_facts import Facts
from peerlearn.lab.description.metrics import METRICS
from peerlearn.lab.description.search import Search
from peerlearn.lab.description.specs import Layout
from peerlearn.lab.file.fields import check_fields
from peerlearn.lab.results.parquet import TAKEN
from peerlearn.lab.training.labelling import Labelling
from peerlearn.toml_reader import TomlTable, near

MANY = 5_000  # runs: fewer are checked in a moment
TYPED: Mapping[
    type[Any], tuple[str, ...]
] = {  # fields that no other check speaks of in its own words
    Data: ("name", "source", "options", "prepare", "settings", "swept", "site", "time"),
    Model: ("name", "kind", "settings", "swept"),
    Net: ("name", "parameters", "swept"),
}
log = logging.getLogger("peerlearn.lab")


def check_comparison(comparison: Comparison, file: str = "") -> Comparison:
    """Return the comparison if all of it can be run, else raise one sentence.

    The metrics that tables, figures and tests show are added to its own.
    """
    told = file or "the comparison"
    top = TomlTable({}, told)
    _check_is_one(comparison)
    _check_types(comparison, top)
    comparison = _check_numbers(
        replace(comparison, layout=check_types(comparison.layout, told)), top
    )
    for key, kind in {"data": Data, "models": Model, "networks": Net}.items():
        _check_entries(key, kind, getattr(comparison, key), top)
    _check_sweeps(comparison, top)
    _check_runs(comparison, told)
    comparison = replace(
        comparison, data=tuple(convert_given(entry, told) for entry in comparison.data)
    )
    facts = [check_data(entry, comparison, told) for entry in comparison.data]
    whole = (
        comparison.layout.size == "full" and not comparison.layout.missing
    )  # else it may speak of what is left out
    _check_metrics(comparison, facts if whole else [], top)
    networks = check_networks(comparison, told)
    if whole:
        _check_labelling(comparison, top)
    check_models(comparison, networks, told)
    if whole:
        check_layout(comparison, told, {each.task for each in facts})
    shown = metrics_to_measure(comparison, {each.task for each in facts})
    comparison = replace(comparison, metrics=shown)
    _check_swept_names(comparison, top)
    return comparison


def _check_is_one(given: Any) -> None:
    if isinstance(given, Comparison):
        return
    if isinstance(given, str | os.PathLike):
        raise InputError(
            f"a comparison is needed, and {os.fspath(given)!r} is a text: give "
            f"read({os.fspath(given)!r})"
        )
    raise InputError(
        f"a comparison is needed, and this is a {type(given).__name__}: give Comparison(data=..., "
        f"models=...) of "
        "peerlearn.lab, or read(FILE)"
    )


def _check_runs(comparison: Comparison, told: str) -> None:
    """Count the runs before any check whose time grows with them."""
    runs = comparison.runs
    if runs > MOST_RUNS:
        raise InputError(
            f"{told} makes {runs:,} runs, and {MOST_RUNS:,} are the most: give shorter lists, or "
            f"fewer folds or "
            "repetitions"
        )
    if runs > MANY and comparison.layout.size == "full":
        log.warning("%s makes %s runs, and it takes a while to check them", told, f"{runs:,}")


def _check_types(comparison: Comparison, top: TomlTable) -> None:
    protocol = comparison.protocol
    search = comparison.search
    layout = comparison.layout
    if isinstance(protocol, type) or not all(
        hasattr(protocol, each) for each in ("name", "refuses", "run")
    ):
        raise top.wrong(
            "protocol", f"is {protocol!r:.80}: give protocol_named('rows') of peerlearn.lab"
        )
    if search is not None and not isinstance(search, Search):
        raise top.wrong("search", f"is {search!r:.80}: give Search(grid={{...}}) of peerlearn.lab")
    if not isinstance(layout, Layout):
        raise top.wrong(
            "layout",
            f"is {layout!r:.80}: give Layout(title=...) of peerlearn.lab, or leave it out",
        )
    if not isinstance(comparison.metrics, list | tuple):
        raise top.wrong("metrics", f"is {comparison.metrics!r:.80}: give a list of names")


def _check_numbers(comparison: Comparison, top: TomlTable) -> Comparison:
    """Check the numbers, and return them as Python's: JSON cannot hold those of numpy."""
    whole = ("seed", "folds", "repetitions")
    for key, least, most in (
        ("seed", 0, 2**32 - 1),
        ("folds", 1, math.inf),
        ("repetitions", 1, math.inf),
    ):
        value = getattr(comparison, key)
        if not is_whole(value) or not least <= value <= most:
            limits = f"of {least} or more" if most == math.inf else f"from {least} to {most}"
            raise top.wrong(key, f"is {value!r}: give a whole number {limits}")
    fraction = comparison.test_fraction
    if not is_real(fraction) or not 0 < fraction < 1:
        raise top.wrong("test_fraction", f"is {fraction!r}: give a number between 0 and 1")
    numbers: dict[str, Any] = {key: int(getattr(comparison, key)) for key in whole}
    return replace(comparison, test_fraction=float(fraction), **numbers)


def _check_entries(key: str, kind: type[Any], entries: Any, top: TomlTable) -> None:
    """Check the entries of one list; only values of one sweep may share a name."""
    if not isinstance(entries, list | tuple) or not all(
        isinstance(entry, kind) for entry in entries
    ):
        raise top.wrong(key, f"is {entries!r:.80}: give a list of {kind.__name__}")
    if not entries and kind is not Net:
        raise top.wrong(
            key, f"is empty, which leaves nothing to run: give one {kind.__name__} or more"
        )
    seen: list[tuple[str, Any]] = []
    for entry in entries:
        place = f"{key}[{entry.name!r}]"
        check_fields(entry, TomlTable({}, str(top.path), f"{place}."), *TYPED[kind])
        if isinstance(entry, Net):
            _check_number_of_agents(entry, TomlTable({}, str(top.path), f"{place}."))
        if isinstance(entry, Model) and entry.estimator is None and not entry.kind:
            raise top.wrong(
                f"{place}.kind",
                "is missing: give kind='RVFL' or another model of peerlearn, "
                "kind='sklearn.svm.SVC' or another import "
                "path, or an object, estimator=SVC()",
            )
        identity = (entry.name, dict(entry.swept))
        if identity in seen:
            raise top.wrong(f"{place}.name", "stands twice: give each entry a name of its own")
        seen.append(identity)
        for column in entry.swept:
            if column in TAKEN:
                raise top.wrong(f"{place}.{column}", _refuse_column(column))


def _check_number_of_agents(net: Net, table: TomlTable) -> None:
    given: Any = net.agents
    if isinstance(given, list | tuple | range):
        swept = f"swept={{'agents': {given[0] if given else 5}}}"
        raise table.wrong(
            "agents",
            f"is {given!r:.80}: give one Net per value, all of the same name, each with {swept}",
        )
    if not is_whole(given):
        raise table.wrong("agents", f"is {given!r:.80}: give a whole number of 1 or more")


def _check_sweeps(comparison: Comparison, top: TomlTable) -> None:
    """Check that a column is swept by entries of one list only."""
    by_column: dict[str, str] = {}
    for kind, entries in comparison.entries.items():
        for entry in entries:
            for column in entry.swept:
                other = by_column.setdefault(column, kind)
                if other != kind:
                    raise top.wrong(
                        f"{kind}[{entry.name!r}].{column}",
                        f"is a list, and so is {column} in {other}, but results have one column "
                        f"for both: give one "
                        "value in either",
                    )


def _check_swept_names(comparison: Comparison, top: TomlTable) -> None:
    """Refuse a swept key that has the name of something measured: both would be one column."""
    measured = {*comparison.metrics, *comparison.protocol.measures}
    for kind, entries in comparison.entries.items():
        for entry in entries:
            for column in entry.swept:
                if column in measured:
                    raise top.wrong(f"{kind}[{entry.name!r}].{column}", _refuse_column(column))


def _refuse_column(column: str) -> str:
    return (
        f"is a list, but results have a column {column} already: "
        "write an entry for each of its values"
    )


def _check_labelling(comparison: Comparison, top: TomlTable) -> None:
    """Check that the names of data sets and models in the protocol exist."""
    protocol = comparison.protocol
    if not isinstance(protocol, Labelling):
        return
    data, models = (
        {entry.name for entry in entries} for entries in (comparison.data, comparison.models)
    )
    for key in ("labelled", "unlabelled", "tested", "classes", "tuned"):
        by_name = getattr(protocol, key)
        for name in by_name if isinstance(by_name, Mapping) else ():
            if name not in data:
                raise top.wrong(f"protocol.{key}.{name}", f"is about no data set{near(name, data)}")
    for name, tuned in protocol.tuned.items():
        for model in tuned:
            if model not in models:
                raise top.wrong(
                    f"protocol.tuned.{name}.{model}", f"is about no model{near(model, models)}"
                )


def _check_metrics(comparison: Comparison, facts: Sequence[Facts], top: TomlTable) -> None:
    known = {*METRICS, *comparison.protocol.measures, *ALWAYS}
    tasks = {each.task for each in facts}
    for name in comparison.metrics:
        if not isinstance(name, str) or name not in known:
            raise top.wrong("metrics", f"has {name!r}, which is not known{near(str(name), known)}")
        if (
            tasks
            and name in METRICS
            and name not in comparison.protocol.measures
            and METRICS[name].task not in tasks
        ):
            of_task = [each for each, metric in METRICS.items() if metric.task in tasks]
            raise top.wrong(
                "metrics",
                f"has {name!r}, which is of {METRICS[name].task}, and no data set is: choose from "
                f"{', '.join(of_task)}",
            )
