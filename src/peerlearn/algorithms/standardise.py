"""Columns of mean 0 and deviation 1 over the rows of all agents.

    N = sum_k N_k,   m = sum_k sum_i x_ki / N              over the network
    s^2 = sum_k sum_i (x_ki - m)^2 / N                     over the network

Squares are summed after the mean is known: their difference would lose the digits that large means take. A column of
one value keeps it: s = 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peerlearn.algorithms.consensus import Averaging
from peerlearn.arrays import Array
from peerlearn.network.base import Network


def mean_and_deviation(network: Network, inputs: Sequence[Array]) -> tuple[Array, Array]:
    """m and s for the hosted agents: agents x columns each."""
    averaging = Averaging(tolerance=1e-12)
    sums = averaging.total(network, np.stack([np.append(X.sum(axis=0), len(X)) for X in inputs]))
    mean = sums[:, :-1] / sums[:, -1:]
    away = [X - m for X, m in zip(inputs, mean, strict=True)]
    squares = averaging.total(network, np.stack([np.einsum("ij,ij->j", x, x) for x in away]))
    deviation = np.sqrt(squares / sums[:, -1:])
    constant = deviation <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
    return mean, np.where(constant, 1.0, deviation)
