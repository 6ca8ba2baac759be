"""Gram: add up the normal equations over the network, then solve them. Exact.

    G = sum_k H_k'H_k,   P = sum_k H_k'Y_k          over the network
    b = (G + alpha I)^-1 P                          alone, for ridge
    b = argmin 1/2 b'G b - P'b + alpha |b|_1        at one agent, for lasso; all others take its b

Thesis, section 4.2, before 4.2.1. G is symmetric: only its triangle is sent, in float64 (float32
can make the readout's error twenty times larger). Best for few columns or many outputs: what is
sent grows with B^2/2, but not with iterations. For lasso one agent solves, so that all agents
have the same zeros.

On a tree agents with few rows send less than a triangle. The R factor of [H_k Y_k] has no more
rows than the agent has data, and stacks of R factors are factorised again on the way up
(communication-avoiding QR: Demmel et al., 2012). The root solves, and only b travels down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.readout.solver import Solution, ridge_or_lasso
from peerlearn.algorithms.report import check_tolerance
from peerlearn.algorithms.sums import (
    broadcast_from_center,
    broadcast_from_root,
    maximum,
    merge_to_root,
)
from peerlearn.algorithms.unexpected import unexpected_message
from peerlearn.arrays import Array
from peerlearn.errors import DataError
from peerlearn.local.lasso import TOLERANCE
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.normal_equations import NormalEquations
from peerlearn.local.penalties import Lasso, Penalty
from peerlearn.local.ridge import undetermined_error
from peerlearn.network.base import Message, Network

__all__ = ["Gram"]

NO_ANSWER = -1.0
LASSO_CHANGE = "scale the inputs, raise alpha, or use fewer units"


@dataclass(frozen=True)
class Gram:
    """Ridge or lasso readout solved exactly from summed Gram matrices.

    Agents add up H'H and H'Y, never rows. Best for few columns or many outputs.

    Parameters
    ----------
    tolerance : float, default 1e-6
        Relative distance to the centralised coefficients where averages are inexact. It does not
        apply to sums over a tree, which are exact up to rounding: about 1e-16 max eig(H'H) / alpha.
        Nor does it apply to lasso, whose sums are always as exact as float64 allows.
    averaging : Averaging or str, default "auto"
        How agents add up: an `Averaging`, or the name of its method.

    Examples
    --------
    >>> from peerlearn import Gram, RVFLClassifier, SimulatedNetwork, data, graphs
    >>> iris = data.load("iris")
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> model = RVFLClassifier(50, solver=Gram(), network=network, random_state=0)
    >>> model.fit(iris.X, iris.y).report_.converged
    True
    """

    name: ClassVar = "gram"
    exact: ClassVar = True

    tolerance: float = 1e-6
    averaging: Averaging | Method = "auto"

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance, "Gram")
        Averaging.of(self.averaging)

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        """Return the same coefficients for all agents, from the sums of all their equations."""
        ridge_or_lasso(penalty, "Gram")
        loop = Iterations(network, "Gram", self.tolerance, max_iterations=1)
        next(loop)
        averaging = Averaging.of(self.averaging)
        missed = 0.0
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
                change = (
                    f"give the averaging a tolerance of {needed:.1e} and the rounds for it, "
                    "or leave both to Gram"
                )
                loop.fall_short(self.tolerance * averaging.tolerance / needed, change)
        if not missed <= TOLERANCE:
            loop.fall_short(missed, LASSO_CHANGE, tolerance=TOLERANCE, measure="gradient")
        from_root = averaging.exact_on(network) or isinstance(penalty, Lasso)
        return Solution(b, loop.report(), apart=0.0 if from_root else None)

    def _sum_tolerance(self, network: Network, problems: LeastSquares, convexity: float) -> float:
        """Return the tolerance that sums must have for coefficients within the tolerance asked for.

        For ridge a relative error of G is amplified by at most the condition number,
        (alpha + max eig) / alpha. The tolerance of an averaging is relative to the spread of the
        agents' G, which may be a few times G itself.
        """
        largest = network.size * float(maximum(network, problems.largest_eigenvalues())[0])
        largest = largest or 1.0  # 0: there is nothing to sum
        smallest = max(convexity, 1e-9 * largest)
        return max(0.1 * self.tolerance * smallest / (convexity + largest), 1e-15)


def _sum_equations(
    network: Network, problems: LeastSquares, averaging: Averaging
) -> list[NormalEquations]:
    """Return the summed equations at every hosted agent."""
    moments = problems.moment.reshape(problems.agents, -1)
    sums = averaging.total(network, np.hstack([problems.triangles(), moments]))
    return [NormalEquations.of_numbers(row, problems.shape) for row in sums]


def _solve_at_root(
    network: Network,
    sums: Sequence[NormalEquations],
    penalty: Penalty,
    broadcast: Callable[[Network, Array], Array],
) -> tuple[Array, float]:
    """Solve at the root; return b at all agents, and how far it misses the conditions."""
    B, M = sums[0].shape
    answers = np.zeros((len(sums), B * M + 1))
    for k, agent in enumerate(network.hosted):
        if agent == network.tree.root:
            answers[k] = _solve_or_mark(sums[k], penalty)
    received = broadcast(network, answers)
    if received[0, -1] == NO_ANSWER:  # all agents raise the error that the root found
        raise undetermined_error(penalty.alpha)
    return received[:, :-1].reshape(-1, B, M), float(received[0, -1])


def _solve_or_mark(equations: NormalEquations, penalty: Penalty) -> Array:
    """Return b and what it misses, as one row to send; NO_ANSWER stands for "there is no b"."""
    try:
        if isinstance(penalty, Lasso):
            b, missed = equations.lasso(penalty.alpha)
        else:
            b = equations.ridge(penalty.alpha)
            missed = 0.0
    except DataError:
        b = np.zeros(equations.shape)
        missed = NO_ANSWER
    return np.array([*b.ravel(), missed])


def merge_equations(
    network: Network, equations: Sequence[NormalEquations]
) -> list[NormalEquations]:
    """Return each hosted agent's equations, merged with those of its subtree: the root has all."""
    shape = equations[0].shape
    return merge_to_root(
        network, equations, lambda message, sender: _unpack(message, shape, sender)
    )


def _unpack(message: Message, shape: tuple[int, int], sender: int) -> NormalEquations:
    equations = NormalEquations.unpack(message, shape)
    if equations is None:
        raise unexpected_message(sender, f"equations of {shape[0]} features")
    return equations


def ridge_if_any(equations: NormalEquations, alpha: float | Array) -> tuple[Array | float, float]:
    """Return the ridge solution and 1, or 0 and 0 if there is none."""
    try:
        return equations.ridge(alpha), 1.0
    except DataError:
        return 0.0, 0.0
