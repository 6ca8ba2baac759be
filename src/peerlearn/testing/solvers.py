"""The check of solvers of the linear readout: what holds for all of them, and what each promises.

of all             alone it gives the ridge solution of its rows; twice the targets give twice the
                   coefficients; agents in threads compute what simulated ones do; the report has
                   what was sent
exact = True       every agent has the ridge solution of all rows to the tolerance, on several
                   graphs
exact = False,     sends nothing: every agent has the ridge solution of its own rows
                   sends something: the rows of every agent count at every agent
"""

from __future__ import annotations

import warnings
from typing import Any

import networkx as nx
import numpy as np

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms.readout.solver import Solution, Solver
from peerlearn.arrays import Array
from peerlearn.errors import NotConverged
from peerlearn.local.penalties import Ridge
from peerlearn.network.base import Counts, Network
from peerlearn.testing.comparing import check_threads
from peerlearn.testing.problems import ALPHA, GRAPHS, Readout, distance

INEXACT = 1e-2  # how far a solver without a tolerance, or with a constant step, may be off alone
ALIGNED = 0.5  # cosine between the effect of an agent's rows and their effect in one place
ROUNDING = 1e-10  # relative error of the answer that a bound is compared with


def check_solver(solver: Solver) -> None:
    """Check that a solver of the linear readout keeps its promises.

    Parameters
    ----------
    solver : Solver
        An object with `solve`, `name` and `exact`.

    Raises
    ------
    AssertionError
        With a sentence about what is wrong.

    Examples
    --------
    >>> from peerlearn import Gram
    >>> check_solver(Gram())
    """
    name = type(solver).__name__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # the report says it too
        _check_alone(solver, name)
        for where, graph in GRAPHS.items():
            problem = Readout.draw(len(graph))
            solution, sent = _solve(solver, graph, problem)
            _check_report(name, where, solution, sent)
            if solver.exact:
                _check_exact(solver, name, where, problem, solution)
            elif sent.messages == 0:
                _check_own(name, where, problem, solution.coefficients)
            else:
                _check_everybody_counts(solver, name, where, graph, problem, solution.coefficients)
            _check_linear(solver, name, where, graph, problem, solution.coefficients)
        _check_threads(solver, name)


def _solve(solver: Solver, graph: nx.Graph, problem: Readout) -> tuple[Solution, Counts]:
    network = SimulatedNetwork(graph, exact_order=True)
    solution = solver.solve(network, problem.of(network.hosted), Ridge(ALPHA))
    return solution, network.ledger.since()


def _tolerance(solver: Any) -> float:
    """Return how exact the solver's answers are to be where it is exact."""
    return float(getattr(solver, "tolerance", 1e-6))


def _check_alone(solver: Solver, name: str) -> None:
    problem = Readout.draw(1)
    solution, sent = _solve(solver, graphs.complete(1), problem)
    away = distance(solution.coefficients, problem.pooled(ALPHA))
    allowed = _tolerance(solver) if solver.exact else INEXACT
    assert away <= allowed, f"{name} alone is {away:.1e} away from the ridge solution of its rows"
    assert sent.messages == 0, f"{name} alone sends {sent.messages} messages"


def _check_report(name: str, where: str, solution: Solution, sent: Counts) -> None:
    report = solution.report
    assert report.sent == sent, (
        f"{name} on {where} reports {report.sent}, but the ledger has {sent}"
    )
    assert report.converged, f"{name} on {where} does not converge on an easy problem"
    assert np.isfinite(solution.coefficients).all(), (
        f"{name} on {where} gives numbers that are not finite"
    )


def _check_exact(
    solver: Solver, name: str, where: str, problem: Readout, solution: Solution
) -> None:
    away = distance(solution.coefficients, problem.pooled(ALPHA))
    allowed = _tolerance(solver)
    assert away <= allowed, (
        f"{name} on {where} is {away:.1e} away from the ridge solution of all rows, not {allowed:g}"
    )
    bound = solution.report.bound
    assert away <= bound + ROUNDING, (
        f"{name} on {where} is {away:.1e} away from the ridge solution, but its bound is {bound:g}"
    )
    if solution.apart == 0:
        same = (solution.coefficients == solution.coefficients[0]).all()
        assert same, f"{name} on {where} says that agents have the same bits, and they have not"


def _check_own(name: str, where: str, problem: Readout, found: Array) -> None:
    for agent, own in enumerate(found):
        away = distance(own[None], problem.own(agent, ALPHA))
        assert away <= INEXACT, (
            f"{name} on {where} sends nothing, and agent {agent} is {away:.1e} away from the ridge "
            "solution of its rows"
        )


def _check_everybody_counts(
    solver: Solver, name: str, where: str, graph: nx.Graph, problem: Readout, found: Array
) -> None:
    """Change the targets of each agent in turn: the effect must resemble that in one place."""
    size = np.sqrt(np.mean([np.mean(Y**2) for Y in problem.Y]))
    for changed in range(problem.agents):
        noise = np.random.default_rng(changed).standard_normal(problem.Y[changed].shape)
        Y = list(problem.Y)
        Y[changed] = Y[changed] + size * noise
        other = problem.with_targets(Y)
        expected = other.pooled(ALPHA) - problem.pooled(ALPHA)
        effects = _solve(solver, graph, other)[0].coefficients - found
        for agent, effect in enumerate(effects):
            lengths = np.linalg.norm(effect) * np.linalg.norm(expected)
            cosine = float(np.sum(effect * expected) / max(lengths, 1e-300))
            assert cosine >= ALIGNED, (
                f"{name} on {where}: the rows of agent {changed} do not count at agent {agent} as "
                f"they should (cosine {cosine:.2f} with their effect in one place)"
            )


def _check_linear(
    solver: Solver, name: str, where: str, graph: nx.Graph, problem: Readout, found: Array
) -> None:
    twice = problem.with_targets([2 * Y for Y in problem.Y])
    solution, _ = _solve(solver, graph, twice)
    halves = solution.coefficients / 2
    away = max(distance(own[None], before) for own, before in zip(halves, found, strict=True))
    allowed = max(2 * _tolerance(solver), 1e-9)
    assert away <= allowed, (
        f"{name} on {where}: twice the targets do not give twice the coefficients ({away:.1e} off)"
    )


def _check_threads(solver: Solver, name: str) -> None:
    where, graph = next(iter(GRAPHS.items()))
    problem = Readout.draw(len(graph))

    def solve(network: Network) -> dict[str, Array]:
        solution = solver.solve(network, problem.of(network.hosted), Ridge(ALPHA))
        return {"coefficients": solution.coefficients}

    check_threads(f"{name} on {where}", graph, solve)
