"""Models and their algorithms by name, as TOML files give them.

Every public model of a file in this folder is found; there is no list to add it to. An algorithm is
a name, or a table with a name and settings:

    solver = "cg"
    solver = { name = "admm", max_iterations = 50, averaging = { method = "plain" } }
    privacy = { name = "projection", m = 10 }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib import import_module
from inspect import signature
from typing import Any

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.differential_privacy import DifferentialPrivacy
from peerlearn.algorithms.registry import own_files
from peerlearn.algorithms.smooth import StepRule
from peerlearn.errors import InputError
from peerlearn.models.base import NetworkModel
from peerlearn.toml_reader import near

PACKAGE = "peerlearn.models"
# Settings of algorithms and models that may be tables themselves.
TABLES: dict[str, type[Any]] = {
    "averaging": Averaging,
    "step": StepRule,
    "differential_privacy": DifferentialPrivacy,
}


@cache
def models() -> dict[str, type[NetworkModel]]:
    """Return every model by the name of its class, in alphabetical order."""
    kinds = {}
    for path in own_files(PACKAGE):
        for name, kind in vars(import_module(path)).items():
            if not name.startswith("_") and _is_model(kind) and kind.__module__ == path:
                kinds[name] = kind
    return dict(sorted(kinds.items()))


def saved_models() -> dict[str, type[NetworkModel]]:
    """Return the models that can be saved, by name."""
    return {name: kind for name, kind in models().items() if kind.can_be_saved()}


def with_parts(kind: type[NetworkModel], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of this kind of model, with tables replaced by algorithms.

    Names of algorithms stay names: the model itself looks them up.
    """
    complete = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            own = key in TABLES and key in signature(kind).parameters
            value = _make(TABLES[key], value) if own else part(kind, key, value)
        complete[key] = value
    return complete


def part(kind: type[NetworkModel], parameter: str, given: Any) -> Any:
    """Return the algorithm that a name or table gives for this parameter of the model."""
    chosen = part_kind(kind, parameter, given)
    settings = {} if isinstance(given, str) else dict(given)
    settings.pop("name", None)
    for key, table in TABLES.items():
        if isinstance(settings.get(key), Mapping):
            settings[key] = _make(table, settings[key])
    return _make(chosen, settings)


def part_kind(kind: type[NetworkModel], parameter: str, given: Any) -> type[Any]:
    """Return the class of the algorithm that a name or table gives for this parameter."""
    if parameter not in kind.parts:
        raise InputError(
            f"{parameter} is a table, but {kind.__name__} takes a single value here: give one"
        )
    table: Any = {"name": given} if isinstance(given, str) else given
    if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
        raise InputError(
            f"{parameter} is {given!r}: give a name, or a table with a name and settings"
        )
    return kind.parts[parameter].kind_of(table["name"])


def _make(kind: type[NetworkModel], settings: Mapping[str, Any]) -> Any:
    """Return an object of this class, after checking the names of its settings."""
    known = {each.name: each for each in fields(kind)} if is_dataclass(kind) else {}
    unknown = sorted(set(settings) - set(known))
    if unknown:
        hint = near(unknown[0], known) if known else ", which has no settings"
        raise InputError(f"{unknown[0]} is not a setting of {kind.__name__}{hint}")
    for name, each in known.items():
        required = each.default is MISSING and each.default_factory is MISSING
        if required and name not in settings:
            raise InputError(f"{kind.__name__} needs {name}: give it in the same table as the name")
    return kind(**settings)


def _is_model(kind: Any) -> bool:
    """Return whether it is a model that users can create: its constructor takes a network."""
    if not isinstance(kind, type) or not issubclass(kind, NetworkModel):
        return False
    return "network" in signature(kind).parameters
