"""What [model] describes: an estimator with its solver, from plain values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from sklearn.base import is_classifier

from peerlearn import graphs
from peerlearn.algorithms import Averaging
from peerlearn.algorithms.choice import solver_of
from peerlearn.algorithms.smooth import StepRule, smooth_solver_of
from peerlearn.errors import InputError
from peerlearn.keys import Table, near
from peerlearn.models.archive import MODELS
from peerlearn.models.esn import ESNRegressor
from peerlearn.models.unlabelled import PartlyLabelled
from peerlearn.network import SimulatedNetwork

BY_SCRIPT = ("LapKRRClassifier", "VerticalRVFLClassifier", "VerticalRVFLRegressor")  # agents predict together
SOLVERS: dict[str, Callable[[Any], Any]] = {"S3VMClassifier": smooth_solver_of}  # others have those of linear readouts
TABLES: dict[str, type[Any]] = {"averaging": Averaging, "step": StepRule}  # settings that may be tables in a solver's


def read_model(table: Table) -> dict[str, Any]:
    """The model's parameters as plain values; that they can be used is seen by making the model."""
    settings = table.rest()
    try:
        model = make_model(settings, SimulatedNetwork(graphs.complete(2)))  # who is alone may do what a network may not
        model._settings()  # a private look, so that nothing is opened for a model that would be refused
        _must_predict_from_rows(model)
    except (TypeError, ValueError) as error:
        raise InputError(f"[model] in {table.path} cannot be used: {error}") from None
    return settings


def make_model(settings: dict[str, Any], network: Any = None) -> Any:
    """The estimator that [model] describes."""
    given, kind = dict(settings), _kind(settings)
    given.pop("kind", None)
    defaults = MODELS[kind]().get_params()
    del defaults["network"]
    if unknown := sorted(set(given) - set(defaults)):
        raise InputError(f"{unknown[0]} is not a parameter of {kind}{near(unknown[0], {*defaults, 'kind'})}")
    if not isinstance(given.get("random_state"), int) or isinstance(given.get("random_state"), bool):
        raise InputError("random_state has to be a whole number, the same at every site: what is drawn follows from it")
    if "solver" in defaults:
        given["solver"] = make_solver(given.get("solver", defaults["solver"]), SOLVERS.get(kind, solver_of))
    return MODELS[kind](**given, network=network)


def classifies(settings: dict[str, Any]) -> bool:
    return bool(is_classifier(MODELS[_kind(settings)]()))


def may_lack_labels(settings: dict[str, Any]) -> bool:
    """Whether the model learns from rows without a label as well."""
    return issubclass(MODELS[_kind(settings)], PartlyLabelled)


def learns_in_order(settings: dict[str, Any]) -> bool:
    """Whether rows are times, so that a site's table is one sequence."""
    return issubclass(MODELS[_kind(settings)], ESNRegressor)


def _kind(settings: dict[str, Any]) -> str:
    kind = settings.get("kind", "RVFLClassifier")
    if kind in BY_SCRIPT:
        raise InputError(
            f"kind {kind} has no place in a file, because nobody can predict alone with it: train and predict by a "
            "script over PeerNetwork that all sites run"
        )
    if not isinstance(kind, str) or kind not in MODELS:
        raise InputError(f"kind {kind!r} is not known{near(str(kind), MODELS)}")
    return kind


def _must_predict_from_rows(model: Any) -> None:
    if isinstance(model, ESNRegressor) and model.feedback_scaling:
        raise InputError(
            f"feedback_scaling is {model.feedback_scaling}, and a model whose outputs are fed back has no place in a "
            "file, because nobody can predict with it from rows alone: set it to 0, or train and predict by a script "
            "over PeerNetwork that all sites run"
        )


def make_solver(settings: Any, by_name: Callable[[Any], Any] = solver_of) -> Any:
    """A solver by its name, or from a table with a name and settings, some of which may be tables too."""
    if isinstance(settings, str):
        return by_name(settings)
    if not isinstance(settings, dict) or not isinstance(settings.get("name"), str):
        raise InputError(f"solver is {settings!r}: give a name, or a table with a name and settings")
    given = {key: value for key, value in settings.items() if key != "name"}
    solver = by_name(settings["name"])
    _must_be_fields(solver, given)
    for key, kind in TABLES.items():
        if isinstance(given.get(key), dict):
            _must_be_fields(kind, given[key])
            given[key] = kind(**given[key])
    return type(solver)(**given)


def compared(settings: dict[str, Any]) -> dict[str, Any]:
    """What all sites must have alike, defaults included: one entry per parameter, so that sentences name it."""
    model = make_model(settings)
    told = {"kind": type(model).__name__, **model.get_params(deep=False)}
    del told["network"]
    return {f"model.{key}": _plain(value) for key, value in told.items()}


def _plain(value: Any) -> Any:
    """1.0 and 1 are the same setting; a solver is what it says of itself."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, bool | int | float | str | None) else repr(value)


def _must_be_fields(settings: Any, given: dict[str, Any]) -> None:
    known: list[str] = [each.name for each in fields(settings)] if is_dataclass(settings) else []
    name = settings.__name__ if isinstance(settings, type) else type(settings).__name__
    if unknown := sorted(set(given) - set(known)):
        hint = near(unknown[0], known) if known else ", which has none"
        raise InputError(f"{unknown[0]} is not a setting of {name}{hint}")
