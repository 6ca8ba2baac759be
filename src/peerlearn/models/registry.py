"""Finding models by name: every public model of a file in this folder.

A new file in the folder is enough; there is no list to add it to.
"""

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
    kinds = {}
    for path in own_files(PACKAGE):
        for name, kind in vars(import_module(path)).items():
            if not name.startswith("_") and _is_model(kind) and kind.__module__ == path:
                kinds[name] = kind
    return dict(sorted(kinds.items()))


def saved_models() -> dict[str, type[NetworkModel]]:
    """Return the models that can be saved, by name."""
    return {name: kind for name, kind in models().items() if kind.can_be_saved()}


def _is_model(kind: Any) -> bool:
    """Return whether it is a model that users can create: its constructor takes a network."""
    if not isinstance(kind, type) or not issubclass(kind, NetworkModel):
        return False
    return "network" in signature(kind).parameters
