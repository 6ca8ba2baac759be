"""The objects that describe a comparison: data sets x models x networks.

They only hold what was given. `lab.checking` refuses what cannot be run, `lab.runs` makes the runs.
The entries of a sweep have the same name and differ in `swept`, which holds the swept keys and
their values. `lab.file.reading` makes such entries from the lists of a TOML file.
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
from peerlearn.network.base import Secrecy
from peerlearn.toml_reader import near

if TYPE_CHECKING:
    from peerlearn.lab.description.search import Search
    from peerlearn.lab.description.trial import Protocol, Trial

Where = Literal["network", "centralised", "alone"]
Settings = Mapping[str, Any]
Scale = Literal["as loaded", "none", "unit", "signed", "standard"]
Split = Literal["auto", "rows", "within-sites", "leave-one-site-out", "time"]
MOST_RUNS = 100_000  # in a comparison: more are probably a mistake, and take long to write down


@dataclass(frozen=True)
class Data:
    """A data set of a comparison, by its name in peerlearn.data or given as arrays.

    Parameters
    ----------
    name : str
        Name in tables and figures.
    source : str, default ""
        Name of the data set in peerlearn.data, or of a generator: of sequences or signals such as
        "narma10", or of tables of several sites, "hospital_tables". Empty: the same as `name`.
    options : mapping of str to object, default {}
        Options of the generator, such as {"sequences": 50}. A file takes {"complete": columns}:
        rows with a gap in one of these columns are left out.
    scale : {"as loaded", "none", "unit", "signed", "standard"}, default "as loaded"
        How columns are scaled, by the training rows of each fold. "as loaded" scales to the range
        that is usual for a data set of peerlearn.data, and leaves given rows as they are.
    prepare : tuple of mappings, default ()
        Transformers that are fitted to the training rows of each fold. Each has its import path as
        "kind", and its settings. If the first is peerlearn.TablePreparer, given rows may have gaps,
        categories and dates.
    settings : mapping of str to object, default {}
        Settings for every model that has parameters of these names.
    given : DataSet or pair of X and y, default None
        The rows themselves, in place of a name in peerlearn.data.
    swept : mapping of str to object, default {}
        Swept keys of this entry and their values. They become columns of the results.
    task : {"classification", "regression"}, default None
        What is predicted. None guesses it from the targets.
    site : str, default None
        Name of the array in `extras` of the data set that has the site of each row. The protocol
        "rows" with deal="site" deals by it, and `split` of the comparison holds out by it.
    time : str, default None
        Likewise the time of each row, for split="time".

    Examples
    --------
    >>> from peerlearn.lab import Data
    >>> Data("iris", scale="standard").scale
    'standard'
    >>> Data("long series", source="narma10", options={"sequences": 2, "length": 500}).name
    'long series'
    """

    name: str
    source: str = ""
    options: Settings = field(default_factory=dict)
    scale: Scale = "as loaded"
    prepare: tuple[Settings, ...] = ()
    settings: Settings = field(default_factory=dict)
    given: DataSet | None = None
    swept: Settings = field(default_factory=dict)
    task: Task | None = None
    site: str | None = None
    time: str | None = None


@dataclass(frozen=True)
class Model:
    """A model of a comparison, by kind and settings or as an estimator that every run clones.

    Parameters
    ----------
    name : str
        Name in tables and figures.
    kind : str, default ""
        A class of peerlearn ("RVFLClassifier"), a family whose member follows from the task
        ("RVFL"), or the import path of any scikit-learn estimator ("sklearn.svm.SVC").
    where : {"network", "centralised", "alone"}, default None
        Where it is trained: over the network, on all rows in one place, or by each agent on its own
        share. None means "network" for models of peerlearn and "centralised" for all others.
    settings : mapping of str to object, default {}
        Parameters of the model, as in a TOML file.
    estimator : estimator, default None
        An unfitted estimator, in place of `kind` and `settings`.
    swept : mapping of str to object, default {}
        Swept keys of this entry and their values. They become columns of the results.

    Examples
    --------
    >>> from peerlearn import RVFLClassifier
    >>> from peerlearn.lab import Model
    >>> Model("together", estimator=RVFLClassifier(50)).where
    'network'
    >>> Model("rival", kind="sklearn.svm.SVC", settings={"C": 2.0}).where
    'centralised'
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
    """A network of a comparison: a graph drawn in every repetition, or a fixed one.

    Parameters
    ----------
    name : str
        Name in tables and figures.
    graph : str, default ""
        A function of peerlearn.graphs that draws the graph, such as "erdos_renyi".
    agents : int, default 0
        Number of agents. A fixed graph and a grid have their own, which replaces it.
    parameters : mapping of str to object, default {}
        What the function needs, such as {"p": 0.4}. With a "seed" the graph is the same in every
        repetition.
    weights : str, default "metropolis"
        Rule of the mixing weights: "metropolis", "max-degree", "laplacian" or "fastest".
    fixed : networkx.Graph, default None
        The graph itself, in place of `graph` and `agents`.
    concentration : float, default None
        How unequally this network's agents share the classes, if rows are dealt by "dirichlet".
        None takes the protocol's.
    secrecy : {"sums"} or None, default None
        "sums" if agents send each other masked sums only, as in `SimulatedNetwork`.
    colluders : int or None, default None
        With secrecy, how many agents may collude. None is 1.
    swept : mapping of str to object, default {}
        Swept keys of this entry and their values. They become columns of the results.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> from peerlearn.lab import Net
    >>> Net("ring", fixed=graphs.ring(5)).agents
    5
    >>> Net("random", "erdos_renyi", agents=10, parameters={"p": 0.4}).weights
    'metropolis'
    """

    name: str
    graph: str = ""
    agents: int = 0
    parameters: Settings = field(default_factory=dict)
    weights: str = "metropolis"
    fixed: nx.Graph | None = None
    swept: Settings = field(default_factory=dict)
    concentration: float | None = None
    secrecy: Secrecy | None = None
    colluders: int | None = None

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
    """Return every protocol of lab.protocols by its name. A new file is found there."""
    return find_classes("peerlearn.lab.protocols", "run")


