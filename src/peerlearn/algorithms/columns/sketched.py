"""Conjugate gradients on the normal equations of all agents' features, for many rows.

    (H'H + alpha I) b = H'Y,   H = [H_1 | .. | H_L]     b, r, d: B x M, a copy at every agent

    v   = sum_k H_k d_k                                 over the network: N x M
    q_k = H_k'v + alpha d_k                             alone
    q   = [q_1 | .. | q_L]                              over the network: B x M
    the rest of an iteration                            alone, on the copies: see krylov.py

For q each agent sends its own part at its place, and zeros elsewhere. The sum of N x M numbers is
as long as in dual.py. But a sketch of all agents' columns, sent once (see sketches.py), makes a
good preconditioner: iterations are few however many rows there are and however small alpha is. The
answer is at most |r| / alpha away.

All agents learn the coefficients of all, and the sketch: sums of some rows' features, or inputs.
With dual.py coefficients stay with their agents.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.certificate import (
    NO_SIZES,
    PooledSizes,
    U,
    certificate_of,
    certify_each,
    recurrence_error,
    sum_with_errors,
)
from peerlearn.algorithms.columns.sketches import SKETCHES, Layout
from peerlearn.algorithms.columns.solver import ColumnSolution, Prediction, Sums, positive
from peerlearn.algorithms.iteration import Certificate, Iterations, check_tolerance
from peerlearn.algorithms.krylov import ROUGH, Check, End, Krylov, Path, relative, sum_with_extra
from peerlearn.algorithms.sums import sum_alike, sum_everywhere
from peerlearn.arrays import Array, Indices, norms, sendable
from peerlearn.errors import InputError
from peerlearn.local.column_blocks import ColumnBlocks, Stacks
from peerlearn.local.normal_equations import product_units, sum_units
from peerlearn.network.base import Network

__all__ = ["SketchedConjugateGradient"]


@dataclass(frozen=True)
class SketchedConjugateGradient:
    """Ridge readout over columns, solved exactly by preconditioned conjugate gradients.

    A sketch of all columns is sent once; then few iterations are enough, however many rows there
    are. All agents learn all coefficients, and sums of some rows' features or inputs.

    Parameters
    ----------
    tolerance : float, default 1e-6
        Relative distance to the centralised coefficients.
    max_iterations : int, default 1000
        Limit of iterations; a solution that needs more warns.
    sketch : {"features", "inputs"}, default "features"
        "features" costs about 2 B^2 numbers and suits any features; "inputs" costs about 500
        numbers per column.
    averaging : Averaging or str, default "auto"
        How agents add up: an `Averaging`, or the name of its method.

    Examples
    --------
    >>> from peerlearn import SimulatedNetwork, SketchedConjugateGradient, VerticalRVFLClassifier
    >>> from peerlearn import data, graphs
    >>> iris = data.load("iris")
    >>> network = SimulatedNetwork(graphs.ring(4))  # four agents, one column each
    >>> solver = SketchedConjugateGradient(sketch="inputs")
    >>> model = VerticalRVFLClassifier(20, solver=solver, network=network, random_state=0)
    >>> model.fit(iris.X, iris.y).report_.converged
    True
    """

    name: ClassVar = "sketched"
    exact: ClassVar = True
    prediction: ClassVar[Prediction] = "sum"

    tolerance: float = 1e-6
    max_iterations: int = 1000
    sketch: Literal["features", "inputs"] = "features"
    averaging: Averaging | Method = "auto"

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance, "SketchedConjugateGradient")
        Averaging.of(self.averaging)
        if self.max_iterations < 1:
            raise InputError(f"max_iterations must be 1 or more, not {self.max_iterations}")
        if self.sketch not in SKETCHES:
            raise InputError(
                f"sketch {self.sketch!r} is not known: choose one of {', '.join(SKETCHES)}"
            )

    def solve_columns(
        self, network: Network, blocks: ColumnBlocks, Y: Array, alpha: float
    ) -> ColumnSolution:
        """Return each hosted agent's part of the centralised coefficients, to the tolerance."""
        return self._solve(network, blocks, Y, alpha, warn=True)

    def attempt(
        self, network: Network, blocks: ColumnBlocks, Y: Array, alpha: float
    ) -> ColumnSolution:
        """Solve without a warning, for a caller that can try another solver."""
        return self._solve(network, blocks, Y, alpha, warn=False)

    def _solve(
        self, network: Network, blocks: ColumnBlocks, Y: Array, alpha: float, *, warn: bool
    ) -> ColumnSolution:
        positive(alpha, "SketchedConjugateGradient")
        loop = Iterations(
            network, "SketchedConjugateGradient", self.tolerance, self.max_iterations, recovers=True
        )
        layout = Layout.of(network, blocks)
        sums = Sums.exact_enough(network, self.averaging, blocks, alpha, self.tolerance, power=1.0)
        averaging = sums.averaging
        rough = replace(averaging, tolerance=max(averaging.tolerance, ROUGH / network.size))
        sketch = SKETCHES[self.sketch]
        precondition = sketch.prepare(blocks, layout, alpha, lambda x: sum_alike(network, x, rough))
        system = _Primal(network, blocks, layout, Y, alpha)
        krylov = Krylov(system, precondition, averaging, loop)
        b, certificate = krylov.solve()
        buckets = sketch.buckets(blocks.rows, layout)
        note = f"{buckets} sums of {blocks.rows // buckets} rows' {self.sketch}, "
        change = "raise max_iterations, alpha or the averaging's max_rounds, or use solver='dual'"
        report = krylov.report(note, change, certificate, warn=warn)
        return ColumnSolution(blocks.separate(system.own(b)), report)


