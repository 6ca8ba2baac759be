"""What [model] describes: an estimator with its solver, from plain values."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from peerlearn import models
from peerlearn.algorithms import Averaging
from peerlearn.algorithms.choice import solver_of
from peerlearn.errors import InputError
from peerlearn.sites.keys import Table, near

KINDS = {"RVFLClassifier": models.RVFLClassifier, "RVFLRegressor": models.RVFLRegressor}
BY_SCRIPT = ("VerticalRVFLClassifier", "VerticalRVFLRegressor")  # what a site's file says of columns is for rows


def read_model(table: Table) -> dict[str, Any]:
    """The model's parameters as plain values; that they can be used is seen by making the model."""
    settings = table.rest()
    try:
        make_model(settings)._settings()  # a private look, so that nothing is opened for a model that would be refused
    except (TypeError, ValueError) as error:
        raise InputError(f"[model] in {table.path} cannot be used: {error}") from None
    return settings


def make_model(settings: dict[str, Any], network: Any = None) -> Any:
    """The estimator that [model] describes."""
    given = dict(settings)
    kind, solver = given.pop("kind", "RVFLClassifier"), given.pop("solver", "auto")
    if kind in BY_SCRIPT:
        raise InputError(f"kind {kind} has no place in a file yet: train it by a script over PeerNetwork")
    if kind not in KINDS:
        raise InputError(f"kind {kind!r} is not known{near(str(kind), KINDS)}")
    known = set(KINDS[kind]().get_params()) - {"network"}
    if unknown := sorted(set(given) - known):
        raise InputError(f"{unknown[0]} is not a parameter of {kind}{near(unknown[0], known | {'kind'})}")
    if not isinstance(given.get("random_state"), int) or isinstance(given.get("random_state"), bool):
        raise InputError("random_state has to be a whole number, the same at every site: features are drawn from it")
    return KINDS[kind](**given, solver=make_solver(solver), network=network)


def make_solver(settings: Any) -> Any:
    """A solver by its name, or from a table with a name and settings; averaging may be a table too."""
    if isinstance(settings, str):
        return solver_of(settings)
    if not isinstance(settings, dict) or not isinstance(settings.get("name"), str):
        raise InputError(f"solver is {settings!r}: give a name, or a table with a name and settings")
    given = {key: value for key, value in settings.items() if key != "name"}
    solver = solver_of(settings["name"])
    _must_be_fields(solver, given)
    if isinstance(given.get("averaging"), dict):
        _must_be_fields(Averaging, given["averaging"])
        given["averaging"] = Averaging(**given["averaging"])
    return type(solver)(**given)


def compared(settings: dict[str, Any]) -> dict[str, Any]:
    """What all sites must have alike, defaults included: one entry per parameter, so that sentences name it."""
    model = make_model(settings)
    told = {"kind": type(model).__name__, **model.get_params(deep=False), "solver": repr(model.solver)}
    del told["network"]
    return {f"model.{key}": _plain(value) for key, value in told.items()}


def _plain(value: Any) -> Any:
    """1.0 and 1 are the same setting."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _must_be_fields(settings: Any, given: dict[str, Any]) -> None:
    known: list[str] = [each.name for each in fields(settings)] if is_dataclass(settings) else []
    name = settings.__name__ if isinstance(settings, type) else type(settings).__name__
    if unknown := sorted(set(given) - set(known)):
        hint = near(unknown[0], known) if known else ", which has none"
        raise InputError(f"{unknown[0]} is not a setting of {name}{hint}")
