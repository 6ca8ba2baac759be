"""Conjugate gradients for a matrix that no agent has: only products with it, summed over the network, are known.

    A b = c,   A symmetric and positive definite        M columns, each on its own

    q = A d                                          over the network: the only message of an iteration
    s = (r'd) / (d'q);  b <- b + s d;  r <- r - s q  alone: every agent holds the same b, r, d
    z = P r;  d <- z - sum (z'q) / (d'q) d           alone (P: the preconditioner; the sum: over all d so far)

Hestenes and Stiefel, Methods of conjugate gradients for solving linear systems, 1952; s and the
step for d are written as in Notay, Flexible conjugate gradients, 2000, which forgives small errors
in sums and preconditioner. In theory the last d would do. With condition numbers of 1e8 and agents
that differ it does not: 50 iterations become 400 and more, and each costs a message, while memory
costs none.

Every agent must hold the same copies of b, r and d: where data differ between agents, copies that
differ a little are
driven apart. A tree gives sums with the same bits to all; after a gossiped sum all follow the copy
of one agent. The bound e on the distance rides in the next sum, so that all stop in the same
iteration.

A gossiped sum has an error. It may be larger as r gets smaller (Simoncini and Szyld, Theory of
inexact Krylov subspace methods, 2003). When the agents believe to be done they compute the true
residual from b, and if that is not small enough go on from there with more exact sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.flooding import maximum
from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.report import Report
from peerlearn.algorithms.sums import sum_alike
from peerlearn.arrays import Array
from peerlearn.local.least_squares import PerAgent
from peerlearn.network.base import Network

MARGIN = 20  # sums are so much more exact than the answer asked for: with less, restarts cost more than they save
MOST_EXACT = 1e-14
ROUGH = 1e-2  # relative accuracy of sums that only guide the iteration
NOISE = 1.1  # what inexact sums may make of a residual
KEPT = (
    10_000_000  # numbers of past directions, and as many of their products: 80 MB each, in one copy
)
STUCK_AFTER = 50  # iterations without a new best distance, where sums are inexact


class System(Protocol):
    """A b = c as the network knows it. Arrays have a leading axis: the agents hosted here, each with its copy."""

    def right_side(self, averaging: Averaging) -> Array:
        """c"""
        ...

    def product(self, d: Array, extra: Array, averaging: Averaging) -> tuple[Array, float]:
        """A d; and the average of one number of each agent that rides along, with the same bits at every agent."""
        ...

    def residual(self, b: Array, averaging: Averaging) -> Array:
        """c - A b"""
        ...

    def distance(self, b: Array, r: Array, z: Array) -> Array:
        """A bound on how far each agent's b is from the answer, relative to its size."""
        ...

    def uncertainty(self, averaging: Averaging) -> float:
        """What the errors of inexact sums may add to that distance, as far as more than NOISE is known of it."""
        ...


