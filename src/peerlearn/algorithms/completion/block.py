"""Decentralised block estimation (D-LMaFit): every agent completes the columns of its own rows.

    D_k ~ A B_k,   N x N_k,  with one A, N x r, that agents agree on

    A_k[n+1] = A_k[n] + sum_j C_kj A_j[n] - sum_j C~_kj A_j[n-1]     over the network: one round
               - alpha (F_k[n] - F_k[n-1])                           alone
    A_k[1]   = sum_j C_kj A_j[0] - alpha F_k[0]
    B_k      = pinv(A_k) D~_k                                        alone
    D~_k     = max(A_k B_k, 0), but D^_k where it is known           alone
    D~       = ([D~_1 .. D~_L] + its transpose) / 2                  over the network: a tree

with F_k = A_k - D~_k B_k' and C~ = (I + C) / 2; D~ is 0 on the diagonal.

Ling, Xu, Yin and Wen, Decentralized low-rank matrix completion, 2012; Lin and Ling, Decentralized
and privacy-preserving low-rank matrix completion, 2015; thesis, section 7.3.2, with the signs of
the EXTRA iteration (Shi, Ling, Wu and Yin, 2015, equation 2.13) and of B_k corrected. Distances
have rank d + 2 at most. An agent uses only the columns of its own rows.
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
from peerlearn.algorithms.iteration import Iterations, check_tolerance
from peerlearn.arrays import Array, norms, sendable
from peerlearn.network.base import Network

__all__ = ["BlockCompletion"]

# Times the largest eigenvalue of A'A: pinv leaves out directions with less.
NEGLIGIBLE = 1e-12
Point = tuple[Array, Array]  # A and D~ of the hosted agents


@dataclass(frozen=True)
class BlockCompletion:
    """Completion of distances by a low-rank factor that agents agree on (D-LMaFit).

    Parameters
    ----------
    rank : int or None, default None
        Columns of the factor A. None: two more than the rows have columns.
    step : float, default 0.2
        Step size to begin with, alpha in the formulas. It halves when the misfit grows.
    iterations : int, default 2000
        Limit of iterations; a completion that needs more warns.
    tolerance : float, default 1e-6
        How far the distances may be from known ones at any agent, relative to them.

    Examples
    --------
    >>> from peerlearn import BlockCompletion, Exchange, LapKRRClassifier, SimulatedNetwork, graphs
    >>> X = [[0.0], [1.0], [0.1], [0.9], [0.2], [0.8], [0.3], [0.7]]
    >>> y = [0, 1, 0, 1, -1, -1, -1, -1]  # -1: no label
    >>> exchange = Exchange(patterns=0.5, entries=0.5, pattern_rounds=5, entry_rounds=5)
    >>> network = SimulatedNetwork(graphs.ring(4))
    >>> completion = BlockCompletion(tolerance=1e-2)
    >>> model = LapKRRClassifier(
    ...     distances=exchange, completion=completion, network=network, random_state=0
    ... )
    >>> model.fit(X, y).predict([[0.05], [0.95]])
    array([0, 1])
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
        """Return all distances, from the known ones. See `Completion`.

        All agents start from the same A. Errors are those of an agent's own columns.
        """
        solver = "BlockCompletion"
        places = known.places
        mark = network.ledger.mark()
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
        truths = None
        if truth is not None:
            truths = _pad_blocks([truth[:, rows] / scale for rows in own], places, 0.0)
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
    """A and D~ of every hosted agent during the iteration.

    Arrays are agents x N x r and agents x N x the largest row count of any agent.
    """

    def __init__(
        self, network: Network, D: Array, mask: Mask, A: Array, step: float, truth: Array | None
    ) -> None:
        self._network = network
        self._D = D
        self._mask = mask
        self._step = step
        self._truth = truth
        self._size = sizes(D)
        self._A = self._F = np.tile(A, (len(D), 1, 1))
        self._found = self._before = D  # D~ of this iteration and of the one before
        self._last: tuple[Array, Array, Array] | None = None  # A, C A and F of the iteration before

    @property
    def point(self) -> Point:
        """The current A and D~."""
        return self._A, self._found

    def look(self) -> tuple[Array, Array]:
        """Return the misfit and the error of each hosted agent."""
        B = apply_pseudo_inverse(self._A, self._before)
        AB = np.matmul(self._A, B)
        misfit = norms(np.where(self._mask, AB - self._D, 0.0)) / self._size
        self._found = np.where(self._mask, self._D, np.maximum(AB, 0.0))
        self._F = self._A - np.matmul(self._found, B.transpose(0, 2, 1))
        if self._truth is None:
            return misfit, np.zeros(0)
        return misfit, norms(self._found - self._truth) / sizes(self._truth)

    def advance(self, heard: Array) -> Array:
        """Do one iteration, which is one round."""
        A = self._A
        F = self._F
        CA, heard = self._network.mix_and_flood(sendable(A), heard)
        if self._last is None:
            self._A = CA - self._step * F
        else:
            A_last, CA_last, F_last = self._last
            self._A = A + CA - (A_last + CA_last) / 2 - self._step * (F - F_last)
        self._last = (A, CA, F)
        self._before = self._found
        return heard

    def go_back(self, point: Point) -> None:
        """Go back to an earlier point, with half the step."""
        self._A, self._before = point
        self._last = None
        self._step /= 2


def apply_pseudo_inverse(A: Array, D: Array) -> Array:
    """Return pinv(A) D for a stack of both, by the eigenvectors of A'A."""
    At = A.transpose(0, 2, 1)
    AtA = np.matmul(At, A)
    # An agent that diverged must not stop the others: eigh refuses NaN and infinity.
    values, U = np.linalg.eigh(np.where(np.isfinite(AtA), AtA, 0.0))
    large = values > NEGLIGIBLE * values[:, -1:]
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=large)
    UtAtD = np.matmul(U.transpose(0, 2, 1), np.matmul(At, D))
    B: Array = np.matmul(U, inverse[:, :, None] * UtAtD)
    return B


def _pad_blocks(blocks: list[Array], places: Places, value: float) -> Array:
    """Return one array of all blocks, padded to the largest row count of any agent.

    It is the same width wherever an agent is hosted, so that bits do not depend on that.
    """
    widest = max(places.counts)
    padded = []
    for block in blocks:
        missing = widest - block.shape[1]
        padded.append(np.pad(block, ((0, 0), (0, missing)), constant_values=value))
    return np.stack(padded)
