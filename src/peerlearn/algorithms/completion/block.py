"""Decentralised block estimation (D-LMaFit): every agent completes the columns of its own rows.

    D_k ~ A B_k,   N x N_k,  with one A, N x r, that agents agree on

    A_k[n+1] = A_k[n] + sum_j C_kj A_j[n] - sum_j C~_kj A_j[n-1]                     over the network: one round
               - alpha (F_k[n] - F_k[n-1]),      F_k = A_k - D~_k B_k',   C~ = (I + C) / 2                     alone
    A_k[1]   = sum_j C_kj A_j[0] - alpha F_k[0]
    B_k      = pinv(A_k) D~_k                                                                                  alone
    D~_k     = max(A_k B_k, 0), but D^_k where it is known                                                     alone
    D~       = ([D~_1 .. D~_L] + its transpose) / 2, 0 on the diagonal                 over the network: a tree

Ling, Xu, Yin and Wen, Decentralized low-rank matrix completion, 2012; Lin and Ling, Decentralized
and privacy-preserving low-rank matrix completion, 2015; thesis, section 7.3.2, with the signs of
the EXTRA iteration (Shi, Ling, Wu and Yin, 2015, equation 2.13) and of B_k corrected. Distances
have rank d + 2 at most. Of what an agent knows it uses the columns of its own rows alone.
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
from peerlearn.algorithms.completion.diffusion import sizes
from peerlearn.algorithms.completion.settings import check_iterations, check_rank, check_step
from peerlearn.algorithms.completion.windows import run
from peerlearn.algorithms.distances.partial_matrix import Known, Mask
from peerlearn.algorithms.distances.row_index import Places
from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.report import check_tolerance
from peerlearn.arrays import Array, norms, sendable
from peerlearn.network.base import Network

__all__ = ["BlockCompletion"]

NEGLIGIBLE = 1e-12  # of the largest eigenvalue of A'A: directions that pinv leaves out
Point = tuple[Array, Array]  # A and D~ of the hosted agents


@dataclass(frozen=True)
class BlockCompletion:
    """rank: columns of A; None: two more than the rows have columns. step: alpha to begin with. iterations: at most.

    tolerance: how far the distances may be from known ones at any agent, relative to them.
    """

    rank: int | None = None
    step: float = 0.2
    iterations: int = 2000
    tolerance: float = 1e-6

    name: ClassVar = "block"

    def __post_init__(self) -> None:
        check_rank(self.rank)
        check_iterations(self.iterations)
        check_step(self.step)
        check_tolerance(self.tolerance, "BlockCompletion")

    def complete(
        self, network: Network, known: Known, seed: int, truth: Array | None = None
    ) -> Completed:
        """See Completion. All agents start from the same A; errors are those of an agent's own columns."""
        solver, places, mark = "BlockCompletion", known.places, network.ledger.mark()
        loop = Iterations(network, solver, self.tolerance, self.iterations)
        M = masks(network, known, truth, solver)
        r = rank_of(self.rank, known, 2, places.N, solver)
        if M is None:
            return nothing_to_do(network, known, solver)
        mean = mean_distance(network, known)
        scale = mean or 1.0
        A = np.random.default_rng(seed).standard_normal((places.N, r)) * (mean / scale)
        own = [places.of(agent) for agent in network.hosted]
        D = _pad_blocks(
            [D[:, rows] / scale for D, rows in zip(known.D, own, strict=True)], places, 0.0
        )
        mask = (
            _pad_blocks(
                [m[:, rows].astype(np.float64) for m, rows in zip(M, own, strict=True)], places, 1.0
            )
            > 0
        )
        truths = (
            None
            if truth is None
            else _pad_blocks([truth[:, rows] / scale for rows in own], places, 0.0)
        )
        blocks = _Blocks(network, D, mask, A, self.step, truths)
        (_, found), completed = run(blocks, loop)
        columns = [
            d[:, : places.counts[agent]].T for agent, d in zip(network.hosted, found, strict=True)
        ]
        whole = places.all_gather(network, columns, places.N)
        whole = scale * (whole + whole.T) / 2
        np.fill_diagonal(whole, 0.0)
        report = replace(completed.report, sent=network.ledger.since(mark))
        return replace(completed, D=[whole] * len(network.hosted), report=report)


class _Blocks:
    """A and D~ of every hosted agent on their way: agents x N x r, agents x N x the most rows of any agent."""

    def __init__(
        self, network: Network, D: Array, mask: Mask, A: Array, step: float, truth: Array | None
    ) -> None:
        self._network, self._D, self._mask, self._step, self._truth = network, D, mask, step, truth
        self._size = sizes(D)
        self._A = self._F = np.tile(A, (len(D), 1, 1))
        self._found = self._before = D  # D~ of this iteration and of the one before
        self._last: tuple[Array, Array, Array] | None = None  # A, C A and F of the iteration before

    @property
    def point(self) -> Point:
        return self._A, self._found

    def look(self) -> tuple[Array, Array]:
        B = apply_pseudo_inverse(self._A, self._before)
        AB = np.matmul(self._A, B)
        misfit = norms(np.where(self._mask, AB - self._D, 0.0)) / self._size
        self._found = np.where(self._mask, self._D, np.maximum(AB, 0.0))
        self._F = self._A - np.matmul(self._found, B.transpose(0, 2, 1))
        error = (
            np.zeros(0)
            if self._truth is None
            else norms(self._found - self._truth) / sizes(self._truth)
        )
        return misfit, error

    def advance(self, heard: Array) -> Array:
        A, F = self._A, self._F
        CA, heard = self._network.mix_and_flood(sendable(A), heard)
        if self._last is None:
            self._A = CA - self._step * F
        else:
            A_last, CA_last, F_last = self._last
            self._A = A + CA - (A_last + CA_last) / 2 - self._step * (F - F_last)
        self._last, self._before = (A, CA, F), self._found
        return heard

    def go_back(self, point: Point) -> None:
        self._A, self._before = point
        self._last, self._step = None, self._step / 2


def apply_pseudo_inverse(A: Array, D: Array) -> Array:
    """pinv(A) D for a stack of both, by the eigenvectors of A'A."""
    At = A.transpose(0, 2, 1)
    AtA = np.matmul(At, A)
    values, U = np.linalg.eigh(
        np.where(np.isfinite(AtA), AtA, 0.0)
    )  # an agent that diverged must not stop the others
    inverse = np.divide(
        1.0, values, out=np.zeros_like(values), where=values > NEGLIGIBLE * values[:, -1:]
    )
    B: Array = np.matmul(U, inverse[:, :, None] * np.matmul(U.transpose(0, 2, 1), np.matmul(At, D)))
    return B


def _pad_blocks(blocks: list[Array], places: Places, value: float) -> Array:
    """One array for all: as wide as the widest of any agent, wherever it lives, so that bits do not depend on that."""
    widest = max(places.counts)
    return np.stack(
        [np.pad(b, ((0, 0), (0, widest - b.shape[1])), constant_values=value) for b in blocks]
    )
