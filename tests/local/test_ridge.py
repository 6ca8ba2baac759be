"""Ridge regression of one agent."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn.errors import DataError
from peerlearn.local.normal_equations import solve_ridge


def test_dependent_features_without_penalty_get_their_sentence():
    H = np.random.default_rng(0).standard_normal((50, 4))
    H = np.hstack([H, H[:, :1]])
    with pytest.raises(
        DataError, match="linearly dependent, so that alpha=0 leaves the coefficients undetermined"
    ):
        solve_ridge(H.T @ H, H.T @ H[:, :1], 0.0)
