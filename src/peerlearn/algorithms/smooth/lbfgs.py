"""L-BFGS over a tree: the agent in the middle steers, and all agents know where it is.

    w                                            down the tree: where to look next
    h_k(w), grad h_k(w)                          alone
    F(w), grad F(w)                              up the tree: sums
    the next w, by what F and grad F have shown  alone, at the agent in the middle: scipy's L-BFGS-B

Byrd, Lu, Nocedal and Zhu, A limited memory algorithm for bound constrained optimization, 1995. Only
one agent decides: others on machines of another kind might take another last bit for another
decision. What is sent are two vectors per link of the tree and evaluation, and no mixing is needed:
far less than by gossip, where every message arrives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.optimize

from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.smooth.minimum import (
    WAY_OUT,
    Minimum,
    check_limits,
    check_start,
    slopes_and_values,
)
from peerlearn.algorithms.sums import broadcast_from_root, sum_to_root
from peerlearn.arrays import Array, sendable
from peerlearn.errors import NetworkError, WireError
from peerlearn.local.losses import Losses
from peerlearn.network.base import Network

__all__ = ["LBFGS"]

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

    def minimise(
        self, network: Network, losses: Losses, alpha: float, start: Array | None = None
    ) -> Minimum:
        if not network.reliable:
            raise NetworkError(
                "LBFGS needs every message to arrive, and this network loses some: use solver='diffusion'"
            )
        loop = Iterations(network, "LBFGS", self.tolerance, self.max_iterations, measure="gradient")
        search = _Search(losses, alpha, loop)
        w = check_start(network, losses, alpha, start)
        if network.tree.root in network.hosted:
            search.steer(w[network.hosted.index(network.tree.root)])
        else:
            search.follow()
        loop.count = len(loop.residuals)  # an iteration is an evaluation
        return Minimum(search.w, loop.report(WAY_OUT), apart=0.0)


class _Found(Exception):
    """The search is over: a gradient is small enough."""


class _Search:
    """What the hosted agents know of the search: where it is, and how large the gradients were before."""

    def __init__(self, losses: Losses, alpha: float, loop: Iterations) -> None:
        self._network, self._losses, self._alpha, self._loop = loop.network, losses, alpha, loop
        root, hosted = self._network.tree.root, self._network.hosted
        self._leader = hosted.index(root) if root in hosted else None
        self.w = np.zeros((losses.agents, losses.dimension))

    def steer(self, w: Array) -> None:
        """Search, in the process of the agent in the middle."""
        most = self._loop.max_iterations
        limits = {
            "maxfun": most,
            "maxiter": most,
            "ftol": 0.0,
            "gtol": 0.0,
        }  # the gradient alone says when
        try:
            found = scipy.optimize.minimize(
                self._evaluate, w, jac=True, method="L-BFGS-B", options=limits
            )
            self._evaluate(found.x)  # the last point that was looked at need not be the best
        except _Found:
            pass
        self._tell(self.w[0], DONE)

    def follow(self) -> None:
        """Evaluate where the agent in the middle looks, in all other processes."""
        while self._tell(None, ON) == ON:
            self._sum()
            if len(self._loop.residuals) > 2 * self._loop.max_iterations + LINE_SEARCH:
                raise WireError(
                    f"agent {self._network.tree.root} does not come to an end: it runs something else"
                )

    def _evaluate(self, w: Array) -> tuple[float, Array]:
        self._tell(w, ON)
        sums = self._sum()
        assert self._leader is not None
        h, gradient = float(sums[self._leader, -1]), sums[self._leader, :-1] + self._alpha * w
        self._loop.record(float(np.linalg.norm(gradient)))
        if self._loop.converged:
            raise _Found
        return h + self._alpha / 2 * float(w @ w), gradient

    def _tell(self, w: Array | None, what: float) -> float:
        """Send down the tree: w, whether this is the end, and how large the last gradient was."""
        told = np.zeros((self._losses.agents, self._losses.dimension + 3))
        if w is not None and self._leader is not None:
            last = self._loop.residuals[-1] if self._loop.residuals else 0.0
            told[self._leader] = [*w, what, float(len(self._loop.residuals)), last]
        told = broadcast_from_root(self._network, told)
        self.w = told[:, :-3].copy()
        what, count, last = told[0, -3:].tolist()  # the same at every agent
        if count > len(self._loop.residuals):
            self._loop.record(last)
        return what

    def _sum(self) -> Array:
        """Send up the tree what the agents find at w. Only the row of the agent in the middle is whole."""
        sums: Array = sum_to_root(self._network, sendable(slopes_and_values(self._losses, self.w)))
        return sums
