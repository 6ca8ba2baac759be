"""What a comparison describes, made: the estimator of a run, and the network that it is trained over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from importlib import import_module
from inspect import isclass, signature
from typing import Any

import networkx as nx
from sklearn.base import clone

from peerlearn import graphs
from peerlearn import weights as mixing
from peerlearn.data.dataset import Task
from peerlearn.errors import InputError
from peerlearn.experiments.lab.comparison import Data, Model, Net, Settings
from peerlearn.experiments.lab.facts import facts_of
from peerlearn.experiments.lab.sweeps import with_key
from peerlearn.experiments.lab.training.kept import Asked, key_of
from peerlearn.experiments.lab.trial import Trial
from peerlearn.models.base import NetworkModel
from peerlearn.models.from_config import part_kind, with_parts
from peerlearn.models.registry import models
from peerlearn.network import SimulatedNetwork
from peerlearn.toml_reader import near

OURS: dict[str, type[Any]] = {**models()}
ENDINGS = {"classification": "Classifier", "regression": "Regressor"}
FAMILIES = {name.removesuffix("Classifier").removesuffix("Regressor") for name in OURS} - set(OURS)
DEEP = "__"  # of a parameter of an estimator within another
SEEDED, OVER = "random_state", "network"  # parameters that a run gives to whoever has them


def kind_of(model: Model, task: Task) -> type[Any]:
    """The class of a model: for a family that which the task asks for, or the only one there is."""
    if model.estimator is not None:
        return type(model.estimator)
    if model.kind in FAMILIES:
        asked = OURS.get(model.kind + ENDINGS[task])
        return asked or next(
            OURS[name] for ending in ENDINGS.values() if (name := model.kind + ending) in OURS
        )
    return OURS[model.kind] if model.kind in OURS else imported(model.kind)


@lru_cache(maxsize=256)
def imported(path: str) -> type[Any]:
    """A class by its import path, such as sklearn.svm.SVC."""
    module, _, name = path.rpartition(".")
    if not module.strip(".") or path.startswith("."):
        raise InputError(
            f"{path!r} is no model of peerlearn and no import path{near(path, {*OURS, *FAMILIES})}"
        )
    try:
        found = getattr(import_module(module), name, None)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{path} cannot be imported ({error}): check the path, or install what it needs; of a file of your own, "
            "name the folder in PYTHONPATH"
        ) from None
    except (Exception, SystemExit) as error:  # a module may do anything while it is imported
        what = f"{type(error).__name__}: {error}"
        raise InputError(
            f"{path} cannot be imported ({what}): mend {module}, or install what it needs"
        ) from None
    if found is None:
        known = [each for each, kind in vars(import_module(module)).items() if isclass(kind)]
        raise InputError(f"{module} has no {name}{near(name, known)}")
    if not isclass(found):
        raise InputError(
            f"{path} is no class: give the import path of an estimator, such as sklearn.svm.SVC"
        )
    kind: type[Any] = found
    return kind


def parameters_of(kind: type[Any]) -> list[str]:
    """The names of its parameters, as scikit-learn has them."""
    try:
        names: list[str] = kind._get_param_names() if hasattr(kind, "_get_param_names") else []
    except RuntimeError as error:  # it takes any number of arguments
        raise InputError(" ".join(str(error).split())) from None
    return names


def takes(model: Model, kind: type[Any], settings: Settings, key: str) -> bool:
    """Whether a model with these settings has one under this key, which may lead into a table, solver.tolerance, or
    into an estimator within, svc__C."""
    first, _, rest = key.partition(".")
    if first not in parameters_of(kind):
        return not rest and DEEP in key and key in within(model, kind, settings)
    if not rest:
        return first != OVER
    inner: Any = settings.get(first)
    setting = rest.partition(".")[0]
    if issubclass(kind, NetworkModel):
        named = isinstance(inner, str | Mapping)
        chosen: Any = part_kind(kind, first, inner) if named else None
        return is_dataclass(chosen) and setting in {each.name for each in fields(chosen)}
    return _has_kind(inner) and setting in parameters_of(imported(inner["kind"]))


def within(model: Model, kind: type[Any], settings: Settings) -> set[str]:
    """The parameters of a model and of the estimators within it, as scikit-learn writes them."""
    own = {key: value for key, value in settings.items() if key in parameters_of(kind)}
    return set(configured(model, kind, own).get_params(deep=True))


def estimator_of(trial: Trial, network: SimulatedNetwork | None = None, **more: Any) -> Any:
    """The unfitted estimator of a run: settings of its data set, then of its model, then `more`.

    Of the first and the last those that the estimator has: one search serves several models, as one
    data set does.
    """
    given, kind = trial.model.estimator, kind_of(trial.model, facts_of(trial.data).task)
    taken = parameters_of(kind)
    settings = settings_of(trial.data, trial.model, kind)
    for key, value in more.items():
        if key.partition(".")[0] in taken or takes(trial.model, kind, settings, key):
            settings = with_key(settings, key, value)
    if SEEDED in taken and getattr(given, SEEDED, None) is None:
        settings.setdefault(SEEDED, trial.seed("model"))
    if OVER in taken:
        settings[OVER] = network
    return configured(trial.model, kind, settings)


def settings_of(data: Data, model: Model, kind: type[Any]) -> dict[str, Any]:
    """Those of the data set that such a model has, and its own, which win."""
    taken = parameters_of(kind)
    return {key: value for key, value in data.settings.items() if key in taken} | dict(
        model.settings
    )


def configured(model: Model, kind: type[Any], settings: Mapping[str, Any]) -> Any:
    """The estimator of a model, or a copy of the one it was given, with these settings."""
    if model.estimator is None:
        return made(kind, settings)
    return clone(model.estimator).set_params(**_objects(kind, settings))


def made(kind: type[Any], settings: Mapping[str, Any]) -> Any:
    """An estimator with settings; tables among them are algorithms of ours, or estimators by the import path `kind`."""
    objects, own = _objects(kind, settings), parameters_of(kind)
    deep = {key: objects.pop(key) for key in list(objects) if DEEP in key and key not in own}
    estimator = kind(**objects)
    return estimator.set_params(**deep) if deep else estimator


def _objects(kind: type[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    if issubclass(kind, NetworkModel):
        return with_parts(kind, settings)
    return {key: _nested(value) for key, value in settings.items()}


def _nested(value: Any) -> Any:
    if _has_kind(value):
        return made(
            imported(value["kind"]), {key: each for key, each in value.items() if key != "kind"}
        )
    return [_nested(each) for each in value] if isinstance(value, list) else value


def _has_kind(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("kind"), str)


def network_of(trial: Trial) -> SimulatedNetwork | None:
    """The network of a run, its graph drawn from the run's seed unless it has one of its own; None: centralised."""
    if trial.network is None:
        return None
    net, seed = trial.network, trial.seed("graph")
    graph = graph_of(net, seed)
    weights = _fastest(Asked(key_of(net, seed), graph)) if net.weights == "fastest" else net.weights
    return SimulatedNetwork(graph, weights)


@lru_cache(maxsize=32)
def _fastest(asked: Asked[nx.Graph]) -> Any:
    """Minutes of work on a large graph, which all models of a repetition share."""
    return mixing.fastest(asked.about)


def graph_of(net: Net, seed: int) -> nx.Graph:
    """The fixed graph, or one of its kind."""
    if net.fixed is not None:
        return net.fixed
    generator = graphs.GENERATORS[net.graph]
    given = {
        key: value
        for key, value in (("n", net.agents), ("seed", seed))
        if key in signature(generator).parameters
    }
    return generator(**(given | dict(net.parameters)))
