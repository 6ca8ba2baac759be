"""Local: every agent solves its own ridge problem and talks to nobody (L-RVFL, thesis, section 4.3.2).

    b_k = argmin 1/2 |H_k b - Y_k|^2 + alpha/2 |b|^2          alone

The baseline that shows what cooperation is worth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from peerlearn.algorithms.solution import Report, Solution, only_ridge
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Penalty
from peerlearn.network.base import Network


@dataclass(frozen=True)
class Local:
    name: ClassVar = "local"
    exact: ClassVar = False

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        alpha = only_ridge(penalty, "Local")
        b = problems.ridge(np.full(problems.agents, alpha))
        return Solution(b, Report("Local", converged=True, iterations=1, residuals=()))
