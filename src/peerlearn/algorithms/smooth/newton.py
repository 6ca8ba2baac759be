"""Newton's method over a tree: the root solves, and all agents evaluate where it looks.

    w                                            down the tree: where to look next
    h_k(w), grad h_k(w), Hessian of h_k at w     alone
    F(w), g = grad F(w), A = Hessian of F        up the tree: sums of 1 + d + d (d + 1) / 2 numbers
    p = -V |D|^-1 V' g,   A = V D V'             alone, at the root
    w <- w + t p,   t = 1, 1/2, 1/4, ..          the first that lowers F enough

Nocedal and Wright, Numerical optimization, 2006, sections 3.3 and 3.4. |D| has the absolute
eigenvalues, kept away from zero, so p always leads downwards. If the gradient vanishes where A has
a negative eigenvalue, p is the eigenvector: a saddle is left. Only the root decides, because on
machines of different kinds another last bit might lead to another decision. Every message must
arrive.

Few sums are needed: about 7 for logistic regression. Each has about d^2 / 2 numbers, which is for
small d. The root sees sums over its children's subtrees, and only w goes to all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from peerlearn.algorithms.certificate import relative_bound
from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.smooth.distance import Goal
from peerlearn.algorithms.smooth.minimum import (
    Minimum,
    check_limits,
    check_start,
    largest_sent,
    slopes_and_values,
    step_off,
)
from peerlearn.algorithms.sums import broadcast_from_root, sum_to_root
from peerlearn.algorithms.unexpected import LIKELY_CAUSE
from peerlearn.arrays import HUGE, Array, sendable
from peerlearn.errors import InputError, NetworkError, WireError
from peerlearn.local.losses import (
    ROUNDING,
    Losses,
    SelfConcordantLosses,
    are_convex,
    gradient_errors,
    hessians,
)
from peerlearn.network.base import Network
from peerlearn.secret.statement import HIDDEN_SUMS

__all__ = ["Newton"]

LARGEST = 1000  # columns: one Hessian is then 4 MB on every link
# What travels with w: go on, or the search is over.
ON = 0.0
DONE = 1.0
BESIDE_W = 4  # numbers: ON or DONE, how many gradients were summed, the size of the last, the bound
ENOUGH = 1e-4  # of the fall that the slope promises (Armijo's rule)
SHORTEST = 2.0**-40  # of a step
FLAT = 1e-10  # smallest eigenvalue to divide by, relative to the largest
CHANGE = (
    "raise tolerance or alpha, scale the columns, or raise max_iterations if all of them were used"
)


@dataclass(frozen=True)
class Newton:
    """Minimisation of smooth losses by Newton's method, with sums over a tree.

    Needs the fewest sums of all solvers, for problems of up to 1000 coefficients. Every message
    must arrive. The losses have a `hessian` or a `curvature` method (see local/losses.py). For
    convex losses `report.bound` is certified: from the Hessian if the losses have
    `self_concordance`, else from alpha.

    Parameters
    ----------
    tolerance : float, default 1e-6
        For convex losses: largest relative distance to the minimum, and size of |grad F|. For
        others: size of |grad F| at which to stop.
    max_iterations : int, default 200
        Limit of evaluations, each of which is one sum over the tree.

    Examples
    --------
    >>> from peerlearn import Newton, SimulatedNetwork, graphs
    >>> from peerlearn.local.margin_losses import LogisticLosses
    >>> losses = LogisticLosses([[[0.0], [1.0]], [[2.0]], [[-1.0]]], [[-1, 1], [1], [-1]])
    >>> found = Newton().minimise(SimulatedNetwork(graphs.ring(3)), losses, alpha=1.0)
    >>> found.report.converged, found.report.bound <= 1e-6
    (True, True)
    """

    name: ClassVar = "newton"
    claim: ClassVar = HIDDEN_SUMS

    tolerance: float = 1e-6
    max_iterations: int = 200

    def __post_init__(self) -> None:
        check_limits(self.tolerance, self.max_iterations, "Newton")

    def minimise(
        self, network: Network, losses: Losses, alpha: float, start: Array | None = None
    ) -> Minimum:
        """Return a minimum of the losses of all agents and the penalty."""
        if not network.reliable:
            raise NetworkError(
                "Newton needs every message to arrive, and this network loses some: "
                "use solver='diffusion'"
            )
        if losses.dimension > LARGEST:
            raise InputError(
                f"Newton sums Hessians, which is for up to {LARGEST} coefficients, and there are "
                f"{losses.dimension}: use solver='lbfgs'"
            )
        loop = Iterations(
            network, "Newton", self.tolerance, self.max_iterations, measure="gradient"
        )
        w = check_start(network, losses, alpha, start)
        curved = alpha > 0 or isinstance(losses, SelfConcordantLosses)
        goal = Goal(loop, are_convex(losses), curved)
        search = _Search(losses, alpha, goal)
        if network.tree.root in network.hosted:
            search.steer(w[network.hosted.index(network.tree.root)])
        else:
            search.follow()
        loop.count = len(loop.residuals)  # an iteration is an evaluation
        return Minimum(search.w, goal.report(CHANGE, search.bound), apart=0.0)


@dataclass(frozen=True)
class _Point:
    """What the root knows at w. size: |g|. bound: see distance.py."""

    w: Array
    value: float
    g: Array
    D: Array
    V: Array
    size: float
    bound: float

    def direction(self, small: float) -> Array:
        """Return the step that Newton's method suggests. small: the size of a small gradient."""
        if self.size <= small and self.D[0] < -FLAT * abs(self.D[-1]):
            # A saddle: go along the eigenvector, as far as the curvature is not too different.
            away = self.V[:, 0] * max(1.0, float(np.linalg.norm(self.w)))
            return away if self.g @ away <= 0 else -away
        sizes = np.abs(self.D)
        least = max(FLAT * float(max(sizes[0], sizes[-1])), np.finfo(np.float64).tiny)
        step: Array = -self.V @ ((self.V.T @ self.g) / np.maximum(sizes, least))
        return step

    def has_saddle(self, small: float) -> bool:
        """Return whether the gradient is small where F bends downwards."""
        return self.size <= small and bool(self.D[0] < -FLAT * abs(self.D[-1]))