@dataclass(frozen=True)
class Krylov:
    """The iteration on the copies of all hosted agents."""

    system: System
    precondition: PerAgent
    averaging: Averaging
    loop: Iterations

    def solve(self, first: Array | None = None) -> Array:
        """Return b; the loop has the bound on its distance after each iteration.

        first: a direction to begin with in place of P c.
        """
        network, loop, averaging = self.loop.network, self.loop, self.averaging
        r = self.system.right_side(averaging)
        b = np.zeros_like(r)
        while True:
            b = self._descend(b, r, first, averaging)
            if averaging.exact_on(network) or loop.exhausted:
                return b
            r, first = self.system.residual(b, averaging), None
            e = self.system.distance(b, r, self.precondition(r))
            worst = float(
                maximum(network, e)[0]
            )  # of the true residual, which is summed inexactly too
            loop.correct(NOISE * worst + self.system.uncertainty(averaging))
            hopeless = not np.isfinite(loop.residuals[-1]) or averaging.tolerance <= MOST_EXACT
            if loop.converged or hopeless:
                return b
            averaging = replace(averaging, tolerance=max(averaging.tolerance / MARGIN, MOST_EXACT))

    def report(self, note: str, change: str, *, warn: bool = True) -> Report:
        """Return how it went. change: what to change if it did not go far enough."""
        network = self.loop.network
        note = f"{note}sums by {self.averaging.method_on(network)}"
        return self.loop.report(
            change, note, certain=self.averaging.suffices_on(network), warn=warn
        )

    def _descend(self, b: Array, r: Array, first: Array | None, averaging: Averaging) -> Array:
        """Go from b and its residual r to within tolerance, as far as the recurrence for r can tell."""
        loop, tolerance, start = self.loop, self.loop.tolerance, len(self.loop.residuals)
        z = (
            self.precondition(r) if first is None else r
        )  # at b = 0 a distance is 1, or 0 where r is
        d, enough = z if first is None else first, averaging
        exact, past = averaging.exact_on(loop.network), _Directions(d[0].shape)
        goal = tolerance if exact else tolerance / NOISE**2
        for _ in loop:
            q, e = self.system.product(d, self.system.distance(b, r, z), enough)
            loop.record(e)
            residuals = loop.residuals[start:]
            stuck = min(residuals) < min(residuals[-STUCK_AFTER:]) and not exact
            if not np.isfinite(e) or stuck:
                break
            if e <= goal or loop.exhausted:
                return (
                    b + _ratio(_dot(r, d), _dot(d, q)) * d
                )  # q is there already: one more step costs nothing
            gained = max(min(residuals[0], 1.0) / e, 1.0)
            enough = replace(averaging, tolerance=min(averaging.tolerance * gained, ROUGH))
            b, r, z, d = self._step(b, r, d, q, past)
        return b

    def _step(
        self, b: Array, r: Array, d: Array, q: Array, past: _Directions
    ) -> tuple[Array, Array, Array, Array]:
        """One iteration of every column at every agent, all alone."""
        curvature = _dot(d, q)
        s = _ratio(_dot(r, d), curvature)
        b, r = b + s * d, r - s * q
        z = self.precondition(r)
        past.add(d[0], q[0], curvature[0])
        return b, r, z, np.repeat(past.conjugate(z[0])[None], len(z), axis=0)


class _Directions:
    """The last directions d with q = A d and d'q, as many as KEPT allows. One copy: all agents have the same.

    After B of them there are no more, and what is left of z is rounding: then they are forgotten.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._all, self._most = shape[0], max(1, KEPT // max(int(np.prod(shape)), 1))
        self._count = 0
        self._d = self._q = self._curvature = np.empty((0, 0, 0))

    def add(self, d: Array, q: Array, curvature: Array) -> None:
        room = len(self._d)
        if self._count >= room and room < self._most:
            more = min(max(2 * room, 8), self._most)
            self._d, self._q, self._curvature = (
                np.concatenate(
                    [old.reshape(-1, *new.shape)[:room], np.empty((more - room, *new.shape))]
                )
                for old, new in ((self._d, d), (self._q, q), (self._curvature, curvature))
            )
        place = self._count % self._most  # in place of the oldest
        self._d[place], self._q[place], self._curvature[place] = d, q, curvature
        self._count = self._count + 1 if self._count + 1 < self._all else 0

    def conjugate(self, z: Array) -> Array:
        """z without its part in the past directions, in the geometry of A."""
        held = min(self._count, self._most)
        d, q, curvature = self._d[:held], self._q[:held], self._curvature[:held]
        for _ in range(2):  # what rounding leaves after the first time is small only against z
            z = z - np.add.reduce(_ratio(_dot(q, z[None]), curvature) * d, axis=0)
        return z


def sum_with_extra(
    network: Network, x: Array, extra: Array, averaging: Averaging
) -> tuple[Array, float]:
    """The sum of x, and the average of one number of each agent that rides along in the same messages."""
    sums = sum_alike(network, np.column_stack([x.reshape(len(x), -1), extra]), averaging)
    return sums[:, :-1].reshape(x.shape), float(sums[0, -1]) / network.size


def relative(distance: Array, size: Array) -> Array:
    """distance / size; 1 where the size is still zero and the distance is not."""
    nothing = size == 0
    return np.where(
        nothing, np.where(distance == 0, 0.0, 1.0), distance / np.where(nothing, 1.0, size)
    )


def _dot(x: Array, y: Array) -> Array:
    """Column by column at each agent: agents x 1 x M."""
    products: Array = np.add.reduce(x * y, axis=1, keepdims=True)
    return products


def _ratio(x: Array, y: Array) -> Array:
    """x / y, and 0 for columns that are solved already."""
    return np.divide(x, y, out=np.zeros_like(x), where=y > 0)
