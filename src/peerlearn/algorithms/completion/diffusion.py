"""Diffusion gradient descent on the low-rank factor of the distances, with momentum.

    J_k(V) = |M_k o (K - D^_k)|_F^2,   K_ij = |v_i|^2 + |v_j|^2 - 2 v_i'v_j
    E      = M_k o (K - D^_k),         grad J_k = 4 kappa*(E) V = 8 (Diag(E 1) - E) V       alone

    Y_k  = V_k + beta (V_k - V_k before)                                       alone
    P_k  = Y_k - diag(eta_k) grad J_k(Y_k)                                     alone
    V_k <- sum_j C_kj P_j                                                      over the network

M_k is the mask of what agent k knows. Thesis, section 7.3.3, with the gradient corrected:
kappa*(A) = Diag((A + A')1) - (A + A'), here for symmetric M_k. Momentum: Nesterov, Introductory
lectures on convex optimization, 2004, section 2.2; beta grows to its value.

The step, from what an agent knows. In a direction U the curvature of J_k at the answer is

    8 sum_ij M_ij ((v_i - v_j)'(u_i - u_j))^2
        <=  8 sum_ij M_ij D_ij |u_i - u_j|^2  =  16 tr U' Lap(M o D) U

and Lap(M o D) <= c Diag(d) with d_i = sum_j M_ij D_ij and c <= 2 the largest eigenvalue of the
normalised Laplacian. So every row has a step of its own, eta_i = 1 / (16 c d_i), also if an agent
knows little of it. A row of which it knows nothing moves by what the neighbors send. On the way,
sum_j M_ij K_ij takes the place of d_i where it is larger.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from peerlearn.algorithms.completion.completed import (
    Completed,
    masks,
    mean_distance,
    nothing_to_do,
    rank_of,
)
from peerlearn.algorithms.completion.settings import check_iterations, check_rank, check_step
from peerlearn.algorithms.completion.windows import run
from peerlearn.algorithms.distances.partial_matrix import Known
from peerlearn.algorithms.iteration import Iterations, check_tolerance
from peerlearn.arrays import Array, is_real, norms, sendable
from peerlearn.errors import InputError
from peerlearn.local.squared_distances import squared_distances
from peerlearn.network.base import Network

__all__ = ["DiffusionCompletion"]

LONGER = 1.25  # times eta: momentum beta allows (2 + 2 beta) / (1 + 2 beta), which is 4/3 or more
POWERS = 30  # steps of the power iteration for c: its error is then a few percent


@dataclass(frozen=True)
class DiffusionCompletion:
    """Completion of distances by diffusion gradient descent with momentum.

    Parameters
    ----------
    rank : int or None, default None
        Columns of the factor V. None: as many as the rows have. For rows with one column of which
        little is known, rank 1 may get stuck, with a warning, because points on a line cannot pass
        each other; rank 2 does not.
    momentum : float, default 0.95
        The largest momentum, beta in the formulas.
    iterations : int, default 2000
        Limit of iterations; a completion that needs more warns.
    tolerance : float, default 1e-6
        How far the distances may be from known ones at any agent, relative to them.
    step : float or None, default None
        One step for all rows, on the true gradient: that of the thesis's table divided by 4. None
        takes a step for each row, from what the agent knows.

    Examples
    --------
    >>> from peerlearn import DiffusionCompletion, Exchange, LapKRRClassifier
    >>> from peerlearn import SimulatedNetwork, graphs
    >>> X = [[0.0], [1.0], [0.1], [0.9], [0.2], [0.8], [0.3], [0.7]]
    >>> y = [0, 1, 0, 1, -1, -1, -1, -1]  # -1: no label
    >>> exchange = Exchange(patterns=0.5, entries=0.5, pattern_rounds=5, entry_rounds=5)
    >>> network = SimulatedNetwork(graphs.ring(4))
    >>> completion = DiffusionCompletion(rank=2, tolerance=1e-2)
    >>> model = LapKRRClassifier(
    ...     distances=exchange, completion=completion, network=network, random_state=0
    ... )
    >>> model.fit(X, y).predict([[0.05], [0.95]])
    array([0, 1])
    """

    rank: int | None = None
    momentum: float = 0.95
    iterations: int = 2000
    tolerance: float = 1e-6
    step: float | None = None

    name: ClassVar = "diffusion"

    def __post_init__(self) -> None:
        check_rank(self.rank)
        check_iterations(self.iterations)
        check_step(self.step)
        check_tolerance(self.tolerance, "DiffusionCompletion")
        if not is_real(self.momentum) or not 0 <= self.momentum < 1:
            raise InputError(
                f"momentum is {self.momentum!r}: give a number from 0 to below 1, such as 0.95"
            )

    def complete(
        self, network: Network, known: Known, seed: int, truth: Array | None = None
    ) -> Completed:
        """Return all distances, from the known ones. See `Completion`.

        All agents start from the same V, drawn from the seed.
        """
        solver = "DiffusionCompletion"
        loop = Iterations(network, solver, self.tolerance, self.iterations)
        N = known.places.N
        M = masks(network, known, truth, solver)
        r = rank_of(self.rank, known, 0, N - 1, solver)
        if M is None:
            return nothing_to_do(network, known, solver)
        mean = mean_distance(network, known)
        scale = mean or 1.0
        deviation = np.sqrt(mean / scale / (2 * r))
        V = np.random.default_rng(seed).standard_normal((N, r)) * deviation
        descent = _Descent(
            network,
            np.stack(known.D) / scale,
            np.stack(M).astype(np.float64),
            V,
            self.momentum,
            None if self.step is None else self.step * scale,
            None if truth is None else truth / scale,
        )
        Y, completed = run(descent, loop)
        found = [
            np.where(m, D, scale * squared_distances(y))
            for m, D, y in zip(M, known.D, Y, strict=True)
        ]
        return replace(completed, D=found)


class _Descent:
    """V of every hosted agent during the iteration: agents x N x r."""

    def __init__(
        self,
        network: Network,
        D: Array,
        M: Array,
        V: Array,
        momentum: float,
        step: float | None,
        truth: Array | None,
    ) -> None:
        self._network = network
        self._D = D
        self._M = M
        self._truth = truth
        self._momentum = momentum
        self._V = self._Y = np.tile(V, (len(D), 1, 1))
        self._E = np.empty_like(D)
        self._since = 0  # iterations since the momentum began
        self._pace = 1.0  # factor of the steps, which halves
        self._size = sizes(D)
        self._d = D.sum(axis=2)
        self._step = step
        self._inverse = LONGER / (16 * curvature(D, self._d)[:, None])

    @property
    def point(self) -> Array:
        """The current Y."""
        return self._Y

    def look(self) -> tuple[Array, Array]:
        """Return the misfit and the error of each hosted agent."""
        E = kappa(self._Y, self._E)
        error = np.zeros(0)
        if self._truth is not None:
            error = norms(E - self._truth) / sizes(self._truth[None])
        E *= self._M
        E -= self._D
        return norms(E) / self._size, error

    def advance(self, heard: Array) -> Array:
        """Do one iteration, which is one round."""
        Y = self._Y
        gradient, e = gradient_of(self._E, Y)
        P = Y - self._pace * self._steps(e)[:, :, None] * gradient
        V, heard = self._network.mix_and_flood(sendable(P), heard)
        beta = min(self._momentum, self._since / (self._since + 3))
        self._Y = V + beta * (V - self._V)
        self._V = V
        self._since += 1
        return heard

    def go_back(self, point: Array) -> None:
        """Go back to an earlier point, with half the step and without momentum."""
        self._V = self._Y = point
        self._pace /= 2
        self._since = 0

    def _steps(self, e: Array) -> Array:
        """Return eta of every row. e = E 1: how much larger than d the sums of K are."""
        if self._step is not None:
            return np.full_like(e, self._step)
        eta: Array = np.divide(
            self._inverse, self._d + np.maximum(e, 0.0), out=np.zeros_like(e), where=self._d > 0
        )
        return eta


def kappa(V: Array, out: Array | None = None) -> Array:
    """Return K_ij = |v_i|^2 + |v_j|^2 - 2 v_i'v_j for a stack of V.

    By one product: [-2 v_i, |v_i|^2, 1]'[v_j, 1, |v_j|^2].
    """
    vv = np.einsum("knr,knr->kn", V, V)[:, :, None]
    ones = np.ones_like(vv)
    left = np.concatenate([-2.0 * V, vv, ones], axis=2)
    right = np.concatenate([V, ones, vv], axis=2)
    K: Array = np.matmul(left, right.transpose(0, 2, 1), out=out)
    return K


def gradient_of(E: Array, V: Array) -> tuple[Array, Array]:
    """Return 8 (Diag(e) - E) V for a stack of symmetric E, and e = E 1."""
    ones = np.ones_like(V[:, :, :1])
    EV = np.matmul(E, np.concatenate([V, ones], axis=2))
    e = EV[:, :, -1]
    return 8.0 * (e[:, :, None] * V - EV[:, :, :-1]), e


def sizes(D: Array) -> Array:
    """Return what misfits are relative to: |D| of each agent, or 1 if all its distances are 0."""
    size = norms(D)
    return np.where(size > 0, size, 1.0)


def curvature(D: Array, d: Array) -> Array:
    """Return c of every agent, by the power iteration.

    c is the largest eigenvalue of I - Diag(d)^-1/2 D Diag(d)^-1/2.
    """
    root = np.divide(1.0, np.sqrt(d), out=np.zeros_like(d), where=d > 0)
    # Any direction will do, if it is the same everywhere.
    direction = np.cos(np.arange(1.0, D.shape[1] + 1))
    x = np.tile(direction, (len(D), 1))
    c = np.ones(len(D))
    for _ in range(POWERS):
        x = x / np.maximum(norms(x), 1e-300)[:, None]
        x = x - root * np.matmul(D, (root * x)[:, :, None])[:, :, 0]
        c = norms(x)
    return np.clip(c, 1.0, 2.0)
