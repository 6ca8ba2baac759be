"""What [model] describes: an estimator with its solver, from plain values."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier

from peerlearn import graphs
from peerlearn.errors import InputError
from peerlearn.models.base import NetworkModel
from peerlearn.models.from_config import part, with_parts
from peerlearn.models.registry import models, saved_models
from peerlearn.network import SimulatedNetwork
from peerlearn.toml_reader import TomlTable, near


def read_model(table: TomlTable) -> dict[str, Any]:
    """The model's parameters as plain values; that they can be used is seen by making the model."""
    settings = table.rest()
    try:
        model = make_model(
            settings, SimulatedNetwork(graphs.complete(2))
        )  # who is alone may do what a network may not
        model.check_settings()  # so that nothing is opened for a model that would be refused
        model.check_use_in_files()
    except (TypeError, ValueError) as error:
        raise InputError(f"[model] in {table.path} cannot be used: {error}") from None
    return settings


def make_model(settings: dict[str, Any], network: Any = None) -> Any:
    """The estimator that [model] describes."""
    given, kind = dict(settings), _kind_of(settings)
    given.pop("kind", None)
    defaults = kind().get_params()
    del defaults["network"]
    if unknown := sorted(set(given) - set(defaults)):
        raise InputError(
            f"{unknown[0]} is not a parameter of {kind.__name__}{near(unknown[0], {*defaults, 'kind'})}"
        )
    if not isinstance(given.get("random_state"), int) or isinstance(
        given.get("random_state"), bool
    ):
        raise InputError(
            "random_state has to be a whole number, the same at every site: what is drawn follows from it"
        )
    if "solver" in kind.parts:
        given["solver"] = part(kind, "solver", given.get("solver", defaults["solver"]))
    return kind(**with_parts(kind, given), network=network)


def classifies(settings: dict[str, Any]) -> bool:
    return bool(is_classifier(_kind_of(settings)()))


def may_lack_labels(settings: dict[str, Any]) -> bool:
    """Whether the model learns from rows without a label as well."""
    return _kind_of(settings).partly_labelled


def learns_in_order(settings: dict[str, Any]) -> bool:
    """Whether rows are times, so that a site's table is one sequence."""
    return _kind_of(settings).takes == "sequences"


def _kind_of(settings: dict[str, Any]) -> type[NetworkModel]:
    kind, saved = settings.get("kind", "RVFLClassifier"), saved_models()
    if not isinstance(kind, str) or kind not in models():
        raise InputError(f"kind {kind!r} is not known{near(str(kind), saved)}")
    if not models()[kind].predicts_alone:
        raise InputError(
            f"kind {kind} has no place in a file, because nobody can predict alone with it: train and predict by a "
            "script over PeerNetwork that all sites run"
        )
    if kind not in saved:
        raise InputError(
            f"kind {kind} cannot be saved, and a site saves what it trains{near(kind, saved)}"
        )
    return saved[kind]


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
