"""What [model] describes: an estimator with its solver, from plain values."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier

from peerlearn import graphs
from peerlearn.errors import InputError
from peerlearn.models.archive import MODELS
from peerlearn.models.described import part, with_parts
from peerlearn.models.esn import ESNRegressor
from peerlearn.models.unlabelled import PartlyLabelled
from peerlearn.network import SimulatedNetwork
from peerlearn.toml_reader import Table, near

BY_SCRIPT = ("LapKRRClassifier", "VerticalRVFLClassifier", "VerticalRVFLRegressor")  # agents predict together


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
        given["solver"] = part(MODELS[kind], "solver", given.get("solver", defaults["solver"]))
    return MODELS[kind](**with_parts(MODELS[kind], given), network=network)


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
