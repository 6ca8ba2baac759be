"""Ridge readouts whose penalty is chosen by generalised cross-validation.

    N, sum |Y|^2                                    over the network
    G = sum_k H_k'H_k,   P = sum_k H_k'Y_k          over the network, at one agent
    alpha = argmin V                                at that agent; all others take its alpha
    b by any solver, for this alpha                 over the network

The sum of G is one that `Gram` makes too: alpha costs as much as `Gram` sends upwards, whatever the
solver, and a broadcast of one number. `Local` sends nothing, and every agent has an alpha of its
own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.readout.auto import Auto
from peerlearn.algorithms.readout.gram import Gram, merge_equations
from peerlearn.algorithms.readout.local import Local
from peerlearn.algorithms.readout.means import TOLERANCE, common_sums
from peerlearn.algorithms.readout.solver import Solution, Solver
from peerlearn.algorithms.sums import broadcast_from_center, broadcast_from_root
from peerlearn.arrays import Array
from peerlearn.local.gcv import best_alpha
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.normal_equations import NormalEquations
from peerlearn.local.penalties import Ridge
from peerlearn.network.base import Network

INEXACT = 1e-9  # least alpha by gossip, relative to the largest eigenvalue of G
EPS = float(np.finfo(np.float64).eps)


def solve_with_chosen_alpha(
    network: Network, problems: LeastSquares, solver: Solver, squares: Array, *, free: int
) -> tuple[Solution, Array]:
    """Return the solution, and the alpha of each hosted agent.

    squares: |Y_k|^2 of each hosted agent. free: coefficients without a penalty.
    """
    counts = np.column_stack([problems.rows, squares]).astype(np.float64)
    totals = common_sums(network, solver, counts)
    if isinstance(solver, Local):
        equations = problems.normal_equations()
        alphas = np.array([_choose(*pair, free) for pair in zip(equations, totals, strict=True)])
        solution = solver.solve(network, problems, Ridge(float(alphas[0])))
        if network.size > 1:
            solution = replace(solution, coefficients=problems.ridge(alphas))
    else:
        alphas = _choose_together(network, problems, solver, totals, free)
        if isinstance(solver, Auto):  # G is summed anyway, and alpha may be tiny
            solver = Gram(solver.tolerance, solver.averaging)
        solution = solver.solve(network, problems, Ridge(float(alphas[0])))
    note = f"alpha {alphas[0]:.3g} by generalised cross-validation"
    if solution.report.note:
        note = f"{solution.report.note}; {note}"
    return replace(solution, report=replace(solution.report, note=note)), alphas


def _choose_together(
    network: Network, problems: LeastSquares, solver: Any, totals: Array, free: int
) -> Array:
    chosen = Averaging.of(getattr(solver, "averaging", "auto"))
    on_tree = chosen.exact_on(network)
    if on_tree:
        sums = merge_equations(network, problems.normal_equations())
    else:
        own = np.hstack([problems.triangles(), problems.moment.reshape(problems.agents, -1)])
        averaging = Averaging(chosen.method_on(network), TOLERANCE)
        rows = averaging.total(network, own)
        sums = [NormalEquations.of_numbers(row, problems.shape) for row in rows]
    alphas = np.zeros((problems.agents, 1))
    for k, agent in enumerate(network.hosted):
        if agent == network.tree.root:
            alphas[k] = _choose(sums[k], totals[k], free, 0.0 if on_tree else INEXACT)
    broadcast = broadcast_from_root if on_tree else broadcast_from_center
    received: Array = broadcast(network, alphas)
    return received[:, 0]


def _choose(equations: NormalEquations, counts: Array, free: int, rounding: float = 0.0) -> float:
    G, P = equations.gram()
    rows, squares = counts
    least = max(rounding, EPS * len(G))
    return best_alpha(G, P, float(squares), float(rows), free=free, rounding=least)
