"""Conjugate gradients on the normal equations of all agents' features, preconditioned by a sketch: for many rows.

    (H'H + alpha I) b = H'Y,   H = [H_1 | .. | H_L]       b, r, d: B x M for all agents' features, copies at every agent

    v   = sum_k H_k d_k                                   over the network: N x M
    q_k = H_k'v + alpha d_k                               alone
    q   = [q_1 | .. | q_L]                                over the network: B x M, each agent puts its part in its place
    the rest of an iteration                              alone, on the copies: see krylov.py

The sum of N x M numbers is as long as in dual.py, but a sketch of all agents' columns, sent once
(see sketches.py), makes a good preconditioner, and iterations are few however many rows there are
and however small alpha is. The answer is at most |r| / alpha away.

Everybody comes to know the coefficients of everybody, and the sketch: sums of some rows' features,
or inputs. With
dual.py coefficients stay with their agents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.columns.sketches import SKETCHES, Layout
from peerlearn.algorithms.columns.solver import ColumnSolution, Prediction, Sums, positive
from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.krylov import ROUGH, Krylov, relative, sum_with_extra
from peerlearn.algorithms.report import check_tolerance
from peerlearn.algorithms.sums import sum_alike
from peerlearn.arrays import Array, Indices, norms
from peerlearn.errors import InputError
from peerlearn.local.column_blocks import ColumnBlocks, Stacks
from peerlearn.network.base import Network

__all__ = ["SketchedConjugateGradient"]


@dataclass(frozen=True)
class SketchedConjugateGradient:
    """tolerance: relative distance to the centralised coefficients.

    sketch: "features" costs about 2 B^2 numbers and suits any features; "inputs" some 500 numbers
    per column.
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
        system = _Primal(network, blocks, layout, Y, alpha, sums)
        krylov = Krylov(system, precondition, averaging, loop)
        b = krylov.solve()
        buckets = sketch.buckets(blocks.rows, layout)
        note = f"{buckets} sums of {blocks.rows // buckets} rows' {self.sketch}, "
        change = "raise max_iterations, alpha or the averaging's max_rounds, or use solver='dual'"
        return ColumnSolution(blocks.separate(system.own(b)), krylov.report(note, change))


@dataclass(frozen=True)
class _Primal:
    """The system on the copies of all hosted agents: arrays are agents x B x M."""

    network: Network
    blocks: ColumnBlocks
    layout: Layout
    Y: Array
    alpha: float
    sums: Sums

    def right_side(self, averaging: Averaging) -> Array:
        Y = np.broadcast_to(self.Y, (self.blocks.agents, *self.Y.shape))
        return sum_alike(self.network, self._place_parts(self.blocks.moments(Y)), averaging)

    def product(self, d: Array, extra: Array, averaging: Averaging) -> tuple[Array, float]:
        v = averaging.total(self.network, self.blocks.fitted(self.own(d)))
        q, e = sum_with_extra(
            self.network, self._place_parts(self.blocks.moments(v)), extra, averaging
        )
        return q + self.alpha * d, e

    def residual(self, b: Array, averaging: Averaging) -> Array:
        v = averaging.total(self.network, self.blocks.fitted(self.own(b)))
        return (
            sum_alike(self.network, self._place_parts(self.blocks.moments(self.Y - v)), averaging)
            - self.alpha * b
        )

    def distance(self, b: Array, r: Array, z: Array) -> Array:
        return relative(norms(r) / self.alpha, norms(b))

    def uncertainty(self, averaging: Averaging) -> float:
        return self.sums.uncertainty(averaging)

    def own(self, b: Array) -> Stacks:
        """Each hosted agent's part of its copy. Padding repeats some entry: it meets columns of zeros."""
        return [
            b[group.agents[:, None], np.minimum(places, b.shape[1] - 1)]
            for group, places in zip(self.blocks.groups, self._places, strict=True)
        ]

    def _place_parts(self, parts: Stacks) -> Array:
        """Each hosted agent's part in its place among all parts, and zero elsewhere."""
        B = self.layout.B
        placed = np.zeros((self.blocks.agents, B + 1, parts[0].shape[2]))
        for group, places, part in zip(self.blocks.groups, self._places, parts, strict=True):
            placed[group.agents[:, None], places] = part
        return placed[:, :B]  # padding was put behind the end

    @cached_property
    def _places(self) -> list[Indices]:
        """For each group, agents x padded width: where each feature stands in b, B for padding."""
        B, places = self.layout.B, []
        for group in self.blocks.groups:
            of_group = np.full((len(group.agents), group.H.shape[2]), B)
            for i, k in enumerate(group.agents.tolist()):
                own = self.layout.features(k)
                of_group[i, : own.stop - own.start] = np.arange(own.start, own.stop)
            places.append(of_group)
        return places
