"""Columns are standardised over the rows of all agents."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import SimulatedNetwork
from peerlearn.algorithms.standardise import mean_and_deviation


@pytest.mark.parametrize("mean", [0.0, 1.0, -1e6, 1e10])
def test_columns_are_standardised_over_all_rows(graph, mean):
    rng = np.random.default_rng(0)
    shares = [
        rng.standard_normal((rows, 5)) * [1, 1e-3, 1e6, 1, 1] + mean
        for rows in rng.integers(1, 60, len(graph))
    ]
    for X in shares:
        X[:, 3], X[:, 4] = mean, 0.1  # one value each
    found_mean, found = mean_and_deviation(SimulatedNetwork(graph), shares)
    X = np.vstack(shares)
    # What numpy gets, in more digits than a float has: its own sums of squares would be no more
    # exact than ours.
    exact = X.astype(np.longdouble)
    wanted = np.where([False, False, False, True, True], 1.0, exact.std(axis=0).astype(float))
    checked = slice(None) if abs(mean) < 1e9 else [0, 2, 3, 4]  # 1e-3 is hardly there beside 1e10
    assert np.allclose(found_mean, exact.mean(axis=0).astype(float), rtol=1e-14, atol=1e-12)
    assert np.allclose(found[:, checked], wanted[checked], rtol=1e-6)
    assert np.ptp(found, axis=0).max() == 0  # all agents have the same bits
