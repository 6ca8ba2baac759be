"""Gram: add up the normal equations, then everybody solves them (thesis, section 4.2, before 4.2.1). Exact.

    G = sum_k H_k'H_k,   P = sum_k H_k'Y_k          over the network
    b = (G + alpha I)^-1 P                          alone, for ridge
    b = argmin 1/2 b'G b - P'b + alpha |b|_1        at one agent, for lasso; all follow it and have the same zeros

G is symmetric: only its triangle is sent, in float64 (in float32 the readout's error can grow
twentyfold).
Best where columns are few or outputs many, since what is sent grows with B^2/2 but not with
iterations.

On a tree agents with few rows send less than a triangle: the R factor of [H_k Y_k] has no more rows
than they have
data, and stacks of R factors are factorised again on the way up (communication-avoiding QR: Demmel
et al., 2012). The root solves, and only b travels down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.flooding import broadcast_from_center, maximum
from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.readout.solver import Solution, ridge_or_lasso
from peerlearn.algorithms.report import check_tolerance
from peerlearn.algorithms.sums import broadcast_from_root, merge_to_root
from peerlearn.arrays import Array
from peerlearn.errors import DataError, WireError
from peerlearn.local.lasso import TOLERANCE
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.normal_equations import NormalEquations
from peerlearn.local.penalties import Lasso, Penalty
from peerlearn.local.ridge import undetermined
from peerlearn.network.base import Message, Network

__all__ = ["Gram"]

NO_ANSWER = -1.0
LASSO_CHANGE = "scale the inputs, raise alpha, or use fewer units"


@dataclass(frozen=True)
class Gram:
    """tolerance: relative distance to the centralised coefficients, where averages are inexact; a tree is exact
    up to rounding, which max eig(H'H) / alpha times 1e-16 bounds.

    Lasso may be as flat as it likes: for it averages are as exact as numbers are, whatever the
    tolerance.
    """

    name: ClassVar = "gram"
    exact: ClassVar = True

    tolerance: float = 1e-6
    averaging: Averaging | Method = "auto"

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance, "Gram")
        Averaging.of(self.averaging)

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        ridge_or_lasso(penalty, "Gram")
        loop = Iterations(network, "Gram", self.tolerance, max_iterations=1)
        next(loop)
        averaging, missed = Averaging.of(self.averaging), 0.0
        if averaging.exact_on(network):
            sums = merge_equations(network, problems.normal_equations())
            b, missed = _solve_at_root(network, sums, penalty, broadcast_from_root)
        else:
            needed = self._sum_tolerance(network, problems, penalty.convexity)
            if not isinstance(self.averaging, Averaging):
                averaging = Averaging(averaging.method, needed)
            sums = _sum_equations(network, problems, averaging)
            if isinstance(penalty, Lasso):
                b, missed = _solve_at_root(network, sums, penalty, broadcast_from_center)
            else:
                b = np.stack([equations.ridge(penalty.alpha) for equations in sums])
            if averaging.tolerance > needed or not averaging.suffices_on(network):
                change = f"give the averaging a tolerance of {needed:.1e} and the rounds for it, or leave both to Gram"
                loop.fall_short(self.tolerance * averaging.tolerance / needed, change)
        if not missed <= TOLERANCE:
            loop.fall_short(missed, LASSO_CHANGE, tolerance=TOLERANCE, measure="gradient")
        from_root = averaging.exact_on(network) or isinstance(penalty, Lasso)
        return Solution(b, loop.report(), apart=0.0 if from_root else None)

    def _sum_tolerance(self, network: Network, problems: LeastSquares, convexity: float) -> float:
        """A relative error of G is amplified by at most the condition number (alpha + max eig) / alpha, for ridge.

        What the averaging promises is relative to the spread of the agents' G, which may be a few
        times G itself.
        """
        largest = (
            network.size * float(maximum(network, problems.largest_eigenvalues())[0]) or 1.0
        )  # 0: nothing to sum
        return max(
            0.1 * self.tolerance * max(convexity, 1e-9 * largest) / (convexity + largest), 1e-15
        )


def _sum_equations(
    network: Network, problems: LeastSquares, averaging: Averaging
) -> list[NormalEquations]:
    moments = problems.moment.reshape(problems.agents, -1)
    sums = averaging.total(network, np.hstack([problems.triangles(), moments]))
    return [NormalEquations.of_numbers(row, problems.shape) for row in sums]


def _solve_at_root(
    network: Network,
    sums: Sequence[NormalEquations],
    penalty: Penalty,
    tell: Callable[[Network, Array], Array],
) -> tuple[Array, float]:
    """The agent in the middle solves, and all are told its b, and how far that misses the conditions of a minimum."""
    B, M = sums[0].shape
    answers = np.zeros((len(sums), B * M + 1))
    for k, agent in enumerate(network.hosted):
        if agent == network.tree.root:
            answers[k] = _answer(sums[k], penalty)
    told = tell(network, answers)
    if told[0, -1] == NO_ANSWER:  # what the root found, all agents say
        raise undetermined(penalty.alpha)
    return told[:, :-1].reshape(-1, B, M), float(told[0, -1])


def _answer(equations: NormalEquations, penalty: Penalty) -> Array:
    """b, and what it misses; or NO_ANSWER in its place, to tell the others that there is no b."""
    try:
        b, missed = (
            equations.lasso(penalty.alpha)
            if isinstance(penalty, Lasso)
            else (equations.ridge(penalty.alpha), 0.0)
        )
    except DataError:
        b, missed = np.zeros(equations.shape), NO_ANSWER
    return np.array([*b.ravel(), missed])


def merge_equations(
    network: Network, equations: Sequence[NormalEquations]
) -> list[NormalEquations]:
    """Return the hosted agents' equations with those of all below them in the tree: the root has those of all."""
    shape = equations[0].shape
    return merge_to_root(
        network, equations, lambda message, sender: _equations(message, shape, sender)
    )


def _equations(message: Message, shape: tuple[int, int], sender: int) -> NormalEquations:
    equations = NormalEquations.unpacked(message, shape)
    if equations is None:
        raise WireError(
            f"agent {sender} sent no equations of {shape[0]} features where some were due: it runs something else"
        )
    return equations


def ridge_if_any(equations: NormalEquations, alpha: float) -> tuple[Array | float, float]:
    """The answer and 1, or 0 and 0 to tell the others that there is none."""
    try:
        return equations.ridge(alpha), 1.0
    except DataError:
        return 0.0, 0.0
