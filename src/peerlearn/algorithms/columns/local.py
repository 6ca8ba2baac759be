"""Baselines: every agent learns from its own columns and sends nothing.

    b_k = argmin 1/2 |H_k b - Y|^2 + alpha/2 |b|^2          alone

L-RVFL and ENS-RVFL, thesis, section 6.2. With LocalColumns an agent also predicts from its own
columns. With ColumnEnsemble the agents vote when they predict (regressors average), which is the
only time that they talk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from peerlearn.algorithms.columns.solver import ColumnSolution, Prediction
from peerlearn.algorithms.report import Report
from peerlearn.algorithms.sums import everyone
from peerlearn.arrays import Array
from peerlearn.errors import DataError
from peerlearn.local.column_blocks import ColumnBlocks
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
        report = Report(type(self).__name__, converged=True, iterations=1, residuals=())
        return ColumnSolution(blocks.ridge(Y, alpha), report)


@dataclass(frozen=True)
class ColumnEnsemble(LocalColumns):
    """Ridge readouts of each agent's own columns, which vote when they predict."""

    name: ClassVar = "ensemble"
    prediction: ClassVar[Prediction] = "vote"
