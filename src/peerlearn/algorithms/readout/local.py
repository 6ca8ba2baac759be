"""Local: every agent solves its own problem and talks to nobody (L-RVFL and L-ESN, thesis, sections 4.3.2 and 9.4.2).

    b_k = argmin 1/2 |H_k b - Y_k|^2 + g(b)          alone; g: alpha/2 |b|^2 (ridge) or alpha |b|_1 (lasso)

The baseline that shows what cooperation is worth. Every agent has the whole alpha, as in the
thesis: alone, nobody knows how many rows the others have. With alpha N_k/N, an agent's share of it,
readouts are far better (the thesis's N10 with 25 agents: 9 % above the centralised error in place
of 117 %); `Consensus` solves with that share, and averages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.readout.gram import LASSO_CHANGE
from peerlearn.algorithms.readout.solver import Solution, ridge_or_lasso
from peerlearn.algorithms.report import Report
from peerlearn.local.lasso import TOLERANCE
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Penalty
from peerlearn.network.base import Network

__all__ = ["Local"]


@dataclass(frozen=True)
class Local:
    name: ClassVar = "local"
    exact: ClassVar = False

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        ridge_or_lasso(penalty, "Local")
        if not isinstance(penalty, Lasso) or penalty.alpha == 0:
            b = problems.ridge(np.full(problems.agents, penalty.alpha))
            return Solution(b, Report("Local", converged=True, iterations=1, residuals=()))
        loop = Iterations(network, "Local", TOLERANCE, max_iterations=1, measure="gradient")
        next(loop)
        pairs = [equations.lasso(penalty.alpha) for equations in problems.normal_equations()]
        loop.record(max(missed for _, missed in pairs))
        return Solution(np.stack([b for b, _ in pairs]), loop.report(LASSO_CHANGE))
