"""The estimator of a run: its class, its settings, and which tasks it can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from importlib import import_module
from inspect import isclass
from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.utils import get_tags

from peerlearn.data.dataset import Task
from peerlearn.errors import InputError
from peerlearn.lab.description.comparison import Data, Model, Settings
from peerlearn.lab.description.data_facts import facts_of
from peerlearn.lab.description.sweeps import with_key
from peerlearn.lab.description.trial import Trial
from peerlearn.models.base import NetworkModel, Takes
from peerlearn.models.registry import models, part_kind, with_parts
from peerlearn.network import SimulatedNetwork
from peerlearn.toml_reader import near

OURS: dict[str, type[Any]] = {**models()}
ENDINGS = {"classification": "Classifier", "regression": "Regressor"}
FAMILIES = {name.removesuffix("Classifier").removesuffix("Regressor") for name in OURS} - set(OURS)
DEEP = "__"  # of a parameter of an estimator within another
# Parameters that a run sets in every estimator that has them.
SEEDED = "random_state"
OVER = "network"


def kind_of(model: Model, task: Task) -> type[Any]:
    """Return the class of a model; of a family, the one for the task or the only one."""
    if model.estimator is not None:
        return type(model.estimator)
    if model.kind in FAMILIES:
        asked = OURS.get(model.kind + ENDINGS[task])
        if asked is not None:
            return asked
        members = [model.kind + ending for ending in ENDINGS.values()]
        return next(OURS[name] for name in members if name in OURS)
    return OURS[model.kind] if model.kind in OURS else import_class(model.kind)


@lru_cache(maxsize=256)
def import_class(path: str) -> type[Any]:
    """Import a class by its path, such as sklearn.svm.SVC."""
    module, _, name = path.rpartition(".")
    if not module.strip(".") or path.startswith("."):
        raise InputError(
            f"{path!r} is no model of peerlearn and no import path{near(path, {*OURS, *FAMILIES})}"
        )
    try:
        found = getattr(import_module(module), name, None)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{path} cannot be imported ({error}): check the path, or install what it needs; of a "
            f"file of your own, "
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
    """Return the names of a class's parameters, as scikit-learn has them."""
    try:
        names: list[str] = kind._get_param_names() if hasattr(kind, "_get_param_names") else []
    except RuntimeError as error:  # it takes any number of arguments
        raise InputError(" ".join(str(error).split())) from None
    return names


def takes(model: Model, kind: type[Any], settings: Settings, key: str) -> bool:
    """Return whether a model with these settings has one under this key.

    A key may lead into a table, solver.tolerance, or into an estimator within, svc__C.
    """
    first, _, rest = key.partition(".")
    if first not in parameters_of(kind):
        return not rest and DEEP in key and key in parameters_within(model, kind, settings)
    if not rest:
        return first != OVER
    inner: Any = settings.get(first)
    setting = rest.partition(".")[0]
    if issubclass(kind, NetworkModel):
        named = isinstance(inner, str | Mapping)
        chosen: Any = part_kind(kind, first, inner) if named else None
        return is_dataclass(chosen) and setting in {each.name for each in fields(chosen)}
    return _has_kind(inner) and setting in parameters_of(import_class(inner["kind"]))


def parameters_within(model: Model, kind: type[Any], settings: Settings) -> set[str]:
    """Return the parameters of a model and of the estimators within it, as in scikit-learn."""
    own = {key: value for key, value in settings.items() if key in parameters_of(kind)}
    return set(configure(model, kind, own).get_params(deep=True))


