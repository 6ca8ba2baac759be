"""The demo: agents on a random graph learn two data sets by all methods, alone and together.

>>> from peerlearn.cli.demo.run import run_demo
>>> demo = run_demo(agents=5)
>>> [result.method for result in demo.results if result.data == "g50c"]
['centralised', 'alone', 'CONS', 'auto', 'conjugate gradient', 'ADMM']
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count, islice
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from sklearn.model_selection import train_test_split

from peerlearn import data, graphs, partition
from peerlearn.algorithms import ADMM, Auto, ConjugateGradient, Consensus, Local, Solver
from peerlearn.algorithms.averaging import Method
from peerlearn.arrays import Array, norms
from peerlearn.errors import InputError
from peerlearn.lab.protocols.averaging import disagreements
from peerlearn.models import RVFLClassifier
from peerlearn.network import Network, SimulatedNetwork
from peerlearn.network.mpi import MPINetwork
from peerlearn.system.files import result_folder, write, write_table

FEWEST = 4  # agents: fewer are hardly a network
MOST = 100  # more would have hardly a row of g50c each
LINK_PROBABILITY = 0.2
TEST_FRACTION = 0.25
AVERAGES: tuple[Method, ...] = ("plain", "chebyshev", "tree")
AGREED = 1e-6  # disagreement down to which averaging is watched
MOST_ROUNDS = 1000  # or for so many rounds

PROBLEMS: dict[str, dict[str, Any]] = {
    "g50c": {"n_hidden": 500, "alpha": 8.0, "activation": "sigmoid"},
    "digits": {"n_hidden": 500, "alpha": 1.0, "activation": "sigmoid"},
}
METHODS: dict[str, Solver | None] = {
    "centralised": None,  # first: the others are compared with it
    "alone": Local(),
    "CONS": Consensus(),
    "auto": Auto(),  # what a model uses unless told otherwise
    "conjugate gradient": ConjugateGradient(),
    "ADMM": ADMM(tolerance=1e-3),
}
TOGETHER = "auto"  # the method whose models stand for learning together
NUMBER = 8  # bytes of a float64
ENGINES: dict[str, Callable[[nx.Graph], Network]] = {
    "simulation": SimulatedNetwork,
    "mpi": MPINetwork,
}
Watch = Callable[[str, int, int], None]  # what is running now, steps done, steps in all


@dataclass(frozen=True)
class Result:
    """One method on one data set: a line of results.csv."""

    data: str
    method: str
    test_error: float  # on rows that nobody has trained on, averaged over the agents
    distance: float  # of the worst agent's coefficients from the centralised ones, relative
    rounds: int
    bytes_sent: int  # by all agents together
    seconds: float
    converged: bool
    solver: str  # what was run: of interest where the method chooses


@dataclass(frozen=True)
class AgentErrors:
    """One agent on one data set: a line of agents.csv."""

    data: str
    agent: int
    neighbors: int
    rows: int
    row_bytes: int  # of its inputs and targets as float64: what sending them would take
    error_alone: float
    error_together: float  # by auto


@dataclass(frozen=True)
class Disagreement:
    """Distance between agents after a round, 1 before the first: a line of rounds.csv."""

    data: str
    method: str
    round: int
    disagreement: float


@dataclass(frozen=True)
class Demo:
    """Settings, graph and results of one demo."""

    settings: dict[str, Any]
    graph: nx.Graph
    results: list[Result] = field(default_factory=list)
    agents: list[AgentErrors] = field(default_factory=list)
    rounds: list[Disagreement] = field(default_factory=list)


def run_demo(
    output: str | os.PathLike[str] | None = None,
    *,
    agents: int = 20,
    seed: int = 0,
    engine: str = "simulation",
    watch: Watch | None = None,
) -> Demo:
    """Run all methods on both data sets.

    With an output folder, the result files and the figures are written there.

    engine: "simulation", or "mpi" in a job started by mpiexec; there rank 0 has the results, the
    others have none.
    """
    if not FEWEST <= agents <= MOST:
        raise InputError(f"the demo cannot have {agents} agents: choose {FEWEST} to {MOST}")
    if not 0 <= seed < 2**32:
        raise InputError(f"seed {seed} cannot be used: choose a whole number from 0 to {2**32 - 1}")
    if engine not in ENGINES:
        raise InputError(f"there is no engine {engine!r}: choose one of {', '.join(ENGINES)}")
    folder = None if output is None else result_folder(output)
    done = count()
    steps = len(PROBLEMS) * (len(METHODS) + 1) + 1

    def now(doing: str) -> None:
        if watch is not None:
            watch(doing, next(done), steps)

    demo = Demo(
        {**_settings(agents, seed), "engine": engine},
        graphs.erdos_renyi(agents, LINK_PROBABILITY, seed),
    )
    for name in PROBLEMS:
        _learn(name, demo, seed, ENGINES[engine], now)
    if folder is not None and demo.results:
        now("drawing the figure")
        save(demo, folder)
    return demo


def save(demo: Demo, folder: Path) -> None:
    """Write the files of a demo, and the figures drawn from them."""
    from peerlearn.cli.demo.figure import draw_demo

    write(folder / "settings.json", json.dumps(demo.settings, indent=2) + "\n")
    write(folder / "graph.graphml", "\n".join(nx.generate_graphml(demo.graph)) + "\n")
    write_table(folder / "results.csv", demo.results)
    write_table(folder / "agents.csv", demo.agents)
    write_table(folder / "rounds.csv", demo.rounds)
    draw_demo(folder)


def _learn(
    name: str,
    demo: Demo,
    seed: int,
    engine: Callable[[nx.Graph], Network],
    now: Callable[[str], None],
) -> None:
    """Run every method on one data set, each on a network whose ledger starts at zero."""
    rows = data.load(name, seed=seed)
    split = train_test_split(
        rows.X, rows.y, test_size=TEST_FRACTION, stratify=rows.y, random_state=seed
    )
    X, X_test, y, y_test = split
    shares = partition.stratified(X, y, len(demo.graph), seed=seed)
    coefficients = {}
    errors = {}
    for method, solver in METHODS.items():
        now(f"{name}: {method}")
        # All rows in one place is a network of one agent, which every process has for itself.
        with engine(demo.graph) if solver else SimulatedNetwork(graphs.complete(1)) as network:
            own = [shares[agent] for agent in network.hosted] if solver else [(X, y)]
            model = RVFLClassifier(
                **PROBLEMS[name], solver=solver or Local(), network=network, random_state=seed
            )
            start = time.perf_counter()
            report = model.fit(own).report_
            seconds = time.perf_counter() - start
            b = network.gather(model.coefficients_)
            e = network.gather(1 - model.agent_scores(X_test, y_test))
            sent = network.gather(_on_the_first(report.sent.bytes, len(network.hosted)))
        if b is None or e is None or sent is None:
            continue  # another process has the results
        coefficients[method] = b
        errors[method] = e
        distance = float(
            norms(b - coefficients["centralised"]).max() / norms(coefficients["centralised"])[0]
        )
        rounds = report.sent.rounds
        total = int(sent.sum())
        error = float(e.mean())
        converged = report.converged
        solved_by = report.solver
        demo.results.append(
            Result(name, method, error, distance, rounds, total, seconds, converged, solved_by)
        )
    if len(errors) < len(METHODS):
        demo.results.clear()
        return
    now(f"{name}: averaging, round by round")
    for agent, (own_X, own_y) in enumerate(shares):
        alone, together = (float(errors[method][agent]) for method in ("alone", TOGETHER))
        row_bytes = NUMBER * (own_X.size + own_y.size)
        demo.agents.append(
            AgentErrors(
                name, agent, demo.graph.degree[agent], len(own_y), row_bytes, alone, together
            )
        )
    demo.rounds.extend(_watch_averaging(name, SimulatedNetwork(demo.graph), coefficients["alone"]))


def _on_the_first(number: float, hosted: int) -> Array:
    """Return one number per hosted agent: the process's number for the first, 0 for the others."""
    entries = np.zeros(hosted)
    entries[0] = number
    return entries


def _watch_averaging(name: str, network: Network, x: Array) -> Iterator[Disagreement]:
    """Average x by each method, and yield the disagreement after each round."""
    for method in AVERAGES:
        for n, left in enumerate(islice(disagreements(network, x, method), MOST_ROUNDS + 1)):
            yield Disagreement(name, method, n, left)
            if left <= AGREED:
                break


def _settings(agents: int, seed: int) -> dict[str, Any]:
    """Return what is needed to get the same numbers again."""
    packages = ("peerlearn", "numpy", "scipy", "sklearn", "networkx")
    return {
        "seed": seed,
        "agents": agents,
        "graph": f"erdos_renyi({agents}, {LINK_PROBABILITY}, seed={seed})",
        "test_fraction": TEST_FRACTION,
        "data": PROBLEMS,
        "methods": {
            method: repr(solver) if solver else "all rows in one place"
            for method, solver in METHODS.items()
        },
        "versions": {
            "python": platform.python_version(),
            **{name: import_module(name).__version__ for name in packages},
        },
    }
