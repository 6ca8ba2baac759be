"""Checks of models: whether they can be made with their settings."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from peerlearn.errors import InputError, PeerlearnError
from peerlearn.lab.description.comparison import Comparison, Data, Model, protocols
from peerlearn.lab.description.data_facts import facts_of
from peerlearn.lab.description.metrics import METRICS, USUAL
from peerlearn.lab.description.sweeps import with_key
from peerlearn.lab.training.estimators import (
    DEEP,
    OVER,
    SEEDED,
    configure,
    kind_of,
    parameters_of,
    parameters_within,
    settings_of,
)
from peerlearn.lab.training.search import keys_of
from peerlearn.models.base import NetworkModel
from peerlearn.models.registry import with_parts
from peerlearn.network import SimulatedNetwork
from peerlearn.toml_reader import TomlTable, near


def check_models(comparison: Comparison, networks: Sequence[SimulatedNetwork], told: str) -> None:
    """Check every model for every data set that the protocol lets it try."""
    for model in comparison.models:
        table = TomlTable({}, told, f"models[{model.name!r}].")
        for kind in _kinds(comparison, model, table):
            _check_keys(kind, model, table)
        over = networks if model.where == "network" else [None]
        for data in comparison.data:
            with table.about_all():
                refused = comparison.protocol.refuses(data, model)
            if not refused:
                _check_making(model, data, over, told)
    _check_data_settings(comparison, told)
    _check_search(comparison, TomlTable({}, told, "search."))


def _kinds(comparison: Comparison, model: Model, table: TomlTable) -> set[type[Any]]:
    if model.estimator is not None and model.kind:
        raise table.wrong(
            "kind", f"is {model.kind!r}, beside an estimator that is given: leave out one of them"
        )
    if isinstance(model.estimator, type):
        name = model.estimator.__name__
        raise table.wrong("estimator", f"is the class {name}: give an object, {name}()")
    with table.about("kind"):
        kinds = {kind_of(model, facts_of(data).task) for data in comparison.data}
        for kind in kinds:
            if not hasattr(kind, "get_params") or not (
                hasattr(kind, "fit") or hasattr(kind, "run")
            ):
                raise ValueError(
                    f"{kind.__name__} is no estimator: give the import path of one, as "
                    f"sklearn.svm.SVC"
                )
    return kinds


def _check_keys(kind: type[Any], model: Model, table: TomlTable) -> None:
    with table.about("kind"):
        taken = {*parameters_of(kind)} - {OVER}
    if any(DEEP in key for key in model.settings):
        with table.about_all():
            taken |= parameters_within(model, kind, model.settings)
    for key, value in model.settings.items():
        if key not in taken:
            known = {*taken, "name", "kind", "where"}
            raise table.wrong(key, f"is no parameter of {kind.__name__}{near(key, known)}")
        if isinstance(value, Mapping) and issubclass(kind, NetworkModel):
            with table.about(key):
                with_parts(kind, {key: value})


def _check_making(
    model: Model, data: Data, networks: Sequence[SimulatedNetwork | None], told: str
) -> None:
    """Make the model with the data set's settings; without them shows whose fault it is."""
    kind = kind_of(model, facts_of(data).task)
    fitting = {key: value for key, value in data.settings.items() if key in parameters_of(kind)}
    for network in networks:
        try:
            _check_values(kind, model, {**fitting, **model.settings}, network)
        except (TypeError, ValueError) as error:
            with TomlTable({}, told, f"models[{model.name!r}].").about_all():
                _check_values(kind, model, model.settings, network)
            with TomlTable({}, told, f"data[{data.name!r}].settings.").about_all():
                raise error


def _check_values(kind: type[Any], model: Model, settings: Mapping[str, Any], network: Any) -> None:
    """Make the estimator and check its settings as the start of a fit would."""
    seeded = {SEEDED: 0} if SEEDED in parameters_of(kind) else {}
    over = {OVER: network} if OVER in parameters_of(kind) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a run will warn
        try:
            estimator = configure(model, kind, {**seeded, **settings, **over})
            if isinstance(estimator, NetworkModel):
                estimator.check_settings()
            elif hasattr(
                kind, "_parameter_constraints"
            ):  # scikit-learn's own; of others a fit alone can tell
                estimator._validate_params()
        except (PeerlearnError, TypeError, ValueError):
            raise
        except Exception as error:  # a class of anybody's may raise anything
            raise ValueError(
                f"{kind.__name__} cannot be made ({type(error).__name__}: {error})"
            ) from error


