"""Conjugate gradients on the dual problem: one sum of N x M numbers per iteration.

    (sum_k H_k H_k' + alpha I) a = Y,      b_k = H_k'a             a: N x M, a copy at every agent

    q = sum_k H_k H_k'd + alpha d                    over the network
    the rest of an iteration                         alone, on copies of a, r and d: see krylov.py
    b_k = H_k'a                                      alone, in the end

Saunders, Gammerman and Vovk, Ridge regression learning algorithm in dual variables, 1998. With
columns, every agent adds its own part to the kernel matrix. All agents know Y, so the right-hand
side costs no message, and coefficients stay with their agents. A message has about as many numbers
as there are rows: for many rows see sketched.py.

Stopping. With r = Y - (H H' + alpha I) a the coefficients are at most

    |H'(H H' + alpha I)^-1 r| <= |r| / (2 sqrt(alpha))

away from the centralised ones, because  s / (s^2 + alpha) <= 1 / (2 sqrt(alpha))  for every
singular value s of H. Every agent can compute their size without b:
|b|^2 = a'H H'a = a'(Y - r - alpha a).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.certificate import (
    PooledSizes,
    U,
    certificate_of,
    each_units,
    recurrence_error,
    sum_with_errors,
)
from peerlearn.algorithms.columns.solver import ColumnSolution, Prediction, Sums, positive
from peerlearn.algorithms.iteration import Certificate, Iterations, check_tolerance
from peerlearn.algorithms.krylov import Check, End, Krylov, Path, relative, sum_with_extra
from peerlearn.algorithms.sums import sum_alike
from peerlearn.arrays import HUGE, Array, dots, norms
from peerlearn.errors import InputError
from peerlearn.local.column_blocks import ColumnBlocks
from peerlearn.local.normal_equations import product_units, sum_units
from peerlearn.network.base import Network

__all__ = ["DualConjugateGradient"]


@dataclass(frozen=True)
class DualConjugateGradient:
    """Ridge readout over columns, solved exactly by conjugate gradients on the dual problem.

    One sum of N x M numbers per iteration. Coefficients stay with their agents. Best for few rows.

    Parameters
    ----------
    tolerance : float, default 1e-6
        Relative distance to the centralised coefficients.
    max_iterations : int, default 2000
        Limit of iterations; a solution that needs more warns.
    averaging : Averaging or str, default "auto"
        How agents add up: an `Averaging`, or the name of its method.

    Examples
    --------
    >>> from peerlearn import DualConjugateGradient, SimulatedNetwork, VerticalRVFLClassifier
    >>> from peerlearn import data, graphs
    >>> iris = data.load("iris")
    >>> network = SimulatedNetwork(graphs.ring(4))  # four agents, one column each
    >>> solver = DualConjugateGradient(tolerance=1e-4)
    >>> model = VerticalRVFLClassifier(20, solver=solver, network=network, random_state=0)
    >>> model.fit(iris.X, iris.y).report_.converged
    True
    """

    name: ClassVar = "dual"
    exact: ClassVar = True
    prediction: ClassVar[Prediction] = "sum"

    tolerance: float = 1e-6
    max_iterations: int = 2000
    averaging: Averaging | Method = "auto"

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance, "DualConjugateGradient")
        Averaging.of(self.averaging)
        if self.max_iterations < 1:
            raise InputError(f"max_iterations must be 1 or more, not {self.max_iterations}")

    def solve_columns(
        self, network: Network, blocks: ColumnBlocks, Y: Array, alpha: float
    ) -> ColumnSolution:
        """Return each hosted agent's part of the centralised coefficients, to the tolerance."""
        positive(alpha, "DualConjugateGradient")
        loop = Iterations(
            network, "DualConjugateGradient", self.tolerance, self.max_iterations, recovers=True
        )
        sums = Sums.exact_enough(network, self.averaging, blocks, alpha, self.tolerance, power=0.5)
        copies = np.tile(Y, (blocks.agents, 1, 1))
        units = product_units(blocks.rows) + blocks.own_units
        sizes = PooledSizes(network.size * sums.largest, 0.0, units)
        system = _Dual(network, blocks, copies, alpha, sizes)
        krylov = Krylov(system, lambda r: r, sums.averaging, loop)
        a, certificate = krylov.solve()
        change = (
            "raise max_iterations, alpha or the averaging's max_rounds, or use solver='sketched'"
        )
        report = krylov.report("", change, certificate)
        return ColumnSolution(blocks.separate(blocks.moments(a)), report)


