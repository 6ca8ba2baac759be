"""One run: what it is given, who it is, the seeds that follow from that, and what comes out.

A seed is made of the file's seed and of those parts of the identity that must share it: all models
see the same folds and draw the same random features, so that they are compared in pairs, and
nothing depends on the order of runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache, partial
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any, ClassVar, Literal
from typing import Protocol as TypingProtocol

import networkx as nx
import numpy as np

from peerlearn import data
from peerlearn.data import DataSet
from peerlearn.errors import PeerlearnError
from peerlearn.experiments.lab.comparison import Comparison, Data, Model, Net
from peerlearn.experiments.lab.facts import GENERATORS, source_of
from peerlearn.experiments.lab.own_code import own_code
from peerlearn.network.base import Counts

Curve = tuple[Sequence[float], Sequence[float]]  # where, and how much
Purpose = Literal["data", "split", "deal", "model", "graph"]


@dataclass(frozen=True)
class Outcome:
    """What one run gave. Values are means over agents where agents differ; `agents` has them one by one."""

    seconds: float  # of training alone
    values: Mapping[str, float] = field(default_factory=dict)
    agents: Mapping[str, Sequence[float]] = field(default_factory=dict)
    curves: Mapping[str, Curve] = field(default_factory=dict)
    sent: Counts = field(default_factory=Counts)
    converged: bool | None = None  # None: nothing that could have converged
    iterations: int | None = None
    note: str = ""


class Protocol(TypingProtocol):
    """How a run is made. A frozen dataclass whose fields are the keys of [protocol] in a file."""

    name: ClassVar[str]
    # A protocol that runs best_settings of a trial says so: `searches: ClassVar = True`; elsewhere
    # [search] is refused.
    measures: ClassVar[
        Mapping[str, str]
    ]  # what it measures beside the metrics of predictions -> in words
    curves: ClassVar[Mapping[str, str]]  # curves that it may leave -> in words

    def refuses(self, data: Data, model: Model) -> str:
        """Why this model cannot do this task, which tables then show as not applicable; empty if it can."""

    def run(self, trial: Trial) -> Outcome:
        """Train and measure, once."""


@dataclass(frozen=True)
class Trial:
    """One cell of a comparison, once: a data set, a model, a network (None: all rows in one place), a fold."""

    comparison: Comparison
    data: Data
    model: Model
    network: Net | None
    repetition: int
    fold: int
    within: Trial | None = (
        None  # in a search: the run of whose training rows this one has its folds
    )

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that its numbers follow from, in plain values: the same identity, the same numbers."""
        whole = self.comparison
        return {
            "seed": plain(whole.seed),
            "protocol": {"name": whole.protocol.name, **plain(whole.protocol)},
            "folds": plain(whole.folds),
            "test_fraction": whole.test_fraction,
            "metrics": list(whole.metrics),
            "search": plain(whole.search),
            "data": plain(self.data),
            **_of_file(self.data),
            "model": plain(self.model),
            "network": plain(self.network),
            "repetition": self.repetition,
            "fold": self.fold,
        }

    @property
    def key(self) -> str:
        """The name of its row on disk."""
        return _digest(self.identity)[:20]

    def seed(self, purpose: Purpose) -> int:
        """data: of a generator; split: into folds; deal: of rows to agents; model: of what it draws; graph."""
        whole, net, about = (
            self.comparison,
            self.network,
            [self.data.name, plain(self.data.options)],
        )
        parts = {
            "data": about,
            "split": [*about, self.repetition],
            "deal": [*about, self.repetition, self.fold],
            "model": [*about, self.repetition, self.fold],
            # Not of its weights: all weightings are compared on the same graphs.
            "graph": [net and [net.graph, net.agents, plain(net.parameters)], self.repetition],
        }
        return int(_digest([plain(whole.seed), purpose, *parts[purpose]])[:8], 16) % 2**31


