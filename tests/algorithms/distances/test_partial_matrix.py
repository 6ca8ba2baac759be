"""Matrices of distances of which a part is known."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn.algorithms.distances import Known, Places
from peerlearn.errors import DataError
from peerlearn.local.squared_distances import squared_distances


class TestKnown:
    D = squared_distances(np.arange(6.0).reshape(3, 2))

    @pytest.mark.parametrize(
        ("D", "mask", "sentence"),
        [
            (D[:2], None, "distances must be 3 x 3 of float64, not 2 x 3 of float64"),
            (D, np.ones((3, 2), bool), "mask must be 3 x 3"),
            (-D, None, "finite, 0 or more, and 0 on the diagonal"),
            (D + np.eye(3), None, "0 on the diagonal"),
            (D * np.nan, None, "finite"),
            (np.triu(D), None, "symmetric"),
            (D, np.eye(3, dtype=bool), "0 where the mask is False"),
        ],
    )
    def test_refuses_what_are_no_distances(self, D, mask, sentence):
        with pytest.raises(DataError, match=sentence):
            Known(Places((1, 2)), [D], None if mask is None else [mask])
