"""Squared distances between rows."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn.local.squared_distances import squared_distances
from tests.support.distance_shares import away, by_differences


class TestSquaredDistances:
    @pytest.mark.parametrize("offset", [0.0, 1e6])
    def test_are_those_of_differences(self, offset):
        X, Y = np.random.default_rng(0).standard_normal((2, 20, 7)) + offset
        D = squared_distances(X)
        assert away(D, by_differences(X)) < 1e-14
        assert np.array_equal(D, D.T)
        assert not np.diagonal(D).any()
        assert away(squared_distances(X, Y), ((X[:, None] - Y[None]) ** 2).sum(axis=2)) < 1e-14

    def test_of_rows_that_are_the_same_are_never_negative(self):
        X = np.repeat(np.random.default_rng(0).standard_normal((1, 5)), 8, axis=0)
        assert squared_distances(X, X).min() >= 0
        assert squared_distances(X).max() < 1e-30