def estimator_of(trial: Trial, network: SimulatedNetwork | None = None, **more: Any) -> Any:
    """Return the unfitted estimator of a run.

    Its settings are those of its data set, then of its model, then `more`.

    Of the first and the last those that the estimator has: one search serves several models, as one
    data set does.
    """
    given = trial.model.estimator
    kind = kind_of(trial.model, facts_of(trial.data).task)
    taken = parameters_of(kind)
    settings = settings_of(trial.data, trial.model, kind)
    for key, value in more.items():
        if key.partition(".")[0] in taken or takes(trial.model, kind, settings, key):
            settings = with_key(settings, key, value)
    if SEEDED in taken and getattr(given, SEEDED, None) is None:
        settings.setdefault(SEEDED, trial.seed("model"))
    if OVER in taken:
        settings[OVER] = network
    return configure(trial.model, kind, settings)


def settings_of(data: Data, model: Model, kind: type[Any]) -> dict[str, Any]:
    """Return the settings of the data set that such a model has, replaced by its own."""
    taken = parameters_of(kind)
    return {key: value for key, value in data.settings.items() if key in taken} | dict(
        model.settings
    )


def configure(model: Model, kind: type[Any], settings: Mapping[str, Any]) -> Any:
    """Return the estimator of a model, or a copy of the given one, with these settings."""
    if model.estimator is None:
        return make_estimator(kind, settings)
    return clone(model.estimator).set_params(**_objects(kind, settings))


def make_estimator(kind: type[Any], settings: Mapping[str, Any]) -> Any:
    """Return an estimator with settings.

    Tables among them are algorithms of ours, or estimators by the import path `kind`.
    """
    objects = _objects(kind, settings)
    own = parameters_of(kind)
    deep = {key: objects.pop(key) for key in list(objects) if DEEP in key and key not in own}
    estimator = kind(**objects)
    return estimator.set_params(**deep) if deep else estimator


def _objects(kind: type[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    if issubclass(kind, NetworkModel):
        return with_parts(kind, settings)
    return {key: _make_nested(value) for key, value in settings.items()}


def _make_nested(value: Any) -> Any:
    if _has_kind(value):
        return make_estimator(
            import_class(value["kind"]), {key: each for key, each in value.items() if key != "kind"}
        )
    return [_make_nested(each) for each in value] if isinstance(value, list) else value


def _has_kind(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("kind"), str)


def find_objection(data: Data, model: Model) -> str:
    """Return why the model cannot learn the targets of a table there; empty if it can."""
    facts = facts_of(data)
    kind = kind_of(model, facts.task)
    if what_it_takes(kind) == "sequences":
        return "learns sequences, and these are rows"
    if what_it_takes(kind) == "signals":
        return "filters signals, and these are rows"
    if not hasattr(kind, "predict"):
        return "does not predict"
    classifies, measures = _abilities(model, kind)
    if facts.task == "regression" and classifies and not measures:
        return "classifies, and the targets are measured"
    if facts.task == "classification" and measures and not classifies:
        return "predicts numbers, and the targets are classes"
    if classifies and facts.classes > 2 and not _takes_many_classes(model, kind):
        return f"separates two classes, and there are {facts.classes}"
    if model.where == "network" and OVER not in parameters_of(kind):
        return "trains in one place or alone, not over a network"
    return ""


def what_it_takes(kind: type[Any]) -> Takes:
    """Return what an agent must have for a model of this class: rows if it is not ours."""
    return kind.takes if issubclass(kind, NetworkModel) else "rows"


def _abilities(model: Model, kind: type[Any]) -> tuple[bool, bool]:
    """Return whether it classifies and whether it predicts numbers; neither if it is open."""
    if model.estimator is not None:
        return is_classifier(model.estimator), is_regressor(model.estimator)
    return issubclass(kind, ClassifierMixin), issubclass(kind, RegressorMixin)


def _takes_many_classes(model: Model, kind: type[Any]) -> bool:
    """Return what the tags say; settings do not change them.

    Only combinations of scikit-learn have tags that follow from what is given or left to the run.
    """
    if model.estimator is None and not issubclass(kind, NetworkModel):
        return True
    tags = get_tags(kind() if model.estimator is None else model.estimator)
    return bool(tags.classifier_tags is None or tags.classifier_tags.multi_class)
