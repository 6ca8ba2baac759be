"""Local: every agent solves its own problem and sends nothing.

    b_k = argmin 1/2 |H_k b - Y_k|^2 + g(b)          alone
    g(b) = alpha/2 |b|^2 (ridge) or alpha |b|_1 (lasso)

L-RVFL and L-ESN of the thesis, sections 4.3.2 and 9.4.2: the baseline that shows what cooperation
is worth. Every agent uses the whole alpha, as in the thesis, because an agent alone does not know
how many rows the others have. With its share of it, alpha N_k/N, readouts are far better (the
thesis's N10 with 25 agents: 9 % above the centralised error instead of 117 %). `Consensus` solves
with that share, and averages.

An agent of many knows nothing of the pooled problem: its gradient there would take B x M numbers of
every other agent, and this solver sends none. A single agent has all rows. Its answer is the pooled
one, and has a bound: see certificate.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from peerlearn.algorithms.certificate import solve_in_one_place
from peerlearn.algorithms.iteration import IN_ONE_PLACE, OF_OWN_DATA, Iterations, Report
from peerlearn.algorithms.readout.gram import CONDITION_CHANGE, LASSO_CHANGE, describe_gap
from peerlearn.algorithms.readout.solver import Solution, ridge_or_lasso
from peerlearn.local.lasso import TOLERANCE
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Penalty
from peerlearn.network.base import Network

__all__ = ["Local"]


@dataclass(frozen=True)
class Local:
    """Ridge or lasso readout of each agent from its own rows alone.

    The baseline without cooperation: it sends no message, and every agent has its own model.

    Examples
    --------
    >>> from peerlearn import Local, RVFLClassifier, SimulatedNetwork, data, graphs
    >>> iris = data.load("iris")
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> model = RVFLClassifier(50, solver=Local(), network=network, random_state=0)
    >>> model.fit(iris.X, iris.y).agent_scores(iris.X, iris.y).shape  # one model per agent
    (5,)
    """

    name: ClassVar = "local"
    leaks: ClassVar = "makes no sums at all, so there is nothing to keep secret"
    exact: ClassVar = False

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        """Return each hosted agent's own coefficients."""
        ridge_or_lasso(penalty, "Local")
        if not isinstance(penalty, Lasso) or penalty.alpha == 0:
            if network.size == 1:
                return _solve_all_rows(network, problems, penalty.alpha)
            b = problems.ridge(np.full(problems.agents, penalty.alpha))
            report = Report("Local", True, iterations=1, residuals=(), bound_reason=OF_OWN_DATA)
            return Solution(b, report)
        loop = Iterations(network, "Local", TOLERANCE, max_iterations=1, measure="gradient")
        next(loop)
        own = problems.normal_equations()
        pairs = [equations.lasso(penalty.alpha) for equations in own]
        loop.record(max(missed for _, missed in pairs))
        reason = OF_OWN_DATA
        if network.size == 1:
            reason = describe_gap(own[0].lasso_gap(pairs[0][0], penalty.alpha))
        report = replace(loop.report(LASSO_CHANGE), bound_reason=reason)
        return Solution(np.stack([b for b, _ in pairs]), report)


def _solve_all_rows(network: Network, problems: LeastSquares, alpha: float) -> Solution:
    """Return the pooled answer of the only agent, and its bound."""
    loop = Iterations(network, "Local", IN_ONE_PLACE, max_iterations=1)
    next(loop)
    b, certificate = solve_in_one_place(
        lambda: problems.ridge(np.full(1, alpha))[0],
        problems.normal_equations()[0],
        (lambda: problems.factors()[0]) if problems.has_factors else None,
        alpha,
        IN_ONE_PLACE,
        problems.lengths,
    )
    return Solution(b[None], loop.report(CONDITION_CHANGE, certificate=certificate))
