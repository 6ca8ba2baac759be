"""The conventions of scikit-learn: those of its own checks that apply to models over a network."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from typing import Any
from unittest import SkipTest

from sklearn.utils.estimator_checks import estimator_checks_generator

from peerlearn import SimulatedNetwork, graphs
from peerlearn.models.base import NetworkModel

SMALL = {"n_hidden": 30, "n_reservoir": 20}  # fewer than usual only to be quick
# These call partial_fit(X, y) with one table, which cannot be dealt to agents that have a running
# sequence each.
TABLE_IN_TIME = (
    "check_fit_score_takes_y",
    "check_n_features_in_after_fitting",
    "check_estimators_partial_fit_n_features",
)


def convention_checks(model: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield scikit-learn's checks of a model by name; each is called without arguments."""
    for estimator, check in estimator_checks_generator(model):
        name = check.func.__name__
        if _applies(model, name):
            yield name, partial(_run, estimator, check)


def over_two_agents(kind: type[NetworkModel]) -> Any:
    """Return a model as scikit-learn's checks take it, over a network of two agents."""
    small = {name: value for name, value in SMALL.items() if name in signature(kind).parameters}
    return kind(**small, network=SimulatedNetwork(graphs.ring(2)))


def _applies(model: Any, name: str) -> bool:
    """Return whether a check is for such a model."""
    if name == "check_array_api_input":  # for estimators that claim to take other arrays
        return False
    apart = model.takes == "sequences" and model.network is not None
    return not (apart and name in TABLE_IN_TIME)


def _run(model: Any, check: Any) -> None:
    name = check.func.__name__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if model.takes == "sequences" and name == "check_pipeline_consistency":
                check.func(type(model).__name__, _deterministic(model))
            elif model.partly_labelled and name == "check_classifiers_classes":
                # It uses -1 as a class, except for the semi-supervised estimators of scikit-learn,
                # which it knows by name.
                check.func("SelfTrainingClassifier", model)
            else:
                check(model)
        except SkipTest:
            pass  # scikit-learn lacks a package for it


def _deterministic(model: Any) -> Any:
    """Return the model without the tag that keeps checks from shuffling its rows.

    The check of pipelines does not shuffle, but would be skipped because of the tag.
    """

    class Deterministic(type(model)):  # type: ignore[misc]
        def __sklearn_tags__(self) -> Any:
            tags = super().__sklearn_tags__()
            tags.non_deterministic = False
            return tags

    return Deterministic(**model.get_params(deep=False))
