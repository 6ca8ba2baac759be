"""Conjugate gradients for a matrix that no agent has.

Only products with the matrix are known, and these are summed over the network.

    A b = c,   A symmetric and positive definite        M columns, each on its own

    q = A d                                          over the network: the only sum of an iteration
    s = (r'd) / (d'q);  b <- b + s d;  r <- r - s q  alone: every agent holds the same b, r, d
    z = P r                                          alone; P: the preconditioner
    d <- z - sum (z'q) / (d'q) d                     alone; the sum is over all d so far

Hestenes and Stiefel, Methods of conjugate gradients for solving linear systems, 1952; s and the
step for d are written as in Notay, Flexible conjugate gradients, 2000, which tolerates small errors
in sums and preconditioner. In theory the last d is enough. With condition numbers of 1e8 and agents
that differ it is not: 50 iterations become 400 and more. Each iteration costs a message, while
memory costs none.

Theory of operation. Every agent must hold the same copies of b, r and d: where the agents' data
differ, copies that differ a little are driven apart. A tree gives sums with the same bits to all;
after a gossiped sum all agents take the copy of one agent. The bound e on the distance travels with
the next sum, so that all agents stop in the same iteration.

A gossiped sum has an error. It may be larger as r gets smaller (Simoncini and Szyld, Theory of
inexact Krylov subspace methods, 2003). When the bound says that the answer is close enough, the
agents compute the true residual from b. If that is not small enough, they go on from there with
more exact sums.

Over a tree r is as good as its rounding errors, which are bounded. Where they may be too large, the
true residual is computed as well, and the iteration goes on from there if that can help.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.certificate import GRADIENT_TOLERANCE, most_exact, receive_bound
from peerlearn.algorithms.iteration import Certificate, Iterations, Report
from peerlearn.algorithms.sums import maximum, sum_alike
from peerlearn.arrays import Array, norms, sendable
from peerlearn.local.least_squares import PerAgent
from peerlearn.network.base import Network

# Sums are this much more exact than the answer: with less, restarts cost more than they save.
MARGIN = 20
MOST_EXACT = 1e-14
ROUGH = 1e-2  # relative accuracy of sums that only guide the iteration
EXACT_GOAL = 0.999  # part of the tolerance, for what the last step and its rounding add
NOISE = 1.1  # factor by which inexact sums may change a residual
# Numbers of past directions, and as many of their products: 80 MB each, in one copy.
KEPT = 10_000_000
STUCK_AFTER = 50  # iterations without a new best distance, where sums are inexact


class System(Protocol):
    """The system A b = c as the network knows it.

    Arrays have a leading axis: the agents hosted here, each with its copy.
    """

    def right_side(self, averaging: Averaging) -> Array:
        """Return c."""
        ...

    def product(self, d: Array, extra: Array, averaging: Averaging) -> tuple[Array, float]:
        """Return A d, and the average of one extra number of each agent.

        The extra numbers travel in the same messages; their average has the same bits everywhere.
        """
        ...

    def distance(self, b: Array, r: Array, z: Array) -> Array:
        """Return a bound on how far each agent's b is from the answer, relative to its size.

        It trusts r. It does not cover rounding, nor errors of sums.
        """
        ...

    def check(self, b: Array, averaging: Averaging) -> Check:
        """Return c - A b, newly summed, and what it certifies."""
        ...

    def drift(self, path: Path, b: Array) -> Array:
        """Return what rounding on the path may add to the distance, at each agent.

        It is relative to the size of b. Sums are exact up to rounding.
        """
        ...

    def certify(self, end: End) -> Certificate:
        """Return the certificate of the end of an iteration whose sums were exact."""
        ...


@dataclass(frozen=True)
class Check:
    """A residual r = c - A b that was newly summed.

    certificates: of each hosted agent's b. floor: the part of the first bound that comes from
    errors of r; more iterations do not make it smaller.
    """

    r: Array
    certificates: list[Certificate]
    floor: float


@dataclass(frozen=True)
class Path:
    """How far an iteration has gone, at each agent.

    travelled: the sum of all |s d|. rounded: the sum of the sizes of all r and s q, of which each
    has its rounding error.
    """

    travelled: Array
    rounded: Array
    steps: int = 0

    def plus(self, step: Array, r_after: Array, change: Array) -> Path:
        """Return the path after one more step, which changed r by `change`."""
        travelled = self.travelled + norms(step)
        rounded = self.rounded + norms(r_after) + norms(change)
        return Path(travelled, rounded, self.steps + 1)


@dataclass(frozen=True)
class End:
    """The end of an iteration.

    b = b_before + s d is the answer, r and z belong to b_before, z is None if it is not P r, and
    r_after belongs to b, according to the recurrence.
    """

    b: Array
    r: Array
    z: Array | None
    r_after: Array
    path: Path


@dataclass(frozen=True)
class Krylov:
    """The iteration on the copies of all hosted agents."""

    system: System
    precondition: PerAgent
    averaging: Averaging
    loop: Iterations

    def solve(self, first: Array | None = None) -> tuple[Array, Certificate]:
        """Return b and its certificate. The loop has the distance after each iteration.

        first: a direction to begin with instead of P c.
        """
        loop = self.loop
        network = loop.network
        averaging = self.averaging
        r = self.system.right_side(averaging)
        b = np.zeros_like(r)
        if averaging.exact_on(network):
            return self._solve_by_tree(b, r, first)
        while True:
            b = self._descend(b, r, first, averaging).b
            exact = most_exact(network, averaging, GRADIENT_TOLERANCE)
            check = self.system.check(b, exact)
            r = check.r
            first = None
            certificate = _agree(network, check.certificates)
            loop.correct(certificate.bound)
            tighter = replace(averaging, tolerance=max(averaging.tolerance / MARGIN, MOST_EXACT))
            hopeless = averaging.tolerance <= MOST_EXACT or not tighter.suffices_on(network)
            if loop.converged or loop.exhausted or hopeless or not np.isfinite(norms(b)[0]):
                return b, certificate
            averaging = tighter

    def _solve_by_tree(self, b: Array, r: Array, first: Array | None) -> tuple[Array, Certificate]:
        """Return b and its certificate; all agents have the same bits of everything."""
        loop = self.loop
        best = Certificate(np.inf)
        while True:
            end = self._descend(b, r, first, self.averaging)
            certificate = self.system.certify(end)
            close = loop.residuals[-1] <= loop.tolerance
            if certificate.bound <= loop.tolerance or loop.exhausted or not close:
                return end.b, certificate
            # The recurrence is close enough, but nobody knows how far it drifted.
            check = self.system.check(end.b, self.averaging)
            found = min(certificate, check.certificates[0], key=lambda each: each.bound)
            loop.correct(found.bound)
            hopeless = check.floor > loop.tolerance / 2 or found.bound > best.bound / 2
            if loop.converged or hopeless:
                return end.b, found
            best = found
            b = end.b
            r = check.r
            first = None

    def report(
        self, note: str, change: str, certificate: Certificate, *, warn: bool = True
    ) -> Report:
        """Return the report of the loop. change: what to change if it did not converge."""
        note = f"{note}sums by {self.averaging.method_on(self.loop.network)}"
        return self.loop.report(change, note, warn=warn, certificate=certificate)

    def _descend(self, b: Array, r: Array, first: Array | None, averaging: Averaging) -> End:
        """Go from b and its residual r to within tolerance, according to the recurrence for r."""
        loop = self.loop
        start = len(loop.residuals)
        if first is None:
            z = d = self.precondition(r)
        else:
            d = first
            z = r  # at b = 0 a distance is 1, or 0 if r is 0, whatever z is
        enough = averaging
        exact = averaging.exact_on(loop.network)
        past = _Directions(d[0].shape)
        goal = loop.tolerance * EXACT_GOAL if exact else loop.tolerance / NOISE**2
        path = Path(np.zeros(len(b)), norms(r))
        known = z if first is None else None
        for _ in loop:
            distance = self.system.distance(b, r, z)
            if exact and path.steps:
                drift = self.system.drift(path, b)
                # Where rounding may be too much, the true residual is looked at in the end. Its own
                # error may be half of the tolerance.
                bounded = drift < 0.9 * loop.tolerance
                distance = distance + np.where(bounded, drift, loop.tolerance / 2)
            q, e = self.system.product(d, distance, enough)
            loop.record(e)
            residuals = loop.residuals[start:]
            stuck = min(residuals) < min(residuals[-STUCK_AFTER:]) and not exact
            if not np.isfinite(e) or stuck:
                break
            s = _ratio(_dot(r, d), _dot(d, q))
            r_after = r - s * q
            path = path.plus(s * d, r_after, s * q)
            if e <= goal or loop.exhausted:
                # q is known already, so one more step costs nothing.
                return End(b + s * d, r, known, r_after, path)
            gained = max(min(residuals[0], 1.0) / e, 1.0)
            enough = replace(averaging, tolerance=min(averaging.tolerance * gained, ROUGH))
            b, r, z, d = self._step(b, r, d, q, past)
            known = z
        return End(b, r, known, r, path)

    def _step(
        self, b: Array, r: Array, d: Array, q: Array, past: _Directions
    ) -> tuple[Array, Array, Array, Array]:
        """Compute one iteration of every column at every agent, without messages."""
        curvature = _dot(d, q)
        s = _ratio(_dot(r, d), curvature)
        b = b + s * d
        r = r - s * q
        z = self.precondition(r)
        past.add(d[0], q[0], curvature[0])
        d = np.repeat(past.conjugate(z[0])[None], len(z), axis=0)
        return b, r, z, d


def _agree(network: Network, certificates: list[Certificate]) -> Certificate:
    """Return the certificate with the largest bound of all agents, with the same bits for all."""
    own = sendable(np.array([certificate.bound for certificate in certificates]))
    return receive_bound(float(maximum(network, own)[0]), certificates[0].reason)


class _Directions:
    """The last directions d with q = A d and d'q, as many as KEPT allows.

    There is one copy, because all agents have the same. B directions span everything, and what is
    then left of z is rounding: after B directions all are dropped.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._all = shape[0]
        self._most = max(1, KEPT // max(int(np.prod(shape)), 1))
        self._count = 0
        self._d = self._q = self._curvature = np.empty((0, 0, 0))

    def add(self, d: Array, q: Array, curvature: Array) -> None:
        """Keep a direction, in place of the oldest one if there is no room."""
        room = len(self._d)
        if self._count >= room and room < self._most:
            more = min(max(2 * room, 8), self._most)
            self._d = _grow(self._d, d, room, more)
            self._q = _grow(self._q, q, room, more)
            self._curvature = _grow(self._curvature, curvature, room, more)
        place = self._count % self._most  # in place of the oldest
        self._d[place] = d
        self._q[place] = q
        self._curvature[place] = curvature
        self._count = self._count + 1 if self._count + 1 < self._all else 0

    def conjugate(self, z: Array) -> Array:
        """Return z without its part in the past directions, in the geometry of A."""
        held = min(self._count, self._most)
        d = self._d[:held]
        q = self._q[:held]
        curvature = self._curvature[:held]
        # Twice: what rounding leaves after the first time is small only relative to z.
        for _ in range(2):
            weights = _ratio(_dot(q, z[None]), curvature)
            z = z - np.add.reduce(weights * d, axis=0)
        return z


def _grow(old: Array, new: Array, room: int, more: int) -> Array:
    """Return the first `room` entries of `old`, with room for `more` entries like `new`."""
    entries = old.reshape(-1, *new.shape)[:room]
    return np.concatenate([entries, np.empty((more - room, *new.shape))])


def sum_with_extra(
    network: Network, x: Array, extra: Array, averaging: Averaging
) -> tuple[Array, list[float]]:
    """Return the sum of x, and the averages of extra numbers, hosted agents x numbers.

    Both travel in the same messages.
    """
    rows = np.column_stack([x.reshape(len(x), -1), extra])
    sums = sum_alike(network, rows, averaging)
    numbers = x[0].size
    averages: list[float] = (sums[0, numbers:] / network.size).tolist()
    return sums[:, :numbers].reshape(x.shape), averages


def relative(distance: Array, size: Array) -> Array:
    """Return distance / size, or 1 where the size is still zero and the distance is not."""
    nothing = size == 0
    without_size = np.where(distance == 0, 0.0, 1.0)
    ratio = distance / np.where(nothing, 1.0, size)
    return np.where(nothing, without_size, ratio)


def _dot(x: Array, y: Array) -> Array:
    """Return the products of columns at each agent: agents x 1 x M."""
    products: Array = np.add.reduce(x * y, axis=1, keepdims=True)
    return products


def _ratio(x: Array, y: Array) -> Array:
    """Return x / y, and 0 for columns that are solved already."""
    return np.divide(x, y, out=np.zeros_like(x), where=y > 0)
