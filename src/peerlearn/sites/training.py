"""What [model] describes: an estimator with its solver, from plain values."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from peerlearn import models
from peerlearn.algorithms import Averaging
from peerlearn.algorithms.choice import solver_of
from peerlearn.errors import InputError
from peerlearn.sites import keys


def read_model(table: keys.Table) -> dict[str, Any]:
    """The model's parameters as plain values; that they can be used is seen by making the model."""
    settings = table.rest()
    try:
        make_model(settings)
    except (TypeError, ValueError) as error:
        raise InputError(f"[model] in {table.path} cannot be used: {error}") from None
    return settings


def make_model(settings: dict[str, Any], network: Any = None) -> Any:
    """The estimator that [model] describes."""
    kinds = {name: getattr(models, name) for name in models.__all__}
    given = dict(settings)
    kind, solver = given.pop("kind", "RVFLClassifier"), given.pop("solver", "auto")
    if kind not in kinds:
        raise InputError(f"kind is {kind!r}: there are {', '.join(sorted(kinds))}")
    if not isinstance(given.get("random_state"), int) or isinstance(given.get("random_state"), bool):
        raise InputError("random_state has to be a whole number, the same at every site: features are drawn from it")
    known = set(kinds[kind]().get_params()) - {"network"}
    if unknown := sorted(set(given) - known):
        raise InputError(f"{unknown[0]} is not a parameter of {kind}: there are {', '.join(sorted(known))}")
    return kinds[kind](**given, solver=make_solver(solver), network=network)


def make_solver(settings: Any) -> Any:
    """A solver by its name, or from a table with a name and settings; averaging may be a table too."""
    if isinstance(settings, str):
        return solver_of(settings)
    if not isinstance(settings, dict) or not isinstance(settings.get("name"), str):
        raise InputError(f"solver is {settings!r}: give a name, or a table with a name and settings")
    given = {key: value for key, value in settings.items() if key != "name"}
    solver = solver_of(settings["name"])
    known: list[str] = [each.name for each in fields(solver)] if is_dataclass(solver) else []
    if unknown := sorted(set(given) - set(known)):
        raise InputError(
            f"{unknown[0]} is not a setting of {type(solver).__name__}: there are {', '.join(sorted(known))}"
        )
    if isinstance(given.get("averaging"), dict):
        given["averaging"] = Averaging(**given["averaging"])
    return type(solver)(**given)
