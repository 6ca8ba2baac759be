"""Counts, means and variances of columns with differential privacy.

    u = (x - c) / h, moved to [-1, 1]          c, h: middle and half width of a column's bounds
    n, sum u and sum u^2 over all rows, as whole numbers, with noise     secret sum, to all agents
    mean = c + h sum u / n,   variance = h^2 (sum u^2 / n - (sum u / n)^2)                   alone

One row changes (1, u, u^2) of d columns by sqrt(1 + 2 d) at most. A row in the place of another
changes them by 2 sqrt(d): n stays, and (u - v)^2 + (u^2 - v^2)^2 <= 4 in each column.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from peerlearn.algorithms.agreement import check_same_settings
from peerlearn.algorithms.differential_privacy import (
    GRID,
    DifferentialPrivacy,
    begin_release,
    check_row_count,
    plan_noise,
)
from peerlearn.algorithms.secret_sums import one_session, session_of
from peerlearn.arrays import Array, all_finite, sendable
from peerlearn.errors import DataError, InputError
from peerlearn.network.base import Network
from peerlearn.secret.discrete_gaussian import Whole
from peerlearn.secret.privacy_statement import PrivacyStatement

__all__ = ["private_moments"]


@dataclass(frozen=True)
class PrivateMoments:
    """Count, means and variances of columns, all with noise.

    Attributes
    ----------
    count : float
        Number of rows of all agents, 1 or more.
    means, variances : ndarray of shape (n_columns,)
        Means lie within the bounds; variances are 0 or more.
    privacy : PrivacyStatement
        What is promised.
    """

    count: float
    means: Array
    variances: Array
    privacy: PrivacyStatement


def private_moments(
    tables: Sequence[ArrayLike],
    bounds: Sequence[tuple[float, float]],
    differential_privacy: DifferentialPrivacy,
    network: Network,
) -> PrivateMoments:
    """Return count, means and variances over the rows of all agents, with differential privacy.

    Use them to scale columns before a training with differential privacy. What both cost adds up.

    Parameters
    ----------
    tables : list of array-like of shape (n_rows, n_columns)
        The rows of each hosted agent, without gaps.
    bounds : sequence of (float, float)
        Smallest and largest value of each column. Values outside are moved to the nearest bound.
        Bounds may not be computed from the data.
    differential_privacy : DifferentialPrivacy
        Its epsilon and delta are those of all three together.
    network : Network
        A network with secrecy.

    Returns
    -------
    PrivateMoments

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import DifferentialPrivacy, SimulatedNetwork, graphs, private_moments
    >>> network = SimulatedNetwork(graphs.ring(3), secrecy="sums")
    >>> tables = [np.full((1000, 1), 5.0)] * 3
    >>> found = private_moments(tables, [(0, 10)], DifferentialPrivacy(1.0), network)
    >>> bool(abs(found.means[0] - 5) < 1 and abs(found.count - 3000) < 200)
    True
    """
    if network.secrecy is None:
        raise InputError(
            "private_moments needs a network made with secrecy='sums', of 3 agents or more: sums "
            "without noise would be seen on the way"
        )
    middle, half = _check_bounds(bounds)
    d = len(middle)
    checked = [_check_table(table, d, network.size) for table in tables]
    if len(checked) != len(network.hosted):
        raise DataError(f"give {len(network.hosted)} tables, one per hosted agent")
    with network.allow_messages():  # settings do not depend on data
        settings = {"bounds": repr(bounds), "differential_privacy": differential_privacy}
        check_same_settings(network, settings)
    keys = begin_release(network, differential_privacy, "count, means and variances")
    replaces = differential_privacy.neighbors == "replace"
    change = 2 * math.sqrt(d) if replaces else math.sqrt(1 + 2 * d)
    clipping = f"{d} columns to their bounds"
    plan = plan_noise(differential_privacy, [change * GRID**2], network, clipping)
    words = [
        plan.add_noise(key, [_sum_moments((X - middle) / half)])
        for key, X in zip(keys, checked, strict=True)
    ]
    with one_session(network):
        session = session_of(network)
        total = session.sum_to_root("moments with noise", np.stack(words), plan.scales)
        answers = session.answer(
            total,
            1 + 2 * d,
            lambda found: sendable(found[:, 0].view(np.int64) / GRID**2),
        )
    n, sums, squares = np.split(answers[0], [1, 1 + d])
    count = max(float(n[0]), 1.0)
    u = np.clip(sums / count, -1.0, 1.0)
    spread = np.clip(squares / count - u**2, 0.0, 1.0)
    return PrivateMoments(count, middle + half * u, half**2 * spread, plan.statement)


def _sum_moments(u: Array) -> Whole:
    """Return the sums of 1, u and u^2 over rows, in units of the grid, exactly."""
    whole = np.trunc(np.clip(u, -1.0, 1.0) * GRID).astype(np.int64)
    count = np.array([len(u) * GRID**2])
    sums = np.ones(len(u), dtype=np.int64) @ whole
    return np.concatenate([count, sums * GRID, np.einsum("ij,ij->j", whole, whole)])


def _check_bounds(bounds: Any) -> tuple[Array, Array]:
    """Return middles and half widths."""
    try:
        pairs = np.asarray(bounds, dtype=np.float64)
    except (TypeError, ValueError):
        pairs = np.empty(0)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not all_finite(pairs):
        raise InputError("bounds must be a list with the smallest and largest value per column")
    least, most = pairs.T
    column = int(np.argmin(most - least))
    if least[column] >= most[column]:
        raise InputError(
            f"the bounds of column {column} are {least[column]:g} and {most[column]:g}: give the "
            "smaller one first"
        )
    return (least + most) / 2, (most - least) / 2


def _check_table(table: ArrayLike, columns: int, agents: int) -> Array:
    X = np.asarray(table, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != columns or not all_finite(X):
        raise DataError(
            f"a table of shape {X.shape} cannot be used: give {columns} columns, as there are "
            "bounds, and no NaN or infinite values"
        )
    check_row_count(len(X), agents)
    return X
