"""The primal residual of ADMM, iteration by iteration, watched from outside.

    r[n] = mean_k |b_k[n] - z_k[n]|            Boyd et al., 2011, section 3.3; thesis, section 9.6.2

ADMM stops by another number, which bounds the distance to the answer, and keeps no record of this
one. What the agents' own steps are given, p[n] = z[n-1] - u[n-1], and what they give, b[n], tell
z[n] where b is not over-relaxed:

    p[n+1] = z[n] - u[n],   u[n] = u[n-1] + b[n] - z[n]
    =>   z[n] = (z[n-1] + b[n] + p[n+1] - p[n]) / 2
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from peerlearn.algorithms.readout.admm import ADMM
from peerlearn.algorithms.readout.solver import Solution
from peerlearn.arrays import Array, norms
from peerlearn.lab.description.trial import Curve
from peerlearn.local.least_squares import LeastSquares, PerAgent
from peerlearn.local.penalties import Penalty
from peerlearn.network.base import Network


@dataclass
class WatchedADMM:
    """ADMM that computes and sends the same, with a record of all agents' residuals.

    Only a simulation has the residuals of all agents.
    """

    watched: ADMM
    residuals: list[float] = field(default_factory=list, compare=False, repr=False)

    @property
    def vote_every(self) -> int:
        return self.watched.vote_every

    @property
    def curve(self) -> Curve:
        """The residuals against iterations."""
        return np.arange(1.0, len(self.residuals) + 1).tolist(), self.residuals

    def must_take(self, penalty: Penalty) -> None:
        self.watched.must_take(penalty)

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        steps = _Steps(problems)
        solution = self.watched.solve(network, steps, penalty)
        steps.note(solution.coefficients)
        self.residuals = steps.residuals
        return solution


def watch_solver(solver: object) -> WatchedADMM | None:
    """Return a watched solver, or None if its primal residual cannot be computed."""
    if isinstance(solver, ADMM) and (solver.relaxation == 1.0 or solver.variant == "thesis"):
        return WatchedADMM(solver)
    return None


class _Steps(LeastSquares):
    """The agents' problems, with a record of each step."""

    def __init__(self, problems: LeastSquares) -> None:
        super().__init__(
            problems.groups,
            problems.rows,
            problems.shape,
            problems.squares,
            lengths=problems.lengths,
        )
        self.residuals: list[float] = []
        self._p = self._b = self._z = np.zeros((problems.agents, *problems.shape))
        self._begun = False

    def note(self, z: Array) -> None:
        self._z = z
        self.residuals.append(float(np.mean(norms(self._b - z))))

    def proximal(self, rho: float) -> PerAgent:
        nearest = super().proximal(rho)

        def solve_and_note(p: Array) -> Array:
            if self._begun:
                self.note((self._z + self._b + p - self._p) / 2)
            self._begun = True
            self._p = p
            self._b = nearest(p)
            return self._b

        return solve_and_note
