"""What is compared: data sets x models x networks, as plain objects.

>>> from peerlearn import Consensus, RVFLClassifier, graphs
>>> from peerlearn.lab import Comparison, Data, Model, Net
>>> comparison = Comparison(
...     data=(Data("g50c"),),
...     models=(Model("CONS", estimator=RVFLClassifier(100, solver=Consensus())),),
...     networks=(Net("ring", fixed=graphs.ring(5)),),
...     folds=3,
... )
>>> len(list(comparison.trials()))
3
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import networkx as nx

from peerlearn.algorithms.registry import find_classes
from peerlearn.arrays import is_whole
from peerlearn.data import DataSet
from peerlearn.data.dataset import Task
from peerlearn.errors import InputError
from peerlearn.lab.description.specs import Layout
from peerlearn.toml_reader import near

if TYPE_CHECKING:
    from peerlearn.lab.description.search import Search
    from peerlearn.lab.description.trial import Protocol, Trial

Where = Literal["network", "centralised", "alone"]
Settings = Mapping[str, Any]
Scale = Literal["as loaded", "none", "unit", "signed", "standard"]
MOST_RUNS = 100_000  # of a comparison: more are a slip of the pen, and writing them out takes long


@dataclass(frozen=True)
class Data:
    """A data set by its name in peerlearn.data, or given as a DataSet.

    `settings` are for every model that has them.
    """

    name: str
    source: str = ""  # its name in peerlearn.data, or a generator; empty: the same name
    options: Settings = field(default_factory=dict)  # of a generator
    # How columns are scaled, by training rows only. As loaded: to the range the set is known by.
    scale: Scale = "as loaded"
    # Transformers by import path ("kind") and settings, fitted to training rows too.
    prepare: tuple[Settings, ...] = ()
    settings: Settings = field(default_factory=dict)
    given: DataSet | None = None
    swept: Settings = field(default_factory=dict)
    task: Task | None = None  # classification or regression; None: as its targets look


@dataclass(frozen=True)
class Model:
    """An estimator: by kind and settings as in a file, or an object that every run clones.

    kind: a class of peerlearn ("RVFLClassifier"), a family that follows the task ("RVFL",
    "VerticalRVFL"), or the
    import path of any scikit-learn estimator. where: over the network, centralised (all rows in one
    place), or alone (each agent fits a copy to its own share); if not said, models of peerlearn
    over the network, others centralised.
    """

    name: str
    kind: str = ""
    where: Where | None = None
    settings: Settings = field(default_factory=dict)
    estimator: Any = None
    swept: Settings = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.where is None:
            path = self.kind if self.estimator is None else type(self.estimator).__module__ + "."
            ours = "." not in path or path.startswith("peerlearn.")
            object.__setattr__(self, "where", "network" if ours else "centralised")


@dataclass(frozen=True)
class Net:
    """A network: a kind of graph, drawn anew in every repetition, or a fixed graph."""

    name: str
    graph: str = ""  # a generator of peerlearn.graphs
    agents: int = 0
    # Of the generator: p, k, ...; a seed fixes the graph.
    parameters: Settings = field(default_factory=dict)
    weights: str = "metropolis"
    fixed: nx.Graph | None = None
    swept: Settings = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Count the agents of a fixed graph and of a grid."""
        sides = [self.parameters.get(side) for side in ("rows", "columns")]
        if isinstance(self.fixed, nx.Graph):
            object.__setattr__(self, "agents", len(self.fixed))
        elif (
            isinstance(self.graph, str)
            and self.graph == "grid"
            and not self.agents
            and all(map(is_whole, sides))
        ):
            object.__setattr__(self, "agents", prod(sides))


def protocols() -> dict[str, type[Any]]:
    """Return every protocol of lab.protocols by its name. A new file is found by itself."""
    return find_classes("peerlearn.lab.protocols", "run")


def protocol_named(name: str, **settings: Any) -> Protocol:
    """Return the protocol of that name, with settings."""
    kinds = protocols()
    if name not in kinds:
        raise InputError(f"there is no protocol {name!r}{near(name, kinds)}")
    known = [each.name for each in fields(kinds[name])]
    if stray := [key for key in settings if key not in known]:
        raise InputError(f"{stray[0]} is no setting of the protocol {name}{near(stray[0], known)}")
    made: Protocol = kinds[name](**settings)
    return made


@dataclass(frozen=True)
class Comparison:
    """Everything that is run: one entry per value of a sweep, each with what was swept."""

    data: tuple[Data, ...]
    models: tuple[Model, ...]
    networks: tuple[Net, ...] = ()
    protocol: Protocol = field(default_factory=lambda: protocol_named("rows"))
    seed: int = 0
    folds: int = 1  # 1: one split, with test_fraction of the rows held out
    test_fraction: float = 0.25
    repetitions: int = 1
    metrics: tuple[str, ...] = ()  # empty: those of the task
    search: Search | None = None
    layout: Layout = field(default_factory=Layout)

    @property
    def entries(self) -> dict[str, tuple[Data | Model | Net, ...]]:
        """All that is compared, by the name of its list."""
        return {"data": self.data, "models": self.models, "networks": self.networks}

    @property
    def runs(self) -> int:
        """The number of runs, counted without making them."""
        per_fold = sum(
            1 if model.where == "centralised" else len(self.networks) for model in self.models
        )
        return len(self.data) * self.repetitions * self.folds * per_fold

    def trials(self) -> Iterator[Trial]:
        """Yield every run, those of one data set, repetition and fold together.

        A model that needs no network is run once.
        """
        from peerlearn.lab.description.trial import Trial

        for data, repetition, fold in product(
            self.data, range(self.repetitions), range(self.folds)
        ):
            for model in self.models:
                for network in (None,) if model.where == "centralised" else self.networks:
                    yield Trial(self, data, model, network, repetition, fold)
