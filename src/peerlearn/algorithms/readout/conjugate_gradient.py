"""Preconditioned conjugate gradients on the normal equations of the whole network. Exact.

    A b = c,   A = sum_k H_k'H_k + alpha I,   c = sum_k H_k'Y_k        M columns, each on its own

    q = A d                                          over the network: one B x M sum per iteration

Every agent computes the rest of an iteration on its own copies: see krylov.py. preconditioners.py
has the ways to need fewer iterations. The answer is at most |r| / alpha away from b, r = c - A b.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.krylov import MARGIN, MOST_EXACT, ROUGH, Krylov, relative, sum_with_extra
from peerlearn.algorithms.readout.preconditioners import PRECONDITIONERS, Preconditioner
from peerlearn.algorithms.readout.solver import Solution, above_zero, only_ridge
from peerlearn.algorithms.report import check_tolerance
from peerlearn.algorithms.sums import sum_alike
from peerlearn.arrays import Array, norms
from peerlearn.errors import InputError
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Penalty
from peerlearn.network.base import Network

__all__ = ["ConjugateGradient"]


@dataclass(frozen=True)
class ConjugateGradient:
    """Ridge readout solved exactly by conjugate gradients.

    Only vectors of B x M numbers travel, one sum per iteration. Best for many columns and few
    outputs.

    Parameters
    ----------
    tolerance : float, default 1e-6
        Relative distance to the centralised coefficients.
    max_iterations : int, default 1000
        Limit of iterations; a solution that needs more warns.
    preconditioner : {"auto", "synthetic", "local", "none"}, default "auto"
        "synthetic" costs one average of the inputs' mean and covariance, and needs a feature map
        that all agents know. "local" costs one more average per iteration and suits any features.
        "none" is plain conjugate gradients. "auto" is "synthetic" where the feature map is known,
        else "local".
    averaging : Averaging or str, default "auto"
        How agents add up: an `Averaging`, or the name of its method.

    Examples
    --------
    >>> from peerlearn import ConjugateGradient, RVFLClassifier, SimulatedNetwork, data, graphs
    >>> iris = data.load("iris")
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> fixed = {"alpha": 1.0, "activation": "sigmoid", "network": network, "random_state": 0}
    >>> model = RVFLClassifier(50, solver=ConjugateGradient(), **fixed)
    >>> model.fit(iris.X, iris.y).report_.note
    'preconditioner synthetic, sums by tree'
    """

    name: ClassVar = "cg"
    exact: ClassVar = True

    tolerance: float = 1e-6
    max_iterations: int = 1000
    preconditioner: Literal["auto", "synthetic", "local", "none"] = "auto"
    averaging: Averaging | Method = "auto"

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance, "ConjugateGradient")
        Averaging.of(self.averaging)
        if self.max_iterations < 1:
            raise InputError(f"max_iterations must be 1 or more, not {self.max_iterations}")
        if self.preconditioner not in ("auto", *PRECONDITIONERS):
            raise InputError(
                f"preconditioner {self.preconditioner!r} is not known: "
                f"choose one of auto, {', '.join(PRECONDITIONERS)}"
            )

    def must_take(self, penalty: Penalty) -> None:
        """Refuse a penalty that is not ridge, or that has an alpha of 0."""
        only_ridge(penalty, "ConjugateGradient")
        above_zero(penalty, "ConjugateGradient")

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        """Return the centralised coefficients, to the tolerance, at every hosted agent."""
        krylov, b, note = self._solve(network, problems, penalty)
        change = (
            "raise max_iterations, alpha or the averaging's max_rounds, "
            "or choose preconditioner='local'"
        )
        # All agents iterate on copies of the same b, whether it has converged or not.
        return Solution(b, krylov.report(note, change), self.tolerance)

    def attempt(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        """Solve for a caller that can try another solver.

        Warn only if sums were not exact enough, which another solver cannot mend.
        """
        krylov, b, note = self._solve(network, problems, penalty)
        report = krylov.report(
            note, "give the averaging more max_rounds", warn=krylov.loop.converged
        )
        return Solution(b, report, self.tolerance)

    def _solve(
        self, network: Network, problems: LeastSquares, penalty: Penalty
    ) -> tuple[Krylov, Array, str]:
        self.must_take(penalty)
        alpha = penalty.alpha
        loop = Iterations(
            network, "ConjugateGradient", self.tolerance, self.max_iterations, recovers=True
        )
        averaging = Averaging.of(self.averaging, max(self.tolerance / MARGIN, MOST_EXACT))
        rough = replace(averaging, tolerance=max(averaging.tolerance, ROUGH))
        name = self.preconditioner
        if name == "auto":
            name = "synthetic" if problems.features else "local"
        kind = PRECONDITIONERS[name]
        c, extra_sums = _right_side(
            network, problems, kind.extra_numbers(network, problems, alpha), averaging
        )
        precondition = kind.prepare(
            problems, alpha, lambda x: sum_alike(network, x, rough), extra_sums
        )
        system = _NormalEquations(network, problems, alpha, kind, c)
        krylov = Krylov(system, precondition, averaging, loop)
        return krylov, krylov.solve(kind.first(problems, extra_sums)), f"preconditioner {name}, "


def _right_side(
    network: Network, problems: LeastSquares, extra: Array, averaging: Averaging
) -> tuple[Array, Array]:
    """Return c, and the sums of the extra numbers that travel in the same messages."""
    own = problems.moment.reshape(problems.agents, -1)
    sums = sum_alike(network, np.hstack([own, extra]), averaging)
    c, extra_sums = np.split(sums, [own.shape[1]], axis=1)
    return c.reshape(problems.moment.shape), extra_sums


@dataclass(frozen=True)
class _NormalEquations:
    """The system of krylov.py on the copies of all hosted agents: arrays are agents x B x M."""

    network: Network
    problems: LeastSquares
    alpha: float
    preconditioner: Preconditioner
    c: Array

    def right_side(self, averaging: Averaging) -> Array:
        return self.c

    def product(self, d: Array, extra: Array, averaging: Averaging) -> tuple[Array, float]:
        q, e = sum_with_extra(self.network, self.problems.normal(d), extra, averaging)
        return q + self.alpha * d, e

    def residual(self, b: Array, averaging: Averaging) -> Array:
        own = self.problems.moment - self.problems.normal(b)
        return sum_alike(self.network, own, averaging) - self.alpha * b

    def distance(self, b: Array, r: Array, z: Array) -> Array:
        return relative(self.preconditioner.distance(r, z, self.alpha), norms(b))

    def uncertainty(self, averaging: Averaging) -> float:
        return 0.0
