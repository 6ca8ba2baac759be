"""The check of solvers over columns: what holds for all of them, and what each promises.

of all             alone it gives the ridge solution of its columns; twice the targets give twice
                   the coefficients; agents in threads compute what simulated ones do
prediction = sum   the agents' coefficients together are the ridge solution of all columns
else               every agent has the ridge solution of its own columns
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import networkx as nx
import numpy as np

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms.columns.solver import ColumnSolution, ColumnSolver
from peerlearn.arrays import Array
from peerlearn.errors import NotConverged
from peerlearn.local.column_blocks import ColumnBlocks, FeatureMaps
from peerlearn.network.base import Network
from peerlearn.testing.comparing import check_threads
from peerlearn.testing.problems import GRAPHS, distance, ridge

ALPHA = 20.0
ROWS = 40
OUTPUTS = 2


def check_column_solver(solver: ColumnSolver) -> None:
    """Check that a solver over columns keeps its promises.

    Parameters
    ----------
    solver : ColumnSolver
        An object with `solve_columns`, `name` and `prediction`.

    Raises
    ------
    AssertionError
        With a sentence about what is wrong.

    Examples
    --------
    >>> from peerlearn import DualConjugateGradient
    >>> check_column_solver(DualConjugateGradient())
    """
    name = type(solver).__name__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # the report says it too
        for where, graph in {"one agent": graphs.complete(1), **GRAPHS}.items():
            problem = _Columns(len(graph))
            network = SimulatedNetwork(graph, exact_order=True)
            found = problem.solve(solver, network)
            assert found.report.converged, f"{name} on {where} does not converge on an easy problem"
            sent = network.ledger.since()
            assert found.report.sent == sent, (
                f"{name} on {where} reports {found.report.sent}, not {sent}"
            )
            _check_answer(solver, f"{name} on {where}", problem, found.coefficients)
            _check_linear(solver, f"{name} on {where}", graph, problem, found.coefficients)
        _check_threads(solver, name)


class _Columns:
    """A table whose columns are divided among the agents."""

    def __init__(self, agents: int) -> None:
        rng = np.random.default_rng(0)
        common = rng.standard_normal((ROWS, 3))
        widths = [1 + agent % 3 for agent in range(agents)]
        self.inputs = [common[:, :width] + rng.standard_normal((ROWS, width)) for width in widths]
        self.maps = FeatureMaps(
            tuple(3 + agent % 2 for agent in range(agents)), seed=1, direct_links=True
        )
        self.Y = np.sin(common[:, :OUTPUTS]) + 0.1 * rng.standard_normal((ROWS, OUTPUTS))

    def solve(self, solver: ColumnSolver, network: Network, times: float = 1.0) -> ColumnSolution:
        hosted = network.hosted
        blocks = ColumnBlocks.of_inputs(self.maps, hosted, [self.inputs[k] for k in hosted])
        return solver.solve_columns(network, blocks, times * self.Y, ALPHA)

    def features(self) -> list[Array]:
        """Return the block H_k of every agent."""
        return [self.maps.draw(agent, own.shape[1])(own) for agent, own in enumerate(self.inputs)]


def _check_answer(
    solver: ColumnSolver, what: str, problem: _Columns, found: Sequence[Array]
) -> None:
    blocks = problem.features()
    tolerance = float(getattr(solver, "tolerance", 1e-9))
    if solver.prediction == "sum":
        answer = ridge(np.hstack(blocks), problem.Y, ALPHA)
        away = distance(np.vstack(found)[None], answer)
        assert away <= tolerance, (
            f"{what} is {away:.1e} away from the ridge solution of all columns, not {tolerance:g}"
        )
        return
    for agent, (H, b) in enumerate(zip(blocks, found, strict=True)):
        away = distance(b[None], ridge(H, problem.Y, ALPHA))
        assert away <= tolerance, (
            f"{what}: agent {agent} is {away:.1e} away from the ridge solution of its columns"
        )


def _check_linear(
    solver: ColumnSolver, what: str, graph: nx.Graph, problem: _Columns, found: Sequence[Array]
) -> None:
    doubled = problem.solve(solver, SimulatedNetwork(graph, exact_order=True), 2.0).coefficients
    away = distance(np.vstack(doubled)[None] / 2, np.vstack(found))
    allowed = max(2 * float(getattr(solver, "tolerance", 0.0)), 1e-9)
    assert away <= allowed, (
        f"{what}: twice the targets do not give twice the coefficients ({away:.1e} off)"
    )


def _check_threads(solver: ColumnSolver, name: str) -> None:
    where, graph = next(iter(GRAPHS.items()))
    problem = _Columns(len(graph))

    def solve(network: Network) -> dict[str, list[Array]]:
        return {"coefficients": list(problem.solve(solver, network).coefficients)}

    check_threads(f"{name} on {where}", graph, solve)