@dataclass
class _Primal:
    """The system of krylov.py on the copies of all hosted agents: arrays are agents x B x M.

    sizes: of all agents' data, known together with the right side.
    """

    network: Network
    blocks: ColumnBlocks
    layout: Layout
    Y: Array
    alpha: float
    sizes: PooledSizes = NO_SIZES

    def right_side(self, averaging: Averaging) -> Array:
        Y = np.broadcast_to(self.Y, (self.blocks.agents, *self.Y.shape))
        parts = self._place_parts(self.blocks.moments(Y))
        c, (trace,) = sum_with_extra(self.network, parts, self.blocks.squares(), averaging)
        L = self.network.size
        units = product_units(len(self.Y)) + product_units(self.layout.B) + sum_units(L)
        units += 2 * self.blocks.own_units
        squares = float(np.vdot(self.Y, self.Y))
        self.sizes = PooledSizes(L * trace, squares, units)
        return c

    def product(self, d: Array, extra: Array, averaging: Averaging) -> tuple[Array, float]:
        v = averaging.total(self.network, self.blocks.outputs(self.own(d)))
        q, (e,) = sum_with_extra(
            self.network, self._place_parts(self.blocks.moments(v)), extra, averaging
        )
        return q + self.alpha * d, e

    def distance(self, b: Array, r: Array, z: Array) -> Array:
        return relative(norms(r) / self.alpha, norms(b))

    def check(self, b: Array, averaging: Averaging) -> Check:
        outputs = self.blocks.outputs(self.own(b))
        lengths = np.sqrt(self.blocks.squares())
        in_columns = self.blocks.own_units
        rounding = U * (product_units(self.layout.B) + in_columns) * lengths * norms(b)
        v, errors, _ = sum_with_errors(self.network, outputs, rounding, averaging, sum_everywhere)
        left = self.Y - v
        parts = self._place_parts(self.blocks.moments(left))
        units = product_units(len(self.Y)) + in_columns
        own_errors = lengths * U * units * norms(left)
        errors = errors + U * in_columns * float(np.linalg.norm(self.Y))
        common: Array = np.zeros_like(errors)
        if averaging.exact_on(self.network):
            # All agents have the same v. Its error e moves the answer by |A^-1 H'e|.
            common = math.sqrt(self.alpha) / 2 * errors
        else:
            own_errors = own_errors + lengths * errors
        # A sum that was cut off has an infinite error, which cannot be sent.
        sums, errors, reason = sum_with_errors(
            self.network, parts, sendable(own_errors), averaging, sum_alike
        )
        errors = errors + common
        r = sums - self.alpha * b
        errors = errors + 4 * U * self.alpha * norms(b)
        found = certify_each(norms(r) + errors, self.alpha, b, reason)
        return Check(r, found, float(relative(errors / self.alpha, norms(b))[0]))

    def certify(self, end: End) -> Certificate:
        """Return the certificate; all agents have the same copies.

        A step makes the energy r'A^-1 r smaller, so |r| / alpha bounds the distance after it too.
        """
        left = min(float(norms(end.r)[0]), float(norms(end.r_after)[0]))
        size = float(norms(end.b)[0])
        drift = float(self.drift(end.path, end.b)[0])
        return certificate_of(left / self.alpha + drift * size, size)

    def drift(self, path: Path, b: Array) -> Array:
        error = recurrence_error(
            self.sizes, path.travelled, path.rounded, self.alpha, self.layout.B
        )
        return relative(error / self.alpha, norms(b)) + 2 * U * path.steps

    def own(self, b: Array) -> Stacks:
        """Return each hosted agent's part of its copy.

        Padding repeats some entry, which is harmless because it is multiplied by columns of zeros.
        """
        return [
            b[group.agents[:, None], np.minimum(places, b.shape[1] - 1)]
            for group, places in zip(self.blocks.groups, self._places, strict=True)
        ]

    def _place_parts(self, parts: Stacks) -> Array:
        """Return each hosted agent's part at its place among all parts, and zeros elsewhere."""
        B = self.layout.B
        placed = np.zeros((self.blocks.agents, B + 1, parts[0].shape[2]))
        for group, places, part in zip(self.blocks.groups, self._places, parts, strict=True):
            placed[group.agents[:, None], places] = part
        return placed[:, :B]  # the last row took the padding

    @cached_property
    def _places(self) -> list[Indices]:
        """The index of each feature in b, agents x padded width for each group; B for padding."""
        B = self.layout.B
        places = []
        for group in self.blocks.groups:
            of_group = np.full((len(group.agents), group.H.shape[2]), B)
            for i, k in enumerate(group.agents.tolist()):
                own = self.layout.features(k)
                of_group[i, : own.stop - own.start] = np.arange(own.start, own.stop)
            places.append(of_group)
        return places
