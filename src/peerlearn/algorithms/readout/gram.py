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
(communication-avoiding QR: Demmel et al., 2012). The root solves, and only b travels down, with a
bound on its distance to the pooled answer: see certificate.py.

G has the square of the condition of H. If the bound is beyond the tolerance, all agents send the
R factor of their rows in one more pass, as many numbers as before, and the root solves by QR:

    b = argmin |R_H b - R_Y|^2 + alpha |b|^2        at the root, from [R_H R_Y; sqrt(alpha) I 0]

By gossip all agents take the b of one of them, and certify it by one sum of gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.certificate import (
    GRADIENT_TOLERANCE,
    LARGEST_CHANGE,
    NOT_STRONGLY_CONVEX,
    TOO_CLOSE_TO_SINGULAR,
    most_exact,
    pooled_gradient,
    receive_bound,
    solve_certified,
    solve_factor,
    sum_error,
)
from peerlearn.algorithms.iteration import Certificate, Iterations, check_tolerance
from peerlearn.algorithms.readout.solver import Solution, ridge_or_lasso
from peerlearn.algorithms.sums import (
    broadcast_from_center,
    broadcast_from_root,
    maximum,
    merge_to_root,
    sum_everywhere,
)
from peerlearn.algorithms.unexpected import unexpected_message
from peerlearn.arrays import HUGE, Array, norms, sendable
from peerlearn.errors import DataError
from peerlearn.local.lasso import TOLERANCE
from peerlearn.local.least_squares import LeastSquares, Lengths
from peerlearn.local.normal_equations import Factor, NormalEquations, undetermined_error
from peerlearn.local.penalties import Lasso, Penalty
from peerlearn.network.base import Message, Network
from peerlearn.secret.statement import ONLY_TOTALS

__all__ = ["Gram"]

Part = TypeVar("Part", NormalEquations, Factor)

# Marks in place of what an answer misses.
NO_ANSWER = -1.0
SEND_FACTORS = -2.0
CONDITION_CHANGE = "scale the inputs, raise alpha, or use fewer units"
LASSO_CHANGE = "scale the inputs, raise alpha, or use fewer units"