@dataclass
class _Dual:
    """The system of krylov.py on the copies of all hosted agents: arrays are agents x N x M.

    sizes: of all agents' data; over a tree more exact ones are known after the first product.
    """

    network: Network
    blocks: ColumnBlocks
    Y: Array
    alpha: float
    sizes: PooledSizes

    def right_side(self, averaging: Averaging) -> Array:
        return self.Y

    def product(self, d: Array, extra: Array, averaging: Averaging) -> tuple[Array, float]:
        if not averaging.exact_on(self.network):
            q, (e,) = sum_with_extra(self.network, self.blocks.kernel(d), extra, averaging)
            return q + self.alpha * d, e
        sizes = np.column_stack([extra, self.blocks.squares(), self.blocks.widths])
        q, (e, trace, width) = sum_with_extra(self.network, self.blocks.kernel(d), sizes, averaging)
        L = self.network.size
        units = product_units(self.Y.shape[1]) + product_units(L * width) + sum_units(L)
        units += self.blocks.own_units
        self.sizes = PooledSizes(L * trace, 0.0, units)
        return q + self.alpha * d, e

    def distance(self, a: Array, r: Array, z: Array) -> Array:
        return relative(norms(r) / (2 * np.sqrt(self.alpha)), self._sizes(a, r))

    def _sizes(self, a: Array, r: Array) -> Array:
        """Return |b| = |H'a| for a residual r."""
        squares = dots(a, self.Y - r - self.alpha * a)
        sizes: Array = np.sqrt(np.maximum(squares, 0.0))
        return sizes

    def check(self, a: Array, averaging: Averaging) -> Check:
        own = self.blocks.kernel(a)
        units = product_units(self.Y.shape[1]) + each_units(self.blocks.widths)
        units = units + 2 * self.blocks.own_units
        rounding = U * units * self.blocks.squares() * norms(a)
        sums, errors, reason = sum_with_errors(self.network, own, rounding, averaging, sum_alike)
        r = self.Y - sums - self.alpha * a
        rounded = U * (norms(self.Y) + 4 * self.alpha * norms(a))
        errors = errors + rounded
        found = [self._certify(a[k], r[k], float(errors[k]), reason) for k in range(len(a))]
        floor = relative(errors / (2 * np.sqrt(self.alpha)), self._sizes(a, r))
        return Check(r, found, float(floor[0]))

    def certify(self, end: End) -> Certificate:
        """Return the certificate; all agents have the same copies."""
        error = float(self._recurrence_error(end.path, end.b)[0])
        return self._certify(end.b[0], end.r_after[0], error, "")

    def drift(self, path: Path, a: Array) -> Array:
        distances = self._recurrence_error(path, a) / (2 * np.sqrt(self.alpha))
        sizes = np.sqrt(np.maximum(dots(a, self.Y - self.alpha * a), 0.0))
        return relative(distances, sizes)

    def _recurrence_error(self, path: Path, a: Array) -> Array:
        travelled = path.travelled + 2 * U * path.steps * norms(a)
        return recurrence_error(self.sizes, travelled, path.rounded, self.alpha, self.Y.shape[1])

    def _certify(self, a: Array, r: Array, error: float, reason: str) -> Certificate:
        """Return the certificate of b = H'a for a residual r with this error."""
        if not error < HUGE:
            return Certificate(math.inf, reason)
        alpha = self.alpha
        Y = self.Y[0]
        size_a = float(np.linalg.norm(a))
        products = float(np.linalg.norm(Y)) + float(np.linalg.norm(r)) + alpha * size_a
        error += U * self.blocks.own_units * float(np.linalg.norm(Y))
        lost = size_a * (error + U * product_units(a.size) * products)
        size = math.sqrt(max(float(np.vdot(a, Y - r - alpha * a)) - lost, 0.0))
        rounding = U * self.sizes.units * math.sqrt(self.sizes.trace) * size_a
        distance = (float(np.linalg.norm(r)) + error) / (2 * math.sqrt(alpha)) + rounding
        return certificate_of(distance, size, reason)
