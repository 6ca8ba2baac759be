"""L-BFGS over a tree: the agent in the middle searches, and all agents evaluate where it looks.

    w                                            down the tree: where to look next
    h_k(w), grad h_k(w)                          alone
    F(w), grad F(w)                              up the tree: sums
    the next w                                   alone, in the middle: L-BFGS-B of scipy

Byrd, Lu, Nocedal and Zhu, A limited memory algorithm for bound constrained optimization, 1995. Only
one agent decides, because on machines of different kinds another last bit might lead to another
decision. Two vectors per link of the tree and evaluation are sent, and no mixing is needed. That is
far less than by gossip, but every message must arrive.
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
from peerlearn.algorithms.unexpected import LIKELY_CAUSE
from peerlearn.arrays import Array, sendable
from peerlearn.errors import NetworkError, WireError
from peerlearn.local.losses import Losses
from peerlearn.network.base import Network

__all__ = ["LBFGS"]

# What travels with w: go on, or the search is over.
ON = 0.0
DONE = 1.0
LINE_SEARCH = 100  # evaluations: more than one line search takes beyond the limit


@dataclass(frozen=True)
class LBFGS:
    """Minimisation of smooth losses by L-BFGS, with sums over a tree.

    Sends far less than methods by gossip. Every message must arrive.

    Parameters
    ----------
    tolerance : float, default 1e-5
        Size of |grad F| at which to stop.
    max_iterations : int, default 10000
        Limit of evaluations, each of which is one sum over the tree.

    Examples
    --------
    >>> from peerlearn import LBFGS, S3VMClassifier, SimulatedNetwork, graphs
    >>> X, y = [[0.0], [1.0], [0.1], [0.9], [0.2], [0.8]], [0, 1, 0, 1, -1, -1]  # -1: no label
    >>> network = SimulatedNetwork(graphs.ring(3))
    >>> model = S3VMClassifier(solver=LBFGS(1e-3), network=network, random_state=0).fit(X, y)
    >>> model.report_.converged
    True
    """

    name: ClassVar = "lbfgs"

    tolerance: float = 1e-5
    max_iterations: int = 10_000

    def __post_init__(self) -> None:
        check_limits(self.tolerance, self.max_iterations, "LBFGS")

    def minimise(
        self, network: Network, losses: Losses, alpha: float, start: Array | None = None
    ) -> Minimum:
        """Return a minimum of the losses of all agents and the penalty."""
        if not network.reliable:
            raise NetworkError(
                "LBFGS needs every message to arrive, and this network loses some: "
                "use solver='diffusion'"
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
    """Raised to end scipy's search when a gradient is small enough."""


class _Search:
    """The hosted agents' view of the search: where it is, and the sizes of earlier gradients."""

    def __init__(self, losses: Losses, alpha: float, loop: Iterations) -> None:
        self._network = loop.network
        self._losses = losses
        self._alpha = alpha
        self._loop = loop
        root = self._network.tree.root
        hosted = self._network.hosted
        self._leader = hosted.index(root) if root in hosted else None
        self.w = np.zeros((losses.agents, losses.dimension))

    def steer(self, w: Array) -> None:
        """Search for a minimum, in the process of the agent in the middle."""
        most = self._loop.max_iterations
        # Without scipy's own tolerances: our gradient decides when to stop.
        limits = {"maxfun": most, "maxiter": most, "ftol": 0.0, "gtol": 0.0}
        try:
            found = scipy.optimize.minimize(
                self._evaluate, w, jac=True, method="L-BFGS-B", options=limits
            )
            self._evaluate(found.x)  # the last point that was evaluated need not be the best
        except _Found:
            pass
        self._broadcast(self.w[0], DONE)

    def follow(self) -> None:
        """Evaluate where the agent in the middle looks, in all other processes."""
        while self._broadcast(None, ON) == ON:
            self._sum()
            if len(self._loop.residuals) > 2 * self._loop.max_iterations + LINE_SEARCH:
                root = self._network.tree.root
                raise WireError(f"agent {root} does not end its search: {LIKELY_CAUSE}")

    def _evaluate(self, w: Array) -> tuple[float, Array]:
        self._broadcast(w, ON)
        sums = self._sum()
        assert self._leader is not None
        h = float(sums[self._leader, -1])
        gradient = sums[self._leader, :-1] + self._alpha * w
        self._loop.record(float(np.linalg.norm(gradient)))
        if self._loop.converged:
            raise _Found
        return h + self._alpha / 2 * float(w @ w), gradient

    def _broadcast(self, w: Array | None, what: float) -> float:
        """Send w, ON or DONE, and the size of the last gradient down the tree."""
        rows = np.zeros((self._losses.agents, self._losses.dimension + 3))
        if w is not None and self._leader is not None:
            last = self._loop.residuals[-1] if self._loop.residuals else 0.0
            rows[self._leader] = [*w, what, float(len(self._loop.residuals)), last]
        rows = broadcast_from_root(self._network, rows)
        self.w = rows[:, :-3].copy()
        what, count, last = rows[0, -3:].tolist()  # the same at every agent
        if count > len(self._loop.residuals):
            self._loop.record(last)
        return what

    def _sum(self) -> Array:
        """Sum values and gradients at w up the tree: only the root's row is complete."""
        sums: Array = sum_to_root(self._network, sendable(slopes_and_values(self._losses, self.w)))
        return sums
