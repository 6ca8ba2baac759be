"""Settings of algorithms as nested parameters of a model: solver__tolerance.

Algorithms are frozen dataclasses, so a new setting makes a new object. A setting that is itself a
dataclass, such as an Averaging, has nested settings too: solver__averaging__tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from peerlearn.errors import InputError


def settings_of(algorithm: Any, prefix: str) -> dict[str, Any]:
    """Return all settings of an algorithm, by names that begin with the prefix."""
    found = {}
    for name in _names(algorithm):
        value = getattr(algorithm, name)
        found[f"{prefix}__{name}"] = value
        found |= settings_of(value, f"{prefix}__{name}")
    return found


def with_settings(algorithm: Any, settings: Mapping[str, Any], prefix: str) -> Any:
    """Return an algorithm like this one, with other settings."""
    own: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for key, value in settings.items():
        name, is_nested, deeper = key.partition("__")
        if name not in _names(algorithm):
            known = ", ".join(_names(algorithm)) or "nothing"
            raise InputError(
                f"Invalid parameter {prefix}__{name}: {type(algorithm).__name__} has no setting "
                f"{name!r}, only {known}"
            )
        if is_nested:
            nested.setdefault(name, {})[deeper] = value
        else:
            own[name] = value
    for name, deeper_settings in nested.items():
        value = own.get(name, getattr(algorithm, name))
        own[name] = with_settings(value, deeper_settings, f"{prefix}__{name}")
    return replace(algorithm, **own)


def _names(algorithm: Any) -> list[str]:
    """Return the names of the settings; none if the algorithm is not a dataclass."""
    if not is_dataclass(algorithm):
        return []
    return [each.name for each in fields(algorithm) if each.init]
