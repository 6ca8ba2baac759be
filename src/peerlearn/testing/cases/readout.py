"""Cases of linear readouts: every solver, every learner of streams, every solver over columns."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache, partial
from itertools import product
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from peerlearn import graphs
from peerlearn.algorithms.averaging import METHODS
from peerlearn.algorithms.columns import column_solvers
from peerlearn.algorithms.readout.auto import solvers
from peerlearn.algorithms.streaming.learner import learners
from peerlearn.arrays import Array
from peerlearn.errors import NotConverged, PeerlearnError
from peerlearn.local.chunks import Chunk
from peerlearn.local.column_blocks import ColumnBlocks, FeatureMaps
from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Penalty, Ridge
from peerlearn.network.base import Network
from peerlearn.testing.cases.case import Arrays, Case
from peerlearn.testing.threads import run_in_threads

ROWS = (1, 40, 3, 25, 7, 13, 18)  # of each agent, for 12 features: some have fewer, some more
FEATURES = RandomFeatures.draw(3, 12, seed=0)
CHUNKS = (0, 3, 1, 20, 2)  # rows of a chunk: with 12 features, both forms of the recursion
SHARED = np.random.default_rng(5).standard_normal((30, 5))  # correlated with all agents' columns
REFUSALS = ("solves ridge problems only", "which only a simulation can")
ITERATIONS = 12  # far from converged: differences do not vanish in an answer that all would reach
STREAM_ALPHA = 20.0
COLUMN_ALPHA = 100.0
# With smaller penalties, conjugate gradients turn differences of 1e-16 into 1e-9.
PENALTIES: tuple[Penalty, ...] = (Ridge(20.0), Lasso(0.05))


def cases() -> dict[str, Case]:
    """Return the cases of every algorithm of a linear readout, with all settings, by name."""
    found: dict[str, Case] = {}
    for (name, solver), penalty in product(all_settings(solvers().values()), PENALTIES):
        if runs_apart(solver, penalty):
            case = partial(solve, solver=solver, penalty=penalty)
            found[f"{name} {type(penalty).__name__}"] = case
    for name, learner in all_settings(learners().values()):
        found[name] = partial(_learn, learner=learner)
    for name, solver in all_settings(column_solvers().values()):
        found[f"columns {name}"] = partial(_solve_columns, solver=solver)
    return found


def all_settings(kinds: Iterable[type[Any]]) -> Iterator[tuple[str, Any]]:
    """Yield each kind with every way to average and every choice that its settings name."""
    for kind in kinds:
        choices = _choices(kind)
        few = _few_iterations(kind)
        for chosen in product(*choices.values()):
            settings = dict(zip(choices, chosen, strict=True))
            yield f"{kind.__name__}({', '.join(map(str, chosen))})", kind(**few, **settings)


def _choices(kind: type[Any]) -> dict[str, tuple[Any, ...]]:
    hints = get_type_hints(kind)
    names = _setting_names(kind)
    found: dict[str, tuple[Any, ...]] = {
        name: get_args(hints[name]) for name in names if get_origin(hints[name]) is Literal
    }
    if "averaging" in names:
        found["averaging"] = METHODS
    if "threshold" in names:
        found["threshold"] = (None, 0.3)
    return found


def _few_iterations(kind: type[Any]) -> dict[str, Any]:
    names = _setting_names(kind)
    if "max_iterations" in names:
        return {"max_iterations": ITERATIONS}
    return {"tolerance": 0.1} if "tolerance" in names else {}


def _setting_names(kind: type[Any]) -> list[str]:
    return [field.name for field in fields(kind)] if is_dataclass(kind) else []


@cache
def runs_apart(solver: Any, penalty: Penalty) -> bool:
    """Return whether a solver takes the penalty and needs no oracle that sees all agents."""
    try:
        with warnings.catch_warnings(action="ignore", category=NotConverged):
            run_in_threads(graphs.complete(2), partial(solve, solver=solver, penalty=penalty))
    except PeerlearnError as error:
        if not any(sentence in str(error) for sentence in REFUSALS):
            raise
        return False
    return True


def readout(hosted: Iterable[int]) -> LeastSquares:
    """Return the problems of these agents."""
    X = [_inputs(agent) for agent in hosted]
    return LeastSquares.of_inputs(FEATURES, X, [_targets(agent) for agent in hosted])


def _inputs(agent: int) -> Array:
    return np.random.default_rng(agent).standard_normal((ROWS[agent], 3)) + 0.1 * agent


def _targets(agent: int) -> Array:
    targets: Array = np.sin(_inputs(agent)[:, :2]) + 0.1 * agent
    return targets


def solve(network: Network, solver: Any, penalty: Penalty) -> Arrays:
    """Return what a solver of the linear readout finds."""
    hosted = network.hosted
    solution = solver.solve(network, readout(hosted), penalty)
    return {
        "coefficients": solution.coefficients,
        "iterations": np.full(len(hosted), solution.report.iterations),
        "converged": np.full(len(hosted), solution.report.converged),
    }


def _learn(network: Network, learner: Any) -> Arrays:
    """Return the coefficients after each chunk; chunks have unequal sizes, and some are empty."""
    state = learner.start(network, (FEATURES.width, 2), STREAM_ALPHA)
    found: Arrays = {}
    for n in range(len(CHUNKS)):
        rows = [_chunk(agent, n) for agent in network.hosted]
        chunks = Chunk.of_inputs(FEATURES, rows, [np.sin(X[:, :2]) + 0.1 * n for X in rows])
        state = learner.learn(network, state, chunks, STREAM_ALPHA)
        found[f"after {n}"] = state["b"]
    return found


def _chunk(agent: int, n: int) -> Array:
    rows = CHUNKS[(agent + n) % len(CHUNKS)]
    return np.random.default_rng((agent, n)).standard_normal((rows, 3))


def _solve_columns(network: Network, solver: Any) -> Arrays:
    """Return the coefficients of agents with one to three columns each, padded with zeros."""
    maps = FeatureMaps(tuple(5 + agent for agent in range(network.size)), seed=1)
    columns = [_columns(agent) for agent in network.hosted]
    blocks = ColumnBlocks.of_inputs(maps, network.hosted, columns)
    solution = solver.solve_columns(network, blocks, np.sin(SHARED[:, :2]), COLUMN_ALPHA)
    widest = 5 + network.size
    padded = [np.pad(b, ((0, widest - len(b)), (0, 0))) for b in solution.coefficients]
    return {"coefficients": np.stack(padded)}


def _columns(agent: int) -> Array:
    width = 1 + agent % 3
    noise = np.random.default_rng(agent).standard_normal((len(SHARED), width))
    columns: Array = SHARED[:, :width] + noise
    return columns
