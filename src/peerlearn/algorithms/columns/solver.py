"""The contract of readout solvers over columns, their result, and the sums that they share.

    minimise  1/2 |sum_k H_k b_k - Y|^2 + alpha/2 sum_k |b_k|^2          (thesis, section 6.1)

H_k is known to agent k alone, Y and alpha to all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.krylov import MARGIN, MOST_EXACT
from peerlearn.algorithms.report import Report
from peerlearn.algorithms.sums import maximum
from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.local.column_blocks import ColumnBlocks
from peerlearn.network.base import Network

# The sum of all agents' parts, each agent's own part, or a vote of them.
Prediction = Literal["sum", "own", "vote"]


@dataclass(frozen=True)
class ColumnSolution:
    """The result of a solver over columns.

    coefficients: B_k x M for each hosted agent. report: how the solver got there.
    """

    coefficients: list[Array]
    report: Report


class ColumnSolver(Protocol):
    """The contract of a solver over columns.

    Any object with `solve_columns` can be the solver of a vertical model. name: what `solver="..."`
    calls it. exact: whether it reaches the centralised coefficients to the tolerance that it is
    given. prediction: how the agents' parts become one output.
    """

    name: ClassVar[str]
    exact: ClassVar[bool]
    prediction: ClassVar[Prediction]

    def solve_columns(
        self, network: Network, blocks: ColumnBlocks, Y: Array, alpha: float
    ) -> ColumnSolution:
        """Return the coefficients of the hosted agents. Y: N x M, the same at every agent."""
        ...


def positive(alpha: float, solver: str) -> None:
    """Refuse an alpha of 0: the solver cannot tell whether the columns determine the answer."""
    if not alpha > 0:
        raise InputError(
            f"{solver} cannot tell whether the columns of all agents determine the coefficients "
            f"when alpha is {alpha:g}: set alpha above 0"
        )


@dataclass(frozen=True)
class Sums:
    """Sums of the agents' parts H_k b_k, and the effect of their errors.

    If an average has an error of t times the spread, the sum has one of up to  t L sqrt(S) |b|,
    S the largest |H_k|^2, and the coefficients computed from it of  t L ((S/alpha)^power + 1) |b|.

    averaging: how sums are made. amplified: how much larger than t the error of coefficients is; 0
    where sums are exact.
    """

    averaging: Averaging
    amplified: float

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
        """Return sums whose errors are a small part of the tolerance.

        As far as double precision and the settings of the averaging allow.
        """
        chosen = Averaging.of(averaging, max(tolerance / MARGIN, MOST_EXACT))
        if chosen.exact_on(network):
            return cls(chosen, 0.0)
        amplified = network.size * ((largest_square(network, blocks) / alpha) ** power + 1.0)
        return cls(
            Averaging.of(averaging, max(tolerance / MARGIN / amplified, MOST_EXACT)), amplified
        )

    def uncertainty(self, averaging: Averaging) -> float:
        """Return the largest relative error of coefficients from sums of this tolerance."""
        return averaging.tolerance * self.amplified


def largest_square(network: Network, blocks: ColumnBlocks) -> float:
    """Return the largest |H_k|^2 in the network: flooded, the same bits at every agent."""
    return float(maximum(network, blocks.squares())[0])