def _check_data_settings(comparison: Comparison, told: str) -> None:
    taken = _parameters(comparison, comparison.models)
    for data in comparison.data:
        for key in data.settings:
            if key not in taken:
                raise TomlTable({}, told, f"data[{data.name!r}].settings.").wrong(
                    key, f"is a parameter of no model here{near(key, taken)}"
                )


def _check_search(comparison: Comparison, table: TomlTable) -> None:
    search = comparison.search
    names = {model.name for model in comparison.models}
    if search is None:
        return
    if search.model and search.model not in names:
        raise table.wrong(
            "model",
            f"is {search.model!r}, which is no name in [[models]]{near(search.model, names)}",
        )
    if search.model and [model.name for model in comparison.models].count(search.model) > 1:
        raise table.wrong(
            "model", f"is {search.model!r}, which is swept, but one has to search: name another"
        )
    metric = METRICS.get(search.metric)
    for data in comparison.data:
        if metric is None:
            break
        task = facts_of(data).task
        if metric.task != task:
            raise table.wrong(
                "metric",
                f"is {metric.name!r}, but {data.name} is a {task}: leave it out, which means "
                f"{USUAL[task][0]} there",
            )
    searching = [model for model in comparison.models if search.model in ("", model.name)]
    _check_where(comparison, searching, table)
    had = {
        key
        for model in searching
        for data in comparison.data
        for key in keys_of(search, data, model)
    }
    for key, values in search.grid.items():
        if key not in had:
            taken = _parameters(comparison, searching)
            raise table.wrong(
                f"grid.{key}", f"is a parameter of no model that searches{near(key, taken)}"
            )
        for place, entries in comparison.entries.items():
            for entry in entries:
                if place != "networks" and key in entry.swept:
                    raise table.wrong(
                        f"grid.{key}",
                        f"is swept in {place}[{entry.name!r}] too, and the search would replace "
                        f"what is swept: leave "
                        "out one of them",
                    )
        _check_not_tuned(comparison, key, table)
        for value in values:
            _check_candidate(comparison, searching, key, value, table)


def _check_not_tuned(comparison: Comparison, key: str, table: TomlTable) -> None:
    for data, models in getattr(comparison.protocol, "tuned", {}).items():
        for model, settings in models.items():
            for other in settings:
                if f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}."):
                    raise table.wrong(
                        f"grid.{key}",
                        f"and protocol.tuned.{data}.{model}.{other} are about the same, and the "
                        f"one would replace the "
                        "other: leave out one of them",
                    )


def _check_where(comparison: Comparison, searching: Sequence[Model], table: TomlTable) -> None:
    """Check that the protocol searches, and over a network if that is asked."""
    search = comparison.search
    protocol = comparison.protocol
    if not getattr(protocol, "searches", False):
        able = ", ".join(
            sorted(name for name, kind in protocols().items() if getattr(kind, "searches", False))
        )
        raise InputError(
            f"search in {table.path} is not for the protocol {protocol.name}: leave it out, or "
            f"choose one of {able}"
        )
    if (
        search is not None
        and search.where == "network"
        and all(each.where == "centralised" for each in searching)
    ):
        who = f"models[{search.model!r}] is" if search.model else "all models are"
        raise table.wrong(
            "where",
            f"is 'network', but {who} centralised: leave where out, or let a model over the "
            f"network search",
        )


def _check_candidate(
    comparison: Comparison, models: Sequence[Model], key: str, value: Any, table: TomlTable
) -> None:
    for model in models:
        for data in comparison.data:
            kind = kind_of(model, facts_of(data).task)
            search = comparison.search
            if (
                search
                and key in keys_of(search, data, model)
                and not comparison.protocol.refuses(data, model)
            ):
                with table.about(f"grid.{key}"):
                    _check_values(
                        kind, model, with_key(settings_of(data, model, kind), key, value), None
                    )


def _parameters(comparison: Comparison, models: Sequence[Model]) -> set[str]:
    kinds = {kind_of(model, facts_of(data).task) for model in models for data in comparison.data}
    return {name for kind in kinds for name in parameters_of(kind)} - {OVER}