class _Search:
    """The hosted agents' view of the search: where it is, and the sizes of earlier gradients."""

    def __init__(self, losses: Losses, alpha: float, goal: Goal) -> None:
        self._loop = goal.loop
        self._network = self._loop.network
        self._losses = losses
        self._alpha = alpha
        self._goal = goal
        root = self._network.tree.root
        hosted = self._network.hosted
        self._leader = hosted.index(root) if root in hosted else None
        self.w = np.zeros((losses.agents, losses.dimension))
        self.bound = math.inf

    def steer(self, w: Array) -> None:
        """Search for a minimum, in the process of the root."""
        point = self._evaluate(w)
        if self._goal.starts_stationary and not self._is_exhausted():
            point = self._evaluate(step_off(w))
        while not self._is_over(point):
            found = self._look_along(point, point.direction(self._goal.size))
            if found is None:
                break
            point = found
        if self._loop.residuals[-1] != point.size:
            self._loop.record(point.size)  # the last point that was evaluated was not the best
        self.bound = point.bound
        self._broadcast(point.w, DONE)

    def follow(self) -> None:
        """Evaluate where the root looks, in all other processes."""
        while self._broadcast(None, ON) == ON:
            self._sum()
            if len(self._loop.residuals) > self._loop.max_iterations + 1:
                root = self._network.tree.root
                raise WireError(f"agent {root} does not end its search: {LIKELY_CAUSE}")

    def _is_over(self, point: _Point) -> bool:
        if self._is_exhausted():
            return True
        reached = self._goal.is_reached(point.size, point.bound)
        return reached and not point.has_saddle(self._goal.size)

    def _is_exhausted(self) -> bool:
        return len(self._loop.residuals) >= self._loop.max_iterations

    def _look_along(self, point: _Point, p: Array) -> _Point | None:
        """Return the first point along p that is enough of a progress, or None if there is none."""
        slope = float(point.g @ p)
        bend = min(float(p @ (point.V * point.D) @ (point.V.T @ p)), 0.0)
        noise = ROUNDING * abs(point.value)
        t = 1.0
        while t >= SHORTEST and not self._is_exhausted():
            found = self._evaluate(point.w + t * p)
            promised = t * slope + t**2 / 2 * bend
            if found.value <= point.value + ENOUGH * promised and promised < -noise:
                return found
            if abs(promised) <= noise:
                # Values no longer tell points apart: only the gradient does.
                return found if found.size < point.size else None
            t /= 2
        return None

    def _evaluate(self, w: Array) -> _Point:
        self._broadcast(w, ON)
        sums = self._sum()
        assert self._leader is not None
        d = self._losses.dimension
        own = sums[self._leader]
        g = own[:d] + self._alpha * w
        value, R2, error = own[d : d + 3].tolist()
        A = np.empty((d, d))
        upper = np.triu_indices(d)
        A[upper] = own[d + 3 :]
        A.T[upper] = own[d + 3 :]
        A[np.diag_indices(d)] += self._alpha
        D, V = np.linalg.eigh(A)
        size = float(np.linalg.norm(g))
        self._loop.record(size)
        length = float(np.linalg.norm(w))
        bound = math.inf
        if self._goal.certifies:
            # Sums and eigenvalues are rounded too.
            error += ROUNDING * self._alpha * length
            mu = float(D[0]) - 2 * ROUNDING * float(np.linalg.norm(D, 1))
            R = math.sqrt(R2) if isinstance(self._losses, SelfConcordantLosses) else math.inf
            bound = relative_bound(size + error, length, self._alpha, mu, R)
        value += self._alpha / 2 * length**2
        return _Point(w, value, g, D, V, size, bound)

    def _broadcast(self, w: Array | None, what: float) -> float:
        """Send w, and what belongs to it, down the tree."""
        d = self._losses.dimension
        rows = np.zeros((self._losses.agents, d + BESIDE_W))
        if w is not None and self._leader is not None:
            residuals = self._loop.residuals
            last = residuals[-1] if residuals else 0.0
            bound = min(self.bound, HUGE)  # infinite numbers are not sent
            rows[self._leader] = [*w, what, float(len(residuals)), last, bound]
        rows = broadcast_from_root(self._network, sendable(rows))
        self.w = rows[:, :d].copy()
        what, count, last, bound = rows[0, d:].tolist()  # the same at every agent
        self.bound = bound if bound < HUGE else math.inf
        if count > len(self._loop.residuals):
            self._loop.record(last)
        return what

    def _sum(self) -> Array:
        """Sum what agents know at w up the tree: only the root's row is complete."""
        losses = self._losses
        d = losses.dimension
        # Hessians first: some losses compute values and gradients on the way.
        curved = hessians(losses, self.w)
        slopes = slopes_and_values(self._network, losses, self.w)
        R = np.full(losses.agents, np.sqrt(largest_sent(self._network)))
        if isinstance(losses, SelfConcordantLosses):
            R = losses.self_concordance()
        errors = gradient_errors(losses, self.w, slopes[:, :d])
        rows, columns = np.triu_indices(d)
        upper = curved[:, rows, columns]
        # The largest R of all is at most the root of the sum of squares.
        both = np.column_stack([slopes, R**2, errors, upper])
        both = sendable(both, largest_sent(self._network))
        sums: Array = sum_to_root(self._network, both, "values, gradients and Hessians of losses")
        return sums
