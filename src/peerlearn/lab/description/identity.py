"""What a run's numbers follow from, as plain values, and the digest that names its row on disk.

`describe_value` turns an object into values that JSON can hold and that tell the object from any
other. A kind of object that needs a description of its own registers a function for it. Rows of
old result folders are found by the digest, so no description may change: not the order of the
branches, not the keys, not the recorded class names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial, singledispatch
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from peerlearn import data
from peerlearn.data import DataSet
from peerlearn.errors import PeerlearnError
from peerlearn.lab.description.own_code import own_code

# Where classes of the lab were when the first rows were written: identities keep these paths.
RECORDED_MODULES = {
    "peerlearn.lab.description.comparison": "peerlearn.experiments.lab.comparison",
    "peerlearn.lab.description.search": "peerlearn.experiments.lab.training.search",
}
# Fields that came later. Rows without them keep their digest, because None is left out.
LATER = ("concentration", "secrecy", "colluders", "site", "time")
PROTOCOLS = ("peerlearn.lab.protocols.", "peerlearn.experiments.lab.protocols.")


def digest(identity: Any) -> str:
    """Return the digest of plain values, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


@singledispatch
def describe_value(value: Any) -> Any:
    """Return an object as plain values: its class, and its parameters, fields or text."""
    described = {"class": _class_name(type(value)), **own_code(type(value).__module__)}
    if hasattr(value, "get_params"):
        return {**described, **describe_value(value.get_params(deep=False))}
    if is_dataclass(value):
        # What was swept is among the settings too.
        names = [each.name for each in fields(value) if each.name not in ("swept", *LATER)]
        names += [name for name in LATER if getattr(value, name, None) is not None]
        own = {name: describe_value(getattr(value, name)) for name in names}
        return {**described, **own, **_describe_kind(getattr(value, "kind", ""))}
    return {**described, "repr": repr(value)}


@describe_value.register
def _(value: bool | int | float | str | None) -> Any:
    return value


@describe_value.register
def _(value: np.generic) -> Any:
    return value.item()


@describe_value.register
def _(value: Mapping) -> dict[str, Any]:  # type: ignore[type-arg]  # dispatch needs the bare class
    own = {str(key): describe_value(each) for key, each in value.items()}
    return {**own, **_describe_kind(value.get("kind"))}


@describe_value.register
def _(value: list | tuple) -> list[Any]:  # type: ignore[type-arg]
    return [describe_value(each) for each in value]


@describe_value.register(np.ndarray)
def _(value: NDArray[Any]) -> dict[str, Any]:
    if value.dtype.hasobject:  # the bytes of texts from pandas are pointers
        content = digest(describe_value(value.tolist()))
    else:
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return {"array": [*value.shape], "digest": content}


@describe_value.register
def _(value: np.random.RandomState) -> Any:
    return describe_value(value.get_state(legacy=False))


@describe_value.register
def _(value: nx.Graph) -> dict[str, Any]:
    # Which share an agent gets follows from its place in the graph.
    place = {agent: k for k, agent in enumerate(value)}
    links = sorted(sorted((place[a], place[b])) for a, b in value.edges())
    return {"agents": [describe_value(agent) for agent in value], "links": links}


@describe_value.register
def _(value: partial) -> dict[str, Any]:  # type: ignore[type-arg]
    return {
        "partial": describe_value(value.func),
        "args": describe_value(value.args),
        "keywords": describe_value(value.keywords),
    }


@describe_value.register
def _(value: type | BuiltinFunctionType | np.ufunc) -> dict[str, Any]:
    return {**_describe_name(value), **_own_code_of(value)}


@describe_value.register
def _(value: FunctionType) -> dict[str, Any]:
    """Describe what it does beside its name: all lambdas of a module have the same one."""
    enclosed = [cell.cell_contents for cell in value.__closure__ or ()]
    return {
        **_describe_name(value),
        "code": _describe_code(value.__code__),
        "defaults": describe_value(value.__defaults__),
        "kept": describe_value(enclosed),
        **_own_code_of(value),
    }


@describe_value.register
@lru_cache(maxsize=32)  # thousands of runs ask, and a large set takes long to read through
def _(value: DataSet) -> dict[str, Any]:
    return {"name": value.name, "X": describe_value(value.X), "y": describe_value(value.y)}


@lru_cache(maxsize=256)
def describe_file(name: str, extras: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the rows of a data set that is a file: under the same name they may change.

    extras: further arrays that a run uses.

    A set that is generated or bundled has none, nor one that cannot be loaded: its run fails.
    """
    if not data.is_a_file(name):
        return {}
    try:
        found = data.load(name, scaled=False, gaps=True)
    except PeerlearnError:
        return {}
    used = {"X": found.X, "y": found.y} | {key: found.extras.get(key) for key in extras}
    return {"rows": describe_value(used)}


def _class_name(kind: type[Any]) -> str:
    module = RECORDED_MODULES.get(kind.__module__, kind.__module__)
    now, recorded = PROTOCOLS
    if module.startswith(now):
        module = recorded + module.removeprefix(now)
    return f"{module}.{kind.__qualname__}"


def _describe_name(value: Any) -> dict[str, str]:
    module = getattr(value, "__module__", "numpy")
    return {"name": f"{module}.{getattr(value, '__qualname__', value.__name__)}"}


def _own_code_of(value: Any) -> dict[str, str]:
    return own_code(str(value.__module__) if hasattr(value, "__module__") else "")


def _describe_kind(path: Any) -> dict[str, str]:
    """Return the code of a class that is named by its import path."""
    return own_code(path.rpartition(".")[0]) if isinstance(path, str) else {}


def _describe_code(code: CodeType) -> list[Any]:
    constants = [_describe_constant(each) for each in code.co_consts]
    return [hashlib.sha256(code.co_code).hexdigest(), constants, list(code.co_names)]


def _describe_constant(constant: Any) -> Any:
    if isinstance(constant, CodeType):
        return _describe_code(constant)
    if isinstance(constant, frozenset) and constant:  # in another order every time
        return sorted(map(repr, constant))
    return repr(constant)
