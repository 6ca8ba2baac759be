"""Which model can do which task: said before any run, in the few words that a table has room for."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.utils import get_tags

from peerlearn.experiments.lab.comparison import Data, Model
from peerlearn.experiments.lab.facts import facts_of
from peerlearn.experiments.lab.training.making import OVER, kind_of, parameters_of
from peerlearn.models.base import NetworkModel, Takes


def objection(data: Data, model: Model) -> str:
    """Why the model cannot learn the targets of a table, or not where it should; empty if it can."""
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
    """Return what an agent must have for a model of this class: rows for estimators that are not ours."""
    return kind.takes if issubclass(kind, NetworkModel) else "rows"


def _abilities(model: Model, kind: type[Any]) -> tuple[bool, bool]:
    """Whether it classifies, and whether it predicts numbers; of one that leaves it open, neither."""
    if model.estimator is not None:
        return is_classifier(model.estimator), is_regressor(model.estimator)
    return issubclass(kind, ClassifierMixin), issubclass(kind, RegressorMixin)


def _takes_many_classes(model: Model, kind: type[Any]) -> bool:
    """As its tags say, which hang on no setting but those of scikit-learn's combinations, given or left to the run."""
    if model.estimator is None and not issubclass(kind, NetworkModel):
        return True
    tags = get_tags(kind() if model.estimator is None else model.estimator)
    return bool(tags.classifier_tags is None or tags.classifier_tags.multi_class)
