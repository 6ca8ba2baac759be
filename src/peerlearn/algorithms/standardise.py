"""Means and deviations of columns over the rows of all agents.

    N = sum_k N_k,   m = sum_k sum_i x_ki / N                                    over the network
    D = sum_k sum_i (x_ki - m),   S = sum_k sum_i (x_ki - m)^2                   over the network
    m <- m + D/N,   s^2 = (S - D^2/N) / N                                        alone

Squares are summed after the mean is known: a difference of large sums would lose the digits that
large means take. D is what rounding left in m. A constant column, where s is no more than the
rounding of m, keeps its scale, s = 1. A comparison of largest and smallest values would be simpler,
but would show neighbors values of single rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from peerlearn.algorithms.agreement import no_rows
from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.secret_sums import sum_in_secret
from peerlearn.algorithms.sums import sum_alike
from peerlearn.arrays import Array
from peerlearn.network.base import Network

AVERAGING = Averaging(tolerance=1e-12)
# Names of the sums where they are secret.
SUMS = "number of values and sum of each column"
MOMENTS = "sum and squares of each column about its mean"


def mean_and_deviation(network: Network, inputs: Sequence[Array]) -> tuple[Array, Array]:
    """Return m and s for the hosted agents: agents x columns each."""
    total = partial(AVERAGING.total, network)
    own_sums = [np.append(X.sum(axis=0), len(X)) for X in inputs]
    sums = sum_in_secret(network, SUMS, np.stack(own_sums), total)
    if sums[0, -1] < 0.5:  # no rows: all agents see this alike
        raise no_rows()
    N = sums[:, -1:]
    m = sums[:, :-1] / N
    moments = []
    for X, mean in zip(inputs, m, strict=True):
        x = X - mean
        squares = np.einsum("ij,ij->j", x, x)
        moments.append(np.concatenate([x.T @ np.ones(len(x)), squares]))
    D, S = np.split(sum_in_secret(network, MOMENTS, np.stack(moments), total), 2, axis=1)
    return m + D / N, _deviation(N, m, D, S)


def mean_and_deviation_with_gaps(
    network: Network, inputs: Sequence[Array]
) -> tuple[Array, Array, Array]:
    """Return N, m and s of each column over the values that are there. Gaps are NaN.

    All have one number per column and the same bits at all agents. A column without values has
    m = 0 and s = 1.
    """
    own_sums = []
    for X in inputs:
        present = np.sum(~np.isnan(X), axis=0)
        own_sums.append(np.stack([np.nansum(X, axis=0), present]))
    total = partial(sum_alike, network, averaging=AVERAGING)
    sums, counts = sum_in_secret(network, SUMS, np.stack(own_sums), total)[0]
    N = np.maximum(np.rint(counts), 1.0)
    m = sums / N
    own_moments = []
    for X in inputs:
        x = X - m
        own_moments.append(np.stack([np.nansum(x, axis=0), np.nansum(x**2, axis=0)]))
    D, S = sum_in_secret(network, MOMENTS, np.stack(own_moments), total)[0]
    return np.rint(counts), m + D / N, _deviation(N, m, D, S)


def _deviation(N: Array, m: Array, D: Array, S: Array) -> Array:
    """Return s from the sums D of x - m and S of (x - m)^2; 1 if it is nothing but rounding."""
    s = np.sqrt(np.maximum(S - D**2 / N, 0.0) / N)
    rounding = 2 * np.finfo(float).eps * np.abs(m)
    found: Array = np.where(s <= rounding, 1.0, s)
    return found