def plain(value: Any) -> Any:
    """An object as values that JSON can say, and that tell it from any other."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {
            **{str(key): plain(each) for key, each in value.items()},
            **_of_kind(value.get("kind")),
        }
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if (
        isinstance(value, np.ndarray) and value.dtype.hasobject
    ):  # the bytes of texts from pandas are pointers
        return {"array": [*value.shape], "digest": _digest(plain(value.tolist()))}
    if isinstance(value, np.ndarray):
        return {
            "array": [*value.shape],
            "digest": hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest(),
        }
    if isinstance(value, np.random.RandomState):
        return plain(value.get_state(legacy=False))
    if isinstance(value, nx.Graph):
        place = {
            agent: k for k, agent in enumerate(value)
        }  # which share an agent gets follows from its place
        links = sorted(sorted((place[a], place[b])) for a, b in value.edges())
        return {"agents": [plain(agent) for agent in value], "links": links}
    if isinstance(value, partial):
        return {
            "partial": plain(value.func),
            "args": plain(value.args),
            "keywords": plain(value.keywords),
        }
    if isinstance(value, type | BuiltinFunctionType | np.ufunc | FunctionType):
        name = f"{getattr(value, '__module__', 'numpy')}.{getattr(value, '__qualname__', value.__name__)}"
        code = _of_code(value) if isinstance(value, FunctionType) else {}
        return {
            "name": name,
            **code,
            **own_code(str(value.__module__) if hasattr(value, "__module__") else ""),
        }
    if isinstance(value, DataSet):
        return _of_rows(value)
    who = {
        "class": f"{type(value).__module__}.{type(value).__qualname__}",
        **own_code(type(value).__module__),
    }
    if hasattr(value, "get_params"):
        return {**who, **plain(value.get_params(deep=False))}
    if is_dataclass(value):
        names = (
            each.name for each in fields(value) if each.name != "swept"
        )  # what was swept is in the settings too
        return {
            **who,
            **{name: plain(getattr(value, name)) for name in names},
            **_of_kind(getattr(value, "kind", "")),
        }
    return {**who, "repr": repr(value)}


def _of_kind(path: Any) -> dict[str, str]:
    """The code of a class that is named by its import path."""
    return own_code(path.rpartition(".")[0]) if isinstance(path, str) else {}


def _of_code(function: FunctionType) -> dict[str, Any]:
    """What it does, beside its name: all lambdas of a module have the same one."""
    kept = [cell.cell_contents for cell in function.__closure__ or ()]
    return {
        "code": _steps(function.__code__),
        "defaults": plain(function.__defaults__),
        "kept": plain(kept),
    }


def _steps(code: CodeType) -> list[Any]:
    constants: list[Any] = []
    for each in code.co_consts:
        sets = (
            sorted(map(repr, each)) if isinstance(each, frozenset) else None
        )  # in another order every time
        constants.append(_steps(each) if isinstance(each, CodeType) else sets or repr(each))
    return [hashlib.sha256(code.co_code).hexdigest(), constants, list(code.co_names)]


@lru_cache(maxsize=32)  # thousands of runs ask, and a large set takes long to read through
def _of_rows(given: DataSet) -> dict[str, Any]:
    return {"name": given.name, "X": plain(given.X), "y": plain(given.y)}


def _of_file(entry: Data) -> dict[str, Any]:
    """The rows of a set that is read from a file: under the same name they may be others tomorrow."""
    source = source_of(entry)
    return {} if entry.given is not None or source in GENERATORS else rows_of_file(source)


@lru_cache(maxsize=256)
def rows_of_file(name: str) -> dict[str, Any]:
    """Read once per process; nothing of a set that is generated, bundled, or not there, of which the run says so."""
    if not data.is_a_file(name):
        return {}
    try:
        found = data.load(name, scaled=False)
    except PeerlearnError:
        return {}
    return {"rows": {"X": plain(found.X), "y": plain(found.y)}}


def _digest(identity: Any) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
