"""Settings of models as files have them: an algorithm is its name, or a table with the name and settings.

solver = "cg"
solver = { name = "admm", max_iterations = 50, averaging = { method = "plain" } }
privacy = { name = "projection", m = 10 }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.smooth import StepRule
from peerlearn.errors import InputError
from peerlearn.models.base import NetworkModel
from peerlearn.toml_reader import near

TABLES: dict[str, type[Any]] = {
    "averaging": Averaging,
    "step": StepRule,
}  # settings that may be tables themselves


def with_parts(kind: type[NetworkModel], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of this kind of model, tables among them made into what they describe; names are left to the model."""
    return {
        key: part(kind, key, value) if isinstance(value, Mapping) else value
        for key, value in settings.items()
    }


def part(kind: type[NetworkModel], parameter: str, given: Any) -> Any:
    """The algorithm that is this parameter of this kind of model."""
    chosen = part_kind(kind, parameter, given)
    settings = (
        {}
        if isinstance(given, str)
        else {key: value for key, value in given.items() if key != "name"}
    )
    for key, table in TABLES.items():
        if isinstance(settings.get(key), Mapping):
            settings[key] = _make(table, settings[key])
    return _make(chosen, settings)


def part_kind(kind: type[NetworkModel], parameter: str, given: Any) -> type[Any]:
    """The class of the algorithm that is this parameter of this kind of model."""
    if parameter not in kind.parts:
        raise InputError(
            f"{parameter} is a table, but {kind.__name__} takes one value here: give that"
        )
    described: Any = {"name": given} if isinstance(given, str) else given
    if not isinstance(described, Mapping) or not isinstance(described.get("name"), str):
        raise InputError(
            f"{parameter} is {given!r}: give a name, or a table with a name and settings"
        )
    return kind.parts[parameter].kind_of(described["name"])


def _make(kind: type[NetworkModel], settings: Mapping[str, Any]) -> Any:
    known = {each.name: each for each in fields(kind)} if is_dataclass(kind) else {}
    if unknown := sorted(set(settings) - set(known)):
        hint = near(unknown[0], known) if known else ", which has none"
        raise InputError(f"{unknown[0]} is not a setting of {kind.__name__}{hint}")
    for name, each in known.items():
        if each.default is MISSING and each.default_factory is MISSING and name not in settings:
            raise InputError(f"{kind.__name__} needs {name}: give it beside the name")
    return kind(**settings)
