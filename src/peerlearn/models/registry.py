"""Finding models by name: every public model of a file in this folder. A new file is enough."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from inspect import signature
from typing import Any

from peerlearn.algorithms.registry import own_files
from peerlearn.models.base import NetworkModel

PACKAGE = "peerlearn.models"


@cache
def models() -> dict[str, type[NetworkModel]]:
    """Return every model by the name of its class, in alphabetical order."""
    found = {
        name: kind
        for path in own_files(PACKAGE)
        for name, kind in vars(import_module(path)).items()
        if not name.startswith("_") and _is_model(kind) and kind.__module__ == path
    }
    return dict(sorted(found.items()))


def saved_models() -> dict[str, type[NetworkModel]]:
    """Return the models that can be saved, by name."""
    return {name: kind for name, kind in models().items() if kind.can_be_saved()}


def _is_model(kind: Any) -> bool:
    """Whether it is a class that takes a network; the base classes take nothing."""
    if not isinstance(kind, type) or not issubclass(kind, NetworkModel):
        return False
    return "network" in signature(kind).parameters