@dataclass(frozen=True)
class Gram:
    """Ridge or lasso readout solved exactly from summed Gram matrices.

    Agents add up H'H and H'Y, never rows. Best for few columns or many outputs.

    Parameters
    ----------
    tolerance : float, default 1e-6
        Relative distance to the centralised coefficients. If sums over a tree do not reach it for
        rounding, R factors are sent as well. It does not apply to lasso, whose sums are always as
        exact as float64 allows, and whose answer is checked by its gradient.
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
    claim: ClassVar = ONLY_TOTALS

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
        if averaging.exact_on(network):
            sums = merge_equations(network, problems.normal_equations())
            answer = self._solve_at_root(network, problems, sums, penalty, broadcast_from_root)
            return self._report(loop, answer, penalty, CONDITION_CHANGE)
        needed = self._sum_tolerance(network, problems, penalty.convexity)
        if not isinstance(self.averaging, Averaging):
            averaging = Averaging(averaging.method, needed)
        sums, errors = sum_equations(network, problems, averaging)
        change = (
            f"give the averaging a tolerance of {needed:.1e} and the rounds for it, "
            "or leave both to Gram"
        )
        if isinstance(penalty, Lasso):
            answer = self._solve_at_root(network, problems, sums, penalty, broadcast_from_center)
            if averaging.tolerance > needed or not averaging.suffices_on(network):
                loop.fall_short(self.tolerance * averaging.tolerance / needed, change)
        else:
            answer = _solve_by_gossip(network, problems, sums, errors, penalty.alpha, averaging)
        return self._report(loop, answer, penalty, change)

    def _report(self, loop: Iterations, answer: _Answer, penalty: Penalty, change: str) -> Solution:
        """Return the solution. All agents have the same b."""
        if not isinstance(penalty, Lasso):
            return Solution(
                answer.b, loop.report(change, certificate=answer.certificate), apart=0.0
            )
        if not answer.missed <= TOLERANCE:
            loop.fall_short(answer.missed, LASSO_CHANGE, tolerance=TOLERANCE, measure="gradient")
        report = replace(
            loop.report(), bound=answer.certificate.bound, bound_reason=answer.certificate.reason
        )
        return Solution(answer.b, report, apart=0.0)

    def _solve_at_root(
        self,
        network: Network,
        problems: LeastSquares,
        sums: Sequence[NormalEquations],
        penalty: Penalty,
        broadcast: Callable[[Network, Array], Array],
    ) -> _Answer:
        """Solve at the root; if rounding keeps it from the tolerance, once more by R factors."""
        by_factor = problems.has_factors and not isinstance(penalty, Lasso)

        def solve(equations: NormalEquations) -> Array:
            return _solve_or_mark(equations, penalty, self.tolerance, by_factor, problems.lengths)

        first = _ask_root(network, sums, solve, broadcast)
        if first[0, -2] != SEND_FACTORS:
            return _Answer.of(first, problems.shape, penalty)
        factors = merge_factors(network, problems.factors())
        second = _ask_root(
            network,
            factors,
            lambda factor: _solve_factor_or_mark(factor, penalty.alpha, problems.lengths),
            broadcast,
        )
        gram_is_better = first[0, -1] < second[0, -1]
        return _Answer.of(first if gram_is_better else second, problems.shape, penalty)

    def _sum_tolerance(self, network: Network, problems: LeastSquares, convexity: float) -> float:
        """Return the tolerance that sums must have for coefficients within the tolerance asked for.

        For ridge a relative error of G is amplified by at most the condition number,
        (alpha + max eig) / alpha. The tolerance of an averaging is relative to the spread of the
        agents' G, which may be a few times G itself.
        """
        largest = network.size * float(maximum(network, problems.largest_eigenvalues())[0])
        largest = largest or 1.0  # 0: there is nothing to sum
        smallest = max(convexity, 1e-9 * largest)
        share = 0.1 * self.tolerance
        if problems.lengths is not None:  # an error of b moves the intercept by that of m'b
            m = problems.lengths.means[: problems.shape[0]]
            share /= math.hypot(1.0, float(np.linalg.norm(m)))
        return max(share * smallest / (convexity + largest), 1e-15)


def sum_equations(
    network: Network, problems: LeastSquares, averaging: Averaging
) -> tuple[list[NormalEquations], Array]:
    """Return the summed equations at every hosted agent, and bounds on their errors.

    The sum of the rows' lengths travels too: errors are relative to it.
    """
    moments = problems.moment.reshape(problems.agents, -1)
    rows = np.hstack([problems.triangles(), moments])
    sums = averaging.total(network, np.column_stack([rows, norms(rows)]))
    share = 2 * sum_error(network, averaging)  # 2: entries beside the diagonal occur twice
    errors = share * sums[:, -1] / (1 - share) if share < LARGEST_CHANGE else np.inf * sums[:, -1]
    return [NormalEquations.of_numbers(row, problems.shape) for row in sums[:, :-1]], errors


def _solve_by_gossip(
    network: Network,
    problems: LeastSquares,
    sums: Sequence[NormalEquations],
    errors: Array,
    alpha: float,
    averaging: Averaging,
) -> _Answer:
    """Return the b of the agent in the middle of the graph, at all agents, and its certificate."""
    own = np.stack([equations.ridge(alpha) for equations in sums])
    b = broadcast_from_center(network, own)
    exact = most_exact(network, averaging, GRADIENT_TOLERANCE)
    gradient = pooled_gradient(network, problems, alpha, b, exact, sum_everywhere)
    certificate = gradient.certify_by_sums(alpha, b, sums, errors, problems.lengths)
    return _Answer(b, 0.0, certificate)


@dataclass(frozen=True)
class _Answer:
    """What all agents know in the end. missed: gradient of a lasso problem that is left."""

    b: Array
    missed: float
    certificate: Certificate

    @classmethod
    def of(cls, rows: Array, shape: tuple[int, int], penalty: Penalty) -> _Answer:
        """Return the answer that the root sent: b, what it misses or a mark, and the bound."""
        missed, bound = rows[0, -2:].tolist()
        if missed == NO_ANSWER:  # all agents raise the error that the root found
            raise undetermined_error(penalty.alpha)
        b = rows[:, :-2].reshape(-1, *shape)
        if isinstance(penalty, Lasso):
            return cls(b, max(missed, 0.0), Certificate(math.inf, describe_gap(bound)))
        return cls(b, max(missed, 0.0), receive_bound(bound, TOO_CLOSE_TO_SINGULAR))


def describe_gap(gap: float) -> str:
    """Return what is known of a lasso answer with this relative duality gap."""
    if gap >= HUGE:
        return NOT_STRONGLY_CONVEX
    return f"{NOT_STRONGLY_CONVEX}; its objective is within {gap:.1e} of the least one"


def _ask_root(
    network: Network,
    parts: Sequence[Part],
    solve: Callable[[Part], Array],
    broadcast: Callable[[Network, Array], Array],
) -> Array:
    """Return what the root makes of its part, at all agents."""
    B, M = parts[0].shape
    answers = np.zeros((len(parts), B * M + 2))
    for k, agent in enumerate(network.hosted):
        if agent == network.tree.root:
            answers[k] = solve(parts[k])
    return broadcast(network, answers)


def _solve_or_mark(
    equations: NormalEquations,
    penalty: Penalty,
    tolerance: float,
    by_factor: bool,
    lengths: Lengths | None,
) -> Array:
    """Return one row to send: b, what it misses or a mark, and the bound.

    NO_ANSWER stands for "there is no b", SEND_FACTORS for "b is not exact enough". The latter is
    used only if by_factor is true, and if the equations are not a factor already.
    """
    mark = SEND_FACTORS if by_factor and equations.R is None else NO_ANSWER
    try:
        if isinstance(penalty, Lasso):
            b, missed = equations.lasso(penalty.alpha)
            return _row(b, missed, Certificate(equations.lasso_gap(b, penalty.alpha)))
        b, certificate = solve_certified(equations, penalty.alpha, tolerance, lengths)
    except DataError:
        return _row(np.zeros(equations.shape), mark, Certificate(math.inf))
    too_far = mark == SEND_FACTORS and not certificate.bound <= tolerance
    return _row(b, SEND_FACTORS if too_far else 0.0, certificate)


def _solve_factor_or_mark(factor: Factor, alpha: float, lengths: Lengths | None) -> Array:
    """Return one row to send: b, 0 or NO_ANSWER, and the bound."""
    try:
        b, certificate = solve_factor(factor, alpha, lengths)
    except DataError:
        return _row(np.zeros(factor.shape), NO_ANSWER, Certificate(math.inf))
    return _row(b, 0.0, certificate)


def _row(b: Array, missed: float, certificate: Certificate) -> Array:
    return sendable(np.array([*b.ravel(), missed, certificate.bound]))


def merge_equations(
    network: Network, equations: Sequence[NormalEquations]
) -> list[NormalEquations]:
    """Return each hosted agent's equations, merged with those of its subtree: the root has all."""
    shape = equations[0].shape
    return merge_to_root(
        network, equations, lambda message, sender: _unpack(message, shape, sender)
    )


def merge_factors(network: Network, factors: Sequence[Factor]) -> list[Factor]:
    """Return each hosted agent's factor, merged with those of its subtree: the root has all."""
    shape = factors[0].shape

    def unpack(message: Message, sender: int) -> Factor:
        factor = Factor.unpack(message, shape)
        if factor is None:
            raise unexpected_message(sender, f"a factor of {shape[0]} features")
        return factor

    return merge_to_root(network, factors, unpack)


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
