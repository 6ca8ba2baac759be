"""Diffusion gradient descent on the low-rank factor of the distances, with momentum.

    J_k(V) = |M_k o (K - D^_k)|_F^2,   K_ij = |v_i|^2 + |v_j|^2 - 2 v_i'v_j              M_k: what agent k knows
    E      = M_k o (K - D^_k),         grad J_k = 4 kappa*(E) V = 8 (Diag(E 1) - E) V                          alone

    Y_k  = V_k + beta (V_k - V_k before)                                                                       alone
    P_k  = Y_k - diag(eta_k) grad J_k(Y_k)                                                                     alone
    V_k <- sum_j C_kj P_j                                                                over the network: one round

Thesis, section 7.3.3, with the gradient corrected: kappa*(A) = Diag((A + A')1) - (A + A'), here for
symmetric M_k. Momentum: Nesterov, Introductory lectures on convex optimization, 2004, section 2.2;
beta grows to its value.

The step, from what an agent knows. In a direction U the curvature of J_k at the answer is

    8 sum_ij M_ij ((v_i - v_j)'(u_i - u_j))^2  <=  8 sum_ij M_ij D_ij |u_i - u_j|^2  =  16 tr U' Lap(M o D) U

and Lap(M o D) <= c Diag(d) with d_i = sum_j M_ij D_ij and c <= 2 the largest eigenvalue of the
normalised Laplacian. So every row has a step of its own, eta_i = 1 / (16 c d_i), also where an
agent knows little of it; of a row of which it knows nothing, the neighbors tell. On the way, sum_j
M_ij K_ij takes the place of d_i where it is larger.
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
from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.report import check_tolerance
from peerlearn.arrays import Array, is_real, norms, sendable
from peerlearn.errors import InputError
from peerlearn.local.squared_distances import squared_distances
from peerlearn.network.base import Network

__all__ = ["DiffusionCompletion"]

LONGER = 1.25  # times eta: momentum beta allows (2 + 2 beta) / (1 + 2 beta), which is 4/3 or more
POWERS = 30  # steps of the power iteration for c, which is within some percent then


@dataclass(frozen=True)
class DiffusionCompletion:
    """rank: columns of V; None: as many as the rows have. momentum: the largest beta. iterations: at most.

    tolerance: how far the distances may be from known ones at any agent, relative to them. step:
    one eta for all rows
    on the true gradient, as in the thesis's table divided by 4; None: as above. On a line rows
    cannot pass each other: where rows have one column and little is known, rank 1 may get stuck,
    with a warning, and rank 2 does not.
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
        """See Completion. All agents start from the same V, drawn from the seed."""
        solver = "DiffusionCompletion"
        loop = Iterations(network, solver, self.tolerance, self.iterations)
        N, M = known.places.N, masks(network, known, truth, solver)
        r = rank_of(self.rank, known, 0, N - 1, solver)
        if M is None:
            return nothing_to_do(network, known, solver)
        mean = mean_distance(network, known)
        scale = mean or 1.0
        V = np.random.default_rng(seed).standard_normal((N, r)) * np.sqrt(mean / scale / (2 * r))
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
    """V of every hosted agent on its way: agents x N x r."""

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
        self._network, self._D, self._M, self._truth, self._momentum = (
            network,
            D,
            M,
            truth,
            momentum,
        )
        self._V = self._Y = np.tile(V, (len(D), 1, 1))
        self._E, self._since, self._pace = np.empty_like(D), 0, 1.0
        self._size = sizes(D)
        self._d, self._step = D.sum(axis=2), step
        self._inverse = LONGER / (16 * curvature(D, self._d)[:, None])

    @property
    def point(self) -> Array:
        return self._Y

    def look(self) -> tuple[Array, Array]:
        E = kappa(self._Y, self._E)
        error = (
            np.zeros(0)
            if self._truth is None
            else norms(E - self._truth) / sizes(self._truth[None])
        )
        E *= self._M
        E -= self._D
        return norms(E) / self._size, error

    def advance(self, heard: Array) -> Array:
        Y = self._Y
        gradient, e = gradient_of(self._E, Y)
        P = Y - self._pace * self._steps(e)[:, :, None] * gradient
        V, heard = self._network.mix_and_flood(sendable(P), heard)
        beta = min(self._momentum, self._since / (self._since + 3))
        self._Y, self._V, self._since = V + beta * (V - self._V), V, self._since + 1
        return heard

    def go_back(self, point: Array) -> None:
        self._V = self._Y = point
        self._pace, self._since = self._pace / 2, 0

    def _steps(self, e: Array) -> Array:
        """eta of every row, with e = E 1: how much larger than d the sums of K are."""
        if self._step is not None:
            return np.full_like(e, self._step)
        eta: Array = np.divide(
            self._inverse, self._d + np.maximum(e, 0.0), out=np.zeros_like(e), where=self._d > 0
        )
        return eta


def kappa(V: Array, out: Array | None = None) -> Array:
    """K_ij = |v_i|^2 + |v_j|^2 - 2 v_i'v_j for a stack of V, by one product: [-2 v_i, |v_i|^2, 1]'[v_j, 1, |v_j|^2]."""
    vv = np.einsum("knr,knr->kn", V, V)[:, :, None]
    ones = np.ones_like(vv)
    left, right = (
        np.concatenate([-2.0 * V, vv, ones], axis=2),
        np.concatenate([V, ones, vv], axis=2),
    )
    K: Array = np.matmul(left, right.transpose(0, 2, 1), out=out)
    return K


def gradient_of(E: Array, V: Array) -> tuple[Array, Array]:
    """8 (Diag(e) - E) V for a stack of symmetric E, and e = E 1."""
    EV = np.matmul(E, np.concatenate([V, np.ones_like(V[:, :, :1])], axis=2))
    e = EV[:, :, -1]
    return 8.0 * (e[:, :, None] * V - EV[:, :, :-1]), e


def sizes(D: Array) -> Array:
    """What misfits are relative to: |D| of each agent, or 1 for one that knows no distance but 0."""
    size = norms(D)
    return np.where(size > 0, size, 1.0)


def curvature(D: Array, d: Array) -> Array:
    """c of every agent: the largest eigenvalue of I - Diag(d)^-1/2 D Diag(d)^-1/2, by powers of it."""
    root = np.divide(1.0, np.sqrt(d), out=np.zeros_like(d), where=d > 0)
    x = np.tile(
        np.cos(np.arange(1.0, D.shape[1] + 1)), (len(D), 1)
    )  # some direction, the same everywhere
    c = np.ones(len(D))
    for _ in range(POWERS):
        x = x / np.maximum(norms(x), 1e-300)[:, None]
        x = x - root * np.matmul(D, (root * x)[:, :, None])[:, :, 0]
        c = norms(x)
    return np.clip(c, 1.0, 2.0)
