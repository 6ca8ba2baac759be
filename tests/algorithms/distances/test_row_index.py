"""Where the rows of each agent are among all rows."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import SimulatedNetwork
from peerlearn.algorithms.distances import Places
from peerlearn.errors import DataError, NetworkError
from tests.support.distance_shares import GRAPHS
from tests.support.split_network import run_apart


class TestPlaces:
    def test_are_agreed_upon(self):
        together = Places.agree(SimulatedNetwork(GRAPHS["ring"]), [3, 0, 2, 1, 4])
        assert together == Places((3, 0, 2, 1, 4))
        assert (together.N, together.of(2), together.of(1)) == (10, slice(3, 5), slice(3, 3))
        counts = [3, 0, 2, 1, 4]
        assert (
            run_apart(GRAPHS["ring"], lambda network, k: Places.agree(network, [counts[k]]))
            == [together] * 5
        )

    def test_one_row_in_all(self):
        with pytest.raises(
            DataError,
            match="all agents together have 1 row, and a distance needs two: give more rows",
        ):
            Places.agree(SimulatedNetwork(GRAPHS["ring"]), [1, 0, 0, 0, 0])

    def test_too_many_rows(self):
        with pytest.raises(DataError, match="distances between all of them"):
            Places((15_000, 10_000))
        with pytest.raises(DataError, match="or use AnchorLapClassifier, which needs no distances"):
            Places.agree(SimulatedNetwork(GRAPHS["ring"]), [3, 2, 2, 30_000, 4])

    @pytest.mark.parametrize("said", [-4.0, np.nan, np.inf, 2.5, 1e17])
    def test_a_number_of_rows_that_cannot_be(self, said):
        with pytest.raises(
            NetworkError, match=r"agent 3 (announced|computed numbers that are not finite)"
        ):
            Places.agree(SimulatedNetwork(GRAPHS["ring"]), [3, 2, 2, said, 4])
