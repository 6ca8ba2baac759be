"""Means of features and targets over the network, for readouts with an intercept.

    m = sum_k s_k / sum_k n_k      n_k: rows or weight of agent k, s_k: its sums; over the network

One sum of 2 B + M + 3 numbers per agent, before any solver begins. The sums of squares among them
bound the rounding of what is left when the means are subtracted. All agents end with the same bits:
the problem about any common point m + d has the coefficients of the one about m up to |d|^2, but
points that differ between agents would cost |d|.
"""

from __future__ import annotations

from typing import Any

from peerlearn.algorithms.agreement import no_rows
from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.certificate import sum_error
from peerlearn.algorithms.readout.local import Local
from peerlearn.algorithms.secret_sums import session_of
from peerlearn.algorithms.sums import sum_alike
from peerlearn.arrays import Array
from peerlearn.local.centred import Means, UncentredProblems
from peerlearn.local.normal_equations import UNIT
from peerlearn.network.base import Network

TOLERANCE = 1e-12  # of sums by gossip


def common_means(network: Network, solver: Any, problems: UncentredProblems) -> Means:
    """Return the means of all agents' rows at every hosted agent, by the solver's averaging.

    With the solver Local, agents send nothing, and each has the means of its own rows.
    """
    sums = common_sums(network, solver, problems.sums())
    if isinstance(solver, Local):
        return problems.means(sums)
    # Both the sums and the weight that divides them have such an error.
    return problems.means(sums, 2 * sum_error(network, _averaging(network, solver)))


def common_sums(network: Network, solver: Any, numbers: Array) -> Array:
    """Return sums over all agents, with the same bits at each; with Local, an agent's own numbers.

    numbers: of each hosted agent, along the first axis.
    """
    if isinstance(solver, Local):
        return numbers
    return sum_alike(network, numbers, _averaging(network, solver))


def secret_means(network: Network, sums: Array, width: int) -> Means:
    """Return the means of all agents' rows at every hosted agent, by a secret total.

    sums: of each hosted agent (`peerlearn.local.centred.column_sums`). width: B + M.
    """
    quantity = "number of rows, sums of features and targets, and of their squares"
    totals = session_of(network).total(quantity, sums)
    if totals[0, -1] == 0:
        raise no_rows()
    return Means.of_sums(totals, width, 4 * UNIT)  # each part, and the total


def _averaging(network: Network, solver: Any) -> Averaging:
    chosen = Averaging.of(getattr(solver, "averaging", "auto"))
    return Averaging(chosen.method_on(network), TOLERANCE)
