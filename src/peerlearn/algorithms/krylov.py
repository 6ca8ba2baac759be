"""Conjugate gradients for a matrix that no agent has: only products with it, summed over the network, are known.

    A b = c,   A symmetric and positive definite        M columns, each on its own

    q = A d                                          over the network: the only message of an iteration
    s = (r'd) / (d'q);  b <- b + s d;  r <- r - s q  alone: every agent holds the same b, r, d
    z = P r;  d <- z - (z'q) / (d'q) d               alone (P: the preconditioner)

Hestenes and Stiefel, Methods of conjugate gradients for solving linear systems, 1952; s and the step for d are written
as in Notay, Flexible conjugate gradients, 2000, which forgives small errors in sums and preconditioner.

Every agent must hold the same copies of b, r and d: where data differ between agents, copies that differ a little are
driven apart. A tree gives sums with the same bits to all; after a gossiped sum all follow the copy of one agent. The
bound e on the distance rides in the next sum, so that all stop in the same iteration.

A gossiped sum has an error. It may be larger as r gets smaller (Simoncini and Szyld, Theory of inexact Krylov
subspace methods, 2003). When the agents believe to be done they compute the true residual from b, and if that is not
small enough go on from there with more exact sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from peerlearn.algorithms.consensus import Averaging, maximum, summed
from peerlearn.algorithms.solution import Report, warn_not_converged
from peerlearn.arrays import Array
from peerlearn.local.least_squares import PerAgent
from peerlearn.network.base import Counts, Network

MARGIN = 20  # sums are so much more exact than the answer asked for: with less, restarts cost more than they save
MOST_EXACT = 1e-14
ROUGH = 1e-2  # relative accuracy of sums that only guide the iteration
NOISE = 1.1  # what inexact sums may make of a residual
STUCK_AFTER = 50  # iterations without a new best distance, where sums are inexact


class System(Protocol):
    """A b = c as the network knows it. Arrays have a leading axis: the agents hosted here, each with its copy."""

    def right_side(self, averaging: Averaging) -> Array:
        """c"""
        ...

    def product(self, d: Array, riding: Array, averaging: Averaging) -> tuple[Array, float]:
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

    network: Network
    system: System
    precondition: PerAgent
    averaging: Averaging
    tolerance: float

    def solve(self, max_iterations: int) -> tuple[Array, list[float]]:
        """b, and the bound on its distance after each iteration."""
        averaging, exact = self.averaging, self.averaging.exact_on(self.network)
        r = self.system.right_side(averaging)
        b = np.zeros_like(r)
        residuals: list[float] = []
        while True:
            b = self._descend(b, r, averaging, max_iterations, residuals)
            if exact or len(residuals) >= max_iterations:
                return b, residuals
            r = self.system.residual(b, averaging)
            e = self.system.distance(b, r, self.precondition(r))
            worst = float(maximum(self.network, e)[0])  # of the true residual, which is summed inexactly too
            residuals[-1] = NOISE * worst + self.system.uncertainty(averaging)
            hopeless = not np.isfinite(residuals[-1]) or averaging.tolerance <= MOST_EXACT
            if residuals[-1] <= self.tolerance or hopeless:
                return b, residuals
            averaging = replace(averaging, tolerance=max(averaging.tolerance / MARGIN, MOST_EXACT))

    def report(self, solver: str, residuals: list[float], mark: Counts, note: str, change: str) -> Report:
        """How it went; `change` is what to change if it did not go far enough."""
        converged = residuals[-1] <= self.tolerance and self.averaging.suffices_on(self.network)
        if not converged:
            warn_not_converged(solver, len(residuals), residuals[-1], self.tolerance, change)
        note, sent = f"{note}sums by {self.averaging.method_on(self.network)}", self.network.ledger.since(mark)
        return Report(solver, converged, len(residuals), tuple(residuals), sent, note)

    def _descend(self, b: Array, r: Array, averaging: Averaging, max_iterations: int, residuals: list[float]) -> Array:
        """From b and its residual r to within tolerance, as far as the recurrence for r can tell."""
        z = self.precondition(r)
        d, enough, start = z, averaging, len(residuals)
        exact = averaging.exact_on(self.network)
        goal = self.tolerance if exact else self.tolerance / NOISE**2
        while True:
            q, e = self.system.product(d, self.system.distance(b, r, z), enough)
            residuals.append(e)
            self.network.residual = e
            stuck = min(residuals[start:]) < min(residuals[start:][-STUCK_AFTER:]) and not exact
            if e <= goal or not np.isfinite(e) or stuck or len(residuals) >= max_iterations:
                return b
            gained = max(min(residuals[start], 1.0) / e, 1.0)
            enough = replace(averaging, tolerance=min(averaging.tolerance * gained, ROUGH))
            b, r, z, d = self._step(b, r, d, q)

    def _step(self, b: Array, r: Array, d: Array, q: Array) -> tuple[Array, Array, Array, Array]:
        """One iteration of every column at every agent, all alone."""
        curvature = _dot(d, q)
        s = _ratio(_dot(r, d), curvature)
        b, r = b + s * d, r - s * q
        z = self.precondition(r)
        return b, r, z, z - _ratio(_dot(z, q), curvature) * d  # A-orthogonal to the last d, also if P is not exact


def summed_with(network: Network, x: Array, riding: Array, averaging: Averaging) -> tuple[Array, float]:
    """The sum of x, and the average of one number of each agent that rides along in the same messages."""
    sums = summed(network, np.column_stack([x.reshape(len(x), -1), riding]), averaging)
    return sums[:, :-1].reshape(x.shape), float(sums[0, -1]) / network.size


def relative(distance: Array, size: Array) -> Array:
    """distance / size; 1 where the size is still zero and the distance is not."""
    nothing = size == 0
    return np.where(nothing, np.where(distance == 0, 0.0, 1.0), distance / np.where(nothing, 1.0, size))


def _dot(x: Array, y: Array) -> Array:
    """Column by column at each agent: agents x 1 x M."""
    products: Array = np.add.reduce(x * y, axis=1, keepdims=True)
    return products


def _ratio(x: Array, y: Array) -> Array:
    """x / y, and 0 for columns that are solved already."""
    return np.divide(x, y, out=np.zeros_like(x), where=y > 0)
