"""The rule behind solver="auto" of vertical models, and the registry of solvers over columns.

DualConjugateGradient sends N x M numbers per iteration, and its iterations grow with the condition
of H H' + alpha I. SketchedConjugateGradient sends a sketch first, and then (N + B) x M numbers in
each of few iterations. Iterations per digit of the answer, measured on G50C, Garageband, Sylva and
100,000 generated rows:

    dual                   0.05 sqrt(condition)     measured 0.03 to 0.05
    sketch of features     7                        measured 3 to 10, with at least B sums
    sketch of inputs       14                       measured 7 to 23

with the condition bounded by L max_k |H_k|^2 / alpha. Agents flood what the rule needs to know
first, so that all make the same choice.

A sketch solves (H'H + alpha I) b = H'Y, whose answer is certified to |r| / alpha. Where that is
beyond the tolerance, DualConjugateGradient takes over, with |r| / (2 sqrt(alpha)).
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
from peerlearn.algorithms.iteration import check_tolerance
from peerlearn.algorithms.registry import Family
from peerlearn.arrays import Array
from peerlearn.local.column_blocks import ColumnBlocks
from peerlearn.network.base import Network

PER_DIGIT = {"dual": 0.05, "features": 7.0, "inputs": 14.0}  # iterations, see above
# Iterations per feature: without rounding conjugate gradients would end after B iterations.
MOST_STEPS = 4
NAMES = {
    "dual": "DualConjugateGradient",
    "features": "a sketch of features",
    "inputs": "a sketch of inputs",
}


@dataclass(frozen=True)
class AutoColumns:
    """Dual or sketched conjugate gradients, whichever is expected to send less.

    tolerance: relative distance to the centralised coefficients. averaging: how agents add up.
    """

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
        """Choose a solver and solve with it."""
        mark = network.ledger.mark()
        solver, why = self._choose(network, blocks, Y.shape[1], alpha)
        if isinstance(solver, SketchedConjugateGradient):
            solution = solver.attempt(network, blocks, Y, alpha)
            if not solution.report.converged:
                why += f", but its bound was {solution.report.bound:.1e}"
                most = MOST_STEPS * Layout.of(network, blocks).B
                dual = DualConjugateGradient(self.tolerance, most, self.averaging)
                other = dual.solve_columns(network, blocks, Y, alpha)
                # The same bits at all agents: both bounds are.
                better = other.report.bound < solution.report.bound
                solution = other if better else solution
        else:
            solution = solver.solve_columns(network, blocks, Y, alpha)
        note = f"chosen because {why}"
        if solution.report.note:
            note += f"; {solution.report.note}"
        report = replace(solution.report, note=note, sent=network.ledger.since(mark))
        return replace(solution, report=report)

    def _choose(
        self, network: Network, blocks: ColumnBlocks, M: int, alpha: float
    ) -> tuple[ColumnSolver, str]:
        """Return the solver for these columns, and why it was chosen."""
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
        why = ", ".join(f"{NAMES[kind]} {size:,.2g} MB" for kind, size in expected.items())
        best = min(expected, key=lambda kind: expected[kind])
        return solvers[best], f"these should send: {why}"

    def _estimate_traffic(
        self, network: Network, blocks: ColumnBlocks, M: int, alpha: float
    ) -> dict[str, float]:
        """Return how many megabytes each kind would send, all agents together."""
        layout = Layout.of(network, blocks)
        N = blocks.rows
        condition = network.size * largest_square(network, blocks) / alpha
        digits = -math.log10(min(self.tolerance, 0.1))
        steps = min(PER_DIGIT["dual"] * digits * math.sqrt(condition), MOST_STEPS * layout.B)
        numbers = {"dual": steps * N * M}
        for kind in ("features", "inputs") if blocks.maps else ("features",):
            sketch = SKETCHES[kind]
            unseen = 1.0
            if kind == "features":  # fewer sums than features miss some directions
                unseen = max(layout.B / sketch.buckets(N, layout), 1.0)
            steps = PER_DIGIT[kind] * digits * unseen
            numbers[kind] = sketch.numbers(N, layout) + steps * (N + layout.B) * M
        messages = self._count_messages(network)
        return {kind: 8e-6 * messages * count for kind, count in numbers.items()}

    def _count_messages(self, network: Network) -> int:
        """Return how many messages one sum takes, all agents together."""
        averaging = Averaging.of(self.averaging)
        if averaging.exact_on(network):
            return 2 * (network.size - 1)
        loose = replace(averaging, tolerance=1e-2 * self.tolerance**0.5)
        return int(2 * network.graph.number_of_edges() * loose.rounds_on(network))


COLUMNS: Family[ColumnSolver] = Family(
    "peerlearn.algorithms.columns", "solve_columns", "solver", in_one_place="local"
)
column_solvers = COLUMNS.kinds
column_solver_of = COLUMNS.of
