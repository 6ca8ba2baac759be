"""Baselines: every agent learns from its own columns and sends nothing.

    b_k = argmin 1/2 |H_k b - Y|^2 + alpha/2 |b|^2          alone

L-RVFL and ENS-RVFL, thesis, section 6.2. With LocalColumns an agent also predicts from its own
columns. With ColumnEnsemble the agents vote when they predict (regressors average), which is the
only time that they talk. A single agent has all columns: its answer is the centralised one, and has
a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from peerlearn.algorithms.certificate import solve_in_one_place
from peerlearn.algorithms.columns.solver import ColumnSolution, Prediction
from peerlearn.algorithms.iteration import IN_ONE_PLACE, OF_OWN_DATA, Iterations, Report
from peerlearn.algorithms.readout.gram import CONDITION_CHANGE
from peerlearn.algorithms.sums import everyone
from peerlearn.arrays import Array
from peerlearn.errors import DataError
from peerlearn.local.column_blocks import ColumnBlocks
from peerlearn.local.normal_equations import Factor, NormalEquations
from peerlearn.network.base import Network


@dataclass(frozen=True)
class LocalColumns:
    """Ridge readout of each agent from its own columns alone."""

    name: ClassVar = "local"
    exact: ClassVar = False
    prediction: ClassVar[Prediction] = "own"

    def solve_columns(
        self, network: Network, blocks: ColumnBlocks, Y: Array, alpha: float
    ) -> ColumnSolution:
        """Return each hosted agent's own coefficients."""
        # A vote, so that either all agents stop or none does.
        if alpha == 0 and not everyone(network, blocks.widths <= blocks.rows):
            raise DataError(
                f"the {blocks.rows} rows do not determine the coefficients of an agent with more "
                "features than that when alpha is 0: set alpha above 0, or use fewer hidden units"
            )
        if network.size == 1:
            return self._solve_all_columns(network, blocks, Y, alpha)
        name = type(self).__name__
        report = Report(name, True, iterations=1, residuals=(), bound_reason=OF_OWN_DATA)
        return ColumnSolution(blocks.ridge(Y, alpha), report)

    def _solve_all_columns(
        self, network: Network, blocks: ColumnBlocks, Y: Array, alpha: float
    ) -> ColumnSolution:
        """Return the pooled answer of the only agent, and its bound."""
        loop = Iterations(network, type(self).__name__, IN_ONE_PLACE, max_iterations=1)
        next(loop)
        HY = np.hstack([blocks.block(0), Y])
        shape = (int(blocks.widths[0]), Y.shape[1])
        b, certificate = solve_in_one_place(
            lambda: blocks.ridge(Y, alpha)[0],
            NormalEquations.of_rows(HY, shape, blocks.own_units),
            lambda: Factor.of_blocks([HY], shape, blocks.own_units),
            alpha,
            IN_ONE_PLACE,
            None,
        )
        return ColumnSolution([b], loop.report(CONDITION_CHANGE, certificate=certificate))


@dataclass(frozen=True)
class ColumnEnsemble(LocalColumns):
    """Ridge readouts of each agent's own columns, which vote when they predict."""

    name: ClassVar = "ensemble"
    prediction: ClassVar[Prediction] = "vote"
