"""L-BFGS over a tree: the agent in the middle steers, and all agents know where it is.

    w                                            down the tree: where to look next
    h_k(w), grad h_k(w)                          alone
    F(w), grad F(w)                              up the tree: sums
    the next w, by what F and grad F have shown  alone, at the agent in the middle: scipy's L-BFGS-B

Byrd, Lu, Nocedal and Zhu, A limited memory algorithm for bound constrained optimization, 1995. Only one agent decides:
others on machines of another kind might take another last bit for another decision. What is sent are two vectors per
link of the tree and evaluation, and no mixing is needed: far less than by gossip, where every message arrives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.optimize

from peerlearn.algorithms.smooth.minimum import WAY_OUT, Minimum, check_limits, slopes_and_values, started
from peerlearn.algorithms.solution import Report, warn_not_converged
from peerlearn.algorithms.sums import broadcast_from_root, sum_to_root
from peerlearn.arrays import Array, sendable
from peerlearn.errors import NetworkError, WireError
from peerlearn.local.losses import Losses
from peerlearn.network.base import Network

ON, DONE = 0.0, 1.0  # what travels with w
LINE_SEARCH = 100  # evaluations: more than one takes beyond the limit


@dataclass(frozen=True)
class LBFGS:
    """tolerance: of |grad F|. max_iterations: of evaluations, each of which is one sum over the tree."""

    name: ClassVar = "lbfgs"

    tolerance: float = 1e-5
    max_iterations: int = 10_000

    def __post_init__(self) -> None:
        check_limits(self.tolerance, self.max_iterations, "LBFGS")

    def minimise(self, network: Network, losses: Losses, alpha: float, start: Array | None = None) -> Minimum:
        if not network.reliable:
            raise NetworkError(
                "LBFGS needs every message to arrive, and this network loses some: use solver='diffusion'"
            )
        mark = network.ledger.mark()
        search = _Search(network, losses, alpha, self.tolerance)
        w = started(network, losses, alpha, start)
        if network.tree.root in network.hosted:
            search.steered(w[network.hosted.index(network.tree.root)], self.max_iterations)
        else:
            search.followed(self.max_iterations)
        converged, n = search.residuals[-1] <= self.tolerance, len(search.residuals)
        if not converged:
            warn_not_converged("LBFGS", n, search.residuals[-1], self.tolerance, WAY_OUT, of="gradient")
        report = Report("LBFGS", converged, n, tuple(search.residuals), network.ledger.since(mark))
        return Minimum(search.w, report, apart=0.0)


class _Found(Exception):
    """The search is over: a gradient is small enough."""


class _Search:
    """What the hosted agents know of the search: where it is, and how large the gradients were before."""

    def __init__(self, network: Network, losses: Losses, alpha: float, tolerance: float) -> None:
        self._network, self._losses, self._alpha, self._tolerance = network, losses, alpha, tolerance
        self._leader = network.hosted.index(network.tree.root) if network.tree.root in network.hosted else None
        self.w = np.zeros((losses.agents, losses.dimension))
        self.residuals: list[float] = []

    def steered(self, w: Array, most: int) -> None:
        """By the process of the agent in the middle."""
        limits = {"maxfun": most, "maxiter": most, "ftol": 0.0, "gtol": 0.0}  # the gradient alone says when
        try:
            found = scipy.optimize.minimize(self._evaluated, w, jac=True, method="L-BFGS-B", options=limits)
            self._evaluated(found.x)  # the last point that was looked at need not be the best
        except _Found:
            pass
        self._told(self.w[0], DONE)

    def followed(self, most: int) -> None:
        """By all others: they look where they are told to."""
        while self._told(None, ON) == ON:
            self._summed()
            if len(self.residuals) > 2 * most + LINE_SEARCH:
                raise WireError(f"agent {self._network.tree.root} does not come to an end: it runs something else")

    def _evaluated(self, w: Array) -> tuple[float, Array]:
        self._told(w, ON)
        sums = self._summed()
        assert self._leader is not None
        h, gradient = float(sums[self._leader, -1]), sums[self._leader, :-1] + self._alpha * w
        self.residuals.append(float(np.linalg.norm(gradient)))
        if self.residuals[-1] <= self._tolerance:
            raise _Found
        return h + self._alpha / 2 * float(w @ w), gradient

    def _told(self, w: Array | None, what: float) -> float:
        """Down the tree: w, whether this is the end, and how large the last gradient was."""
        told = np.zeros((self._losses.agents, self._losses.dimension + 3))
        if w is not None and self._leader is not None:
            last = self.residuals[-1] if self.residuals else 0.0
            told[self._leader] = [*w, what, float(len(self.residuals)), last]
        told = broadcast_from_root(self._network, told)
        self.w = told[:, :-3].copy()
        what, count, last = told[0, -3:].tolist()  # the same at every agent
        if count > len(self.residuals):
            self.residuals.append(last)
            self._network.residual = last
        return what

    def _summed(self) -> Array:
        """Up the tree: what the agents find at w. Only the row of the agent in the middle is whole."""
        sums: Array = sum_to_root(self._network, sendable(slopes_and_values(self._losses, self.w)))
        return sums
