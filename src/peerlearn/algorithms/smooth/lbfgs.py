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

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.optimize

from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.smooth.distance import Goal
from peerlearn.algorithms.smooth.minimum import (
    WAY_OUT,
    Minimum,
    bound_at,
    check_limits,
    check_start,
    largest_sent,
    slopes_and_values,
    step_off,
    with_errors,
)
from peerlearn.algorithms.sums import broadcast_from_root, sum_to_root
from peerlearn.algorithms.unexpected import LIKELY_CAUSE
from peerlearn.arrays import HUGE, Array, sendable
from peerlearn.errors import NetworkError, WireError
from peerlearn.local.losses import Losses
from peerlearn.network.base import Network
from peerlearn.secret.statement import HIDDEN_SUMS

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
        Size of |grad F| at which to stop. For convex losses and alpha above 0 also the largest
        relative distance to the minimum, which `report.bound` certifies.
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
    claim: ClassVar = HIDDEN_SUMS

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
        goal = Goal.of(loop, losses, alpha)
        w = check_start(network, losses, alpha, start)
        search = _Search(losses, alpha, goal)
        if network.tree.root in network.hosted:
            search.steer(w[network.hosted.index(network.tree.root)])
        else:
            search.follow()
        loop.count = len(loop.residuals)  # an iteration is an evaluation
        return Minimum(search.w, goal.report(WAY_OUT, search.bound), apart=0.0)


class _Found(Exception):
    """Raised to end scipy's search when a gradient is small enough."""


class _Search:
    """The hosted agents' view of the search: where it is, and the sizes of earlier gradients."""

    def __init__(self, losses: Losses, alpha: float, goal: Goal) -> None:
        self._network = goal.loop.network
        self._losses = losses
        self._alpha = alpha
        self._goal = goal
        self._loop = goal.loop
        root = self._network.tree.root
        hosted = self._network.hosted
        self._leader = hosted.index(root) if root in hosted else None
        self._beside_w = 4 if goal.certifies else 3  # numbers
        self.w = np.zeros((losses.agents, losses.dimension))
        self.bound = math.inf

    def steer(self, w: Array) -> None:
        """Search for a minimum, in the process of the agent in the middle."""
        self._descend(w)
        if len(self._loop.residuals) == 1 and self._goal.starts_stationary:
            self._descend(step_off(w))
        self._broadcast(self.w[0], DONE)

    def _descend(self, w: Array) -> None:
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
        d = self._losses.dimension
        own = sums[self._leader]
        h = float(own[d])
        gradient = own[:d] + self._alpha * w
        size = float(np.linalg.norm(gradient))
        self._loop.record(size)
        if self._goal.certifies:
            self.bound = bound_at(w, size, float(own[d + 1]), self._alpha)
        if self._goal.is_reached(size, self.bound):
            raise _Found
        return h + self._alpha / 2 * float(w @ w), gradient

    def _broadcast(self, w: Array | None, what: float) -> float:
        """Send w, ON or DONE, the size of the last gradient and the bound down the tree."""
        d = self._losses.dimension
        rows = np.zeros((self._losses.agents, d + self._beside_w))
        if w is not None and self._leader is not None:
            last = self._loop.residuals[-1] if self._loop.residuals else 0.0
            bound = min(self.bound, HUGE)  # infinite numbers are not sent
            beside = [what, float(len(self._loop.residuals)), last, bound]
            rows[self._leader] = [*w, *beside[: self._beside_w]]
        rows = broadcast_from_root(self._network, rows)
        self.w = rows[:, :d].copy()
        what, count, last = rows[0, d : d + 3].tolist()  # the same at every agent
        if self._goal.certifies:
            bound = float(rows[0, d + 3])
            self.bound = bound if bound < HUGE else math.inf
        if count > len(self._loop.residuals):
            self._loop.record(last)
        return what

    def _sum(self) -> Array:
        """Sum values and gradients at w up the tree: only the root's row is complete."""
        own = slopes_and_values(self._network, self._losses, self.w)
        rows = with_errors(self._losses, self.w, own) if self._goal.certifies else own
        rows = sendable(rows, largest_sent(self._network))
        sums: Array = sum_to_root(self._network, rows, "values and gradients of losses")
        return sums