def protocol_named(name: str, **settings: Any) -> Protocol:
    """Return the protocol of this name, with settings.

    A protocol decides what agents hold and how a run is made. docs/comparisons.md lists all
    protocols and their settings.

    Parameters
    ----------
    name : str
        Name of the protocol, such as "rows", "columns" or "stream".
    **settings : object
        Settings of the protocol, such as chunk=20.

    Returns
    -------
    Protocol
        What `Comparison` takes as its protocol.

    Raises
    ------
    InputError
        If there is no such protocol, or it has no such setting.

    Examples
    --------
    >>> from peerlearn.lab import protocol_named
    >>> protocol_named("stream", chunk=20).chunk
    20
    """
    kinds = protocols()
    if name not in kinds:
        raise InputError(f"there is no protocol {name!r}{near(name, kinds)}")
    known = [each.name for each in fields(kinds[name])]
    for key in settings:
        if key not in known:
            raise InputError(f"{key} is no setting of the protocol {name}{near(key, known)}")
    made: Protocol = kinds[name](**settings)
    return made


@dataclass(frozen=True)
class Comparison:
    """A comparison: every data set with every model over every network.

    `run` checks it, makes its runs and keeps their rows.

    Parameters
    ----------
    data : tuple of Data
        Data sets. A sweep has one entry per value, as in `models` and `networks`.
    models : tuple of Model
        Models. A centralised one is run once, not once per network.
    networks : tuple of Net, default ()
        Networks. Models that are trained by agents need at least one.
    protocol : Protocol, default protocol_named("rows")
        How a run is made.
    seed : int, default 0
        Seed of everything random.
    folds : int, default 1
        Folds of the cross-validation. 1 is one split, with `test_fraction` of the rows held out.
    test_fraction : float, default 0.25
        Share of the rows that is held out if `folds` is 1.
    split : {"auto", "rows", "within-sites", "leave-one-site-out", "time"}, default "auto"
        Which rows are held out: any of them, a part of each site's, all rows of one site after the
        other, or the latest. "auto" is "within-sites" for data sets with a `site`, else "rows".
    repetitions : int, default 1
        How often everything is repeated. Each repetition draws its own folds and graphs.
    metrics : tuple of str, default ()
        What is measured. Empty: the usual metric of each task.
    search : Search, default None
        Grid search inside the training rows of each fold.
    layout : Layout, default Layout()
        What the report shows.

    Attributes
    ----------
    entries : dict
        `data`, `models` and `networks` by these names.
    runs : int
        The number of runs.

    Examples
    --------
    >>> from peerlearn import Consensus, RVFLClassifier, graphs
    >>> from peerlearn.lab import Comparison, Data, Model, Net
    >>> comparison = Comparison(
    ...     data=(Data("g50c"),),
    ...     models=(Model("CONS", estimator=RVFLClassifier(100, solver=Consensus())),),
    ...     networks=(Net("ring", fixed=graphs.ring(5)),),
    ...     folds=3,
    ... )
    >>> comparison.runs
    3
    >>> [trial.fold for trial in comparison.trials()]
    [0, 1, 2]
    """

    data: tuple[Data, ...]
    models: tuple[Model, ...]
    networks: tuple[Net, ...] = ()
    protocol: Protocol = field(default_factory=lambda: protocol_named("rows"))
    seed: int = 0
    folds: int = 1
    test_fraction: float = 0.25
    repetitions: int = 1
    metrics: tuple[str, ...] = ()
    search: Search | None = None
    layout: Layout = field(default_factory=Layout)
    split: Split = "auto"

    @property
    def entries(self) -> dict[str, tuple[Data | Model | Net, ...]]:
        """Data sets, models and networks by the name of their list."""
        return {"data": self.data, "models": self.models, "networks": self.networks}

    @property
    def runs(self) -> int:
        """The number of runs, counted without making them."""
        per_fold = 0
        for model in self.models:
            per_fold += 1 if model.where == "centralised" else len(self.networks)
        return len(self.data) * self.repetitions * self.folds * per_fold

    def trials(self) -> Iterator[Trial]:
        """Yield every run, those of one data set, repetition and fold together.

        A centralised model has one run per fold, without a network.
        """
        from peerlearn.lab.description.trial import Trial

        for data, repetition, fold in product(
            self.data, range(self.repetitions), range(self.folds)
        ):
            for model in self.models:
                for network in (None,) if model.where == "centralised" else self.networks:
                    yield Trial(self, data, model, network, repetition, fold)
