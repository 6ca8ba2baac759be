"""Newton's method over a tree: the root solves, and all agents evaluate where it looks.

    w                                            down the tree: where to look next
    h_k(w), grad h_k(w), Hessian of h_k at w     alone
    F(w), g = grad F(w), A = Hessian of F        up the tree: sums of 1 + d + d (d + 1) / 2 numbers
    p = -V |D|^-1 V' g,   A = V D V'             alone, at the root
    w <- w + t p,   t = 1, 1/2, 1/4, ..          the first that lowers F enough

If losses have so many rows that they offer a sample of them, A takes longer than g, and is not
always exact: it comes from the sample as long as the gradient is large, and from an earlier w if
it hardly changes from there. Then only F and g are summed. A step by such an A that does not lower
F enough is taken back, and A is exact from then on. The last step needs no evaluation if its end is
certified before (distance.py).

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
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from peerlearn.algorithms.certificate import relative_bound
from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.smooth.distance import Goal, hessian_change
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
    SampledLosses,
    SelfConcordantLosses,
    are_convex,
    gradient_errors,
    hessians,
)
from peerlearn.network.base import Network
from peerlearn.secret.statement import HIDDEN_SUMS

__all__ = ["Newton"]

LARGEST = 1000  # columns: one Hessian is then 4 MB on every link
# What travels with w: evaluate there with the exact Hessian, that of a sample, or none; or the end.
ON = 0.0
DONE = 1.0
ROUGHLY = 2.0
SLOPES = 3.0
BESIDE_W = 4  # numbers: one of these, how many gradients were summed, the last size, the bound
SMALL = 0.005  # times the first gradient: from here on the exact Hessian is worth its time
SIMILAR = 0.05  # by how much, at most, a step by an earlier Hessian misses, relative to its length
POWER = 8  # of R_k that is summed: the root of the sum is little more than the largest R_k
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
        For convex losses: largest relative distance to the minimum, and size of |grad F| unless
        the last step is certified before it is taken; the last residual is a bound then. For
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
    """What the root knows at w.

    size: |g|. error: of its rounding. A = V D V', of a sample if mu is 0, or of a w at distance
    `moved`. mu, R, bound: as in distance.py.
    """

    w: Array
    value: float
    g: Array
    D: Array
    V: Array
    size: float
    error: float
    mu: float
    R: float
    bound: float
    moved: float
    what: float

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

    def after(self, p: Array, alpha: float) -> _Point:
        """Return the point w + p with bounds of size and distance, without an evaluation there."""
        w = self.w + p
        turned = self.V.T @ p
        left = float(np.linalg.norm(self.g + self.V @ (self.D * turned)))
        energy = float(self.D @ turned**2)
        length = float(np.linalg.norm(w))
        step = float(np.linalg.norm(p))
        largest = float(self.D[-1])
        # The Hessian is rounded, and w + p too.
        error = self.error + 2 * ROUNDING * step * float(np.linalg.norm(self.D, 1))
        error += ROUNDING * largest * length
        change = hessian_change(self.R * self.moved, self.R * step)
        size = left + error + math.sqrt(largest * max(energy, 0.0)) * change
        mu = self.mu * math.exp(-self.R * (self.moved + step))
        return replace(self, w=w, size=size, bound=relative_bound(size, length, alpha, mu, self.R))

    def stays_similar(self, p: Array) -> bool:
        """Return whether A is certain to be good enough for a step from w + p, too."""
        if not self.mu > 0:
            return False
        change = hessian_change(self.R * (self.moved + float(np.linalg.norm(p))), 0.0)
        return change * math.sqrt(float(self.D[-1]) / self.mu) <= SIMILAR

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
        self._sample = losses.sample() if isinstance(losses, SampledLosses) else None
        self._saves_time = self._sample is not None
        self._last_exact: _Point | None = None
        root = self._network.tree.root
        hosted = self._network.hosted
        self._leader = hosted.index(root) if root in hosted else None
        self.w = np.zeros((losses.agents, losses.dimension))
        self.bound = math.inf

    def steer(self, w: Array) -> None:
        """Search for a minimum, in the process of the root."""
        point = self._evaluate(w, ROUGHLY if self._saves_time else ON)
        if self._goal.starts_stationary and not self._is_exhausted():
            point = self._evaluate(step_off(w), ON)
        while not self._is_reached(point):
            p = point.direction(self._goal.size)
            end = self._foresee(point, p)
            if end is not None:
                point = end
                break
            found = self._look_along(point, p)
            if found is None:
                break
            point = found
        self._loop.residuals[-1] = point.size  # the answer may be another point than the last one
        self.bound = point.bound
        self._broadcast(point.w, DONE)

    def follow(self) -> None:
        """Evaluate where the root looks, in all other processes."""
        what = self._broadcast(None, ON)
        while what != DONE:
            self._sum(what)
            if len(self._loop.residuals) > self._loop.max_iterations + 1:
                root = self._network.tree.root
                raise WireError(f"agent {root} does not end its search: {LIKELY_CAUSE}")
            what = self._broadcast(None, ON)

    def _is_reached(self, point: _Point) -> bool:
        reached = self._goal.is_reached(point.size, point.bound)
        return reached and not point.has_saddle(self._goal.size)

    def _is_exhausted(self) -> bool:
        return len(self._loop.residuals) >= self._loop.max_iterations

    def _foresee(self, point: _Point, p: Array) -> _Point | None:
        """Return the point after a step, if its certified distance is within tolerance."""
        if not self._goal.certifies or not point.mu > 0:
            return None
        end = point.after(p, self._alpha)
        return end if end.bound <= self._loop.tolerance else None

    def _look_along(self, point: _Point, p: Array) -> _Point | None:
        """Return the first point along p that is enough of a progress, or None if there is none."""
        slope = float(point.g @ p)
        bend = min(float(p @ (point.V * point.D) @ (point.V.T @ p)), 0.0)
        noise = ROUNDING * abs(point.value)
        what = self._choose(point, p)
        t = 1.0
        while t >= SHORTEST and not self._is_exhausted():
            found = self._evaluate(point.w + t * p, what)
            promised = t * slope + t**2 / 2 * bend
            if found.value <= point.value + ENOUGH * promised and promised < -noise:
                return found
            # Values that are too near to each other do not tell points apart: only gradients do.
            if abs(promised) <= noise and found.size < point.size:
                return found
            if point.what != ON:
                self._saves_time = False
                return None if self._is_exhausted() else self._evaluate(point.w, ON)
            if abs(promised) <= noise:
                return None
            t /= 2
        return None

    def _choose(self, point: _Point, p: Array) -> float:
        """Return which Hessian to sum after a step."""
        if not self._saves_time:
            return ON
        is_large = point.size > max(SMALL * self._loop.residuals[0], self._goal.size)
        if point.what == ROUGHLY and is_large:
            return ROUGHLY
        return SLOPES if point.stays_similar(p) else ON

    def _evaluate(self, w: Array, what: float) -> _Point:
        self._broadcast(w, what)
        sums = self._sum(what)
        assert self._leader is not None
        d = self._losses.dimension
        own = sums[self._leader]
        g = own[:d] + self._alpha * w
        value, powers, error = own[d : d + 3].tolist()
        size = float(np.linalg.norm(g))
        self._loop.record(size)
        length = float(np.linalg.norm(w))
        R = powers ** (1 / POWER) if powers < largest_sent(self._network) else math.inf
        error += ROUNDING * self._alpha * length
        value += self._alpha / 2 * length**2
        earlier = self._last_exact
        if what == SLOPES and earlier is not None:
            moved = float(np.linalg.norm(w - earlier.w))
            D, V, mu = earlier.D, earlier.V, earlier.mu
        else:
            moved = 0.0
            D, V = np.linalg.eigh(self._hessian(own[d + 3 :]))
            # Sums and eigenvalues are rounded too.
            exact = float(D[0]) - 2 * ROUNDING * float(np.linalg.norm(D, 1))
            mu = exact if what == ON else 0.0
        bound = math.inf
        if self._goal.certifies:
            least = mu * math.exp(-R * moved) if moved > 0 else mu
            bound = relative_bound(size + error, length, self._alpha, least, R)
        point = _Point(w, value, g, D, V, size, error, mu, R, bound, moved, what)
        if what == ON:
            self._last_exact = point
        return point

    def _hessian(self, triangle: Array) -> Array:
        d = self._losses.dimension
        A = np.empty((d, d))
        upper = np.triu_indices(d)
        A[upper] = triangle
        A.T[upper] = triangle
        A[np.diag_indices(d)] += self._alpha
        return A

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

    def _sum(self, what: float) -> Array:
        """Sum what agents know at w up the tree: only the root's row is complete."""
        losses = self._losses
        d = losses.dimension
        upper = np.zeros((losses.agents, 0))
        if what != SLOPES:
            # Hessians first: some losses compute values and gradients on the way.
            sample = self._sample if what == ROUGHLY else None
            rows, columns = np.triu_indices(d)
            upper = hessians(sample or losses, self.w)[:, rows, columns]
        slopes = slopes_and_values(self._network, losses, self.w)
        R = np.full(losses.agents, HUGE)
        if isinstance(losses, SelfConcordantLosses):
            R = losses.self_concordance()
        with np.errstate(over="ignore"):
            powers = R**POWER
        errors = gradient_errors(losses, self.w, slopes[:, :d])
        both = sendable(
            np.column_stack([slopes, powers, errors, upper]), largest_sent(self._network)
        )
        sums: Array = sum_to_root(self._network, both, "values, gradients and Hessians of losses")
        return sums
