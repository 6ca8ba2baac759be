"""What a solver of the readout over columns returns, and what it is asked.

    minimise  1/2 |sum_k H_k b_k - Y|^2 + alpha/2 sum_k |b_k|^2          (thesis, section 6.1)

H_k is known to agent k alone, Y and alpha to all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.flooding import maximum
from peerlearn.algorithms.krylov import MARGIN, MOST_EXACT
from peerlearn.algorithms.report import Report
from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.local.column_blocks import ColumnBlocks
from peerlearn.network.base import Network

Prediction = Literal[
    "sum", "own", "vote"
]  # of all agents' parts, each agent's own part, or a vote of them


@dataclass(frozen=True)
class ColumnSolution:
    coefficients: list[Array]  # of each hosted agent: B_k x M
    report: Report


class ColumnSolver(Protocol):
    """Anything with `solve_columns` can be the solver of a vertical model; one with a name is found by it."""

    name: ClassVar[str]  # what solver="..." calls it
    exact: ClassVar[
        bool
    ]  # whether it reaches the centralised coefficients, to the tolerance it is asked for
    prediction: ClassVar[Prediction]  # how the agents' parts become one output

    def solve_columns(
        self, network: Network, blocks: ColumnBlocks, Y: Array, alpha: float
    ) -> ColumnSolution:
        """Y: N x M, the same at every agent."""
        ...


def positive(alpha: float, solver: str) -> None:
    """Refuse alpha of 0 where nobody could tell whether the columns determine the coefficients."""
    if not alpha > 0:
        raise InputError(
            f"{solver} cannot tell whether the columns of all agents determine the coefficients when alpha is "
            f"{alpha:g}: set alpha above 0"
        )


@dataclass(frozen=True)
class Sums:
    """Sums of the agents' parts H_k b_k, and what their errors come to.

    Where an average is off by t of the spread, the sum is off by up to  t L sqrt(S) |b|,  S the largest |H_k|^2, and
    the coefficients that follow from it by  t L ((S/alpha)^power + 1) |b|.
    """

    averaging: Averaging
    amplified: float  # by how much more than t; 0 where sums are exact

    @classmethod
    def exact_enough(
        cls,
        network: Network,
        averaging: Averaging | Method,
        blocks: ColumnBlocks,
        alpha: float,
        tolerance: float,
        power: float,
    ) -> Sums:
        """With errors that are a small part of the tolerance, as far as double precision and settings allow."""
        chosen = Averaging.of(averaging, max(tolerance / MARGIN, MOST_EXACT))
        if chosen.exact_on(network):
            return cls(chosen, 0.0)
        amplified = network.size * ((largest_square(network, blocks) / alpha) ** power + 1.0)
        return cls(
            Averaging.of(averaging, max(tolerance / MARGIN / amplified, MOST_EXACT)), amplified
        )

    def uncertainty(self, averaging: Averaging) -> float:
        """How far coefficients from sums of this tolerance may be off, relative to their size."""
        return averaging.tolerance * self.amplified


def largest_square(network: Network, blocks: ColumnBlocks) -> float:
    """The largest |H_k|^2 in the network: flooded, the same bits at every agent."""
    return float(maximum(network, blocks.squares())[0])
