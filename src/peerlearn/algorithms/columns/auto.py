"""Which solver for which columns: the rule behind solver="auto", and the short names that vertical models accept.

DualConjugateGradient sends N x M numbers per iteration, and its iterations grow with the condition
of H H' + alpha I. SketchedConjugateGradient sends a sketch first, and then (N + B) x M numbers in
each of few iterations. Measured on G50C, Garageband, Sylva and 100,000 generated rows, per digit
that the answer is to have:

    dual                   0.05 sqrt(condition) iterations      0.03 to 0.05; condition: L max_k |H_k|^2 / alpha
    sketch of features     7                                    3 to 10, where there are at least B sums
    sketch of inputs       14                                   7 to 23

What they need to know, agents flood first, so that all choose alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.columns.dual import DualConjugateGradient
from peerlearn.algorithms.columns.local import LocalColumns
from peerlearn.algorithms.columns.sketched import SketchedConjugateGradient
from peerlearn.algorithms.columns.sketches import SKETCHES, Layout
from peerlearn.algorithms.columns.solver import (
    ColumnSolution,
    ColumnSolver,
    Prediction,
    largest_square,
    positive,
)
from peerlearn.algorithms.registry import Family
from peerlearn.algorithms.report import check_tolerance
from peerlearn.arrays import Array
from peerlearn.local.column_blocks import ColumnBlocks
from peerlearn.network.base import Network

PER_DIGIT = {"dual": 0.05, "features": 7.0, "inputs": 14.0}  # iterations, see above
MOST_STEPS = 4  # per feature: rounding keeps conjugate gradients from ending after B iterations, but not for long


@dataclass(frozen=True)
class AutoColumns:
    """Dual or sketched conjugate gradients, whichever is expected to send less."""

    tolerance: float = 1e-6
    averaging: Averaging | Method = "auto"

    name: ClassVar = "auto"
    exact: ClassVar = True
    prediction: ClassVar[Prediction] = "sum"

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance, "AutoColumns")
        Averaging.of(self.averaging)

    def solve_columns(
        self, network: Network, blocks: ColumnBlocks, Y: Array, alpha: float
    ) -> ColumnSolution:
        mark = network.ledger.mark()
        solver, why = self._choose(network, blocks, Y.shape[1], alpha)
        solution = solver.solve_columns(network, blocks, Y, alpha)
        note = f"chosen because {why}" + (
            f"; {solution.report.note}" if solution.report.note else ""
        )
        return replace(
            solution, report=replace(solution.report, note=note, sent=network.ledger.since(mark))
        )

    def _choose(
        self, network: Network, blocks: ColumnBlocks, M: int, alpha: float
    ) -> tuple[ColumnSolver, str]:
        if network.size == 1:
            return LocalColumns(), "one agent has all columns"
        positive(alpha, "AutoColumns")
        solvers: dict[str, ColumnSolver] = {
            "dual": DualConjugateGradient(self.tolerance, averaging=self.averaging),
            "features": SketchedConjugateGradient(self.tolerance, averaging=self.averaging),
            "inputs": SketchedConjugateGradient(
                self.tolerance, sketch="inputs", averaging=self.averaging
            ),
        }
        expected = self._estimate_traffic(network, blocks, M, alpha)
        said = {
            "dual": "DualConjugateGradient",
            "features": "a sketch of features",
            "inputs": "a sketch of inputs",
        }
        why = ", ".join(f"{said[kind]} {megabytes:,.2g} MB" for kind, megabytes in expected.items())
        return solvers[min(expected, key=lambda kind: expected[kind])], f"these should send: {why}"

    def _estimate_traffic(
        self, network: Network, blocks: ColumnBlocks, M: int, alpha: float
    ) -> dict[str, float]:
        """How many megabytes each is expected to send, all agents together."""
        layout, N = Layout.of(network, blocks), blocks.rows
        condition = network.size * largest_square(network, blocks) / alpha
        digits = -math.log10(min(self.tolerance, 0.1))
        steps = min(PER_DIGIT["dual"] * digits * math.sqrt(condition), MOST_STEPS * layout.B)
        numbers = {"dual": steps * N * M}
        for kind in ("features", "inputs") if blocks.maps else ("features",):
            sketch = SKETCHES[kind]
            # Fewer sums than features leave some directions unseen; Gaussian inputs need no more
            # than they have.
            unseen = max(layout.B / sketch.buckets(N, layout), 1.0) if kind == "features" else 1.0
            steps = PER_DIGIT[kind] * digits * unseen
            numbers[kind] = sketch.numbers(N, layout) + steps * (N + layout.B) * M
        return {kind: 8e-6 * self._messages(network) * count for kind, count in numbers.items()}

    def _messages(self, network: Network) -> int:
        """How many messages one number takes to be summed, all agents together."""
        averaging = Averaging.of(self.averaging)
        if averaging.exact_on(network):
            return 2 * (network.size - 1)
        loose = replace(averaging, tolerance=1e-2 * self.tolerance**0.5)
        return int(2 * network.graph.number_of_edges() * loose.rounds_on(network))


COLUMNS: Family[ColumnSolver] = Family(
    "peerlearn.algorithms.columns", "solve_columns", "solver", in_one_place="local"
)
column_solvers, column_solver_of = COLUMNS.kinds, COLUMNS.of
