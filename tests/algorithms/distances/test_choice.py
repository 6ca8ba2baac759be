"""What agents know of the distances between all rows, by landmarks and by exchange; and who is
refused.
"""

from __future__ import annotations

import pytest

from peerlearn import graphs
from peerlearn.algorithms.distances import Exchange, Landmarks, distances_of
from peerlearn.errors import InputError
from peerlearn.testing.cases.distances import cases
from peerlearn.testing.comparing import check_threads


@pytest.mark.parametrize(
    "graph", [graphs.ring(4), graphs.star(5), graphs.erdos_renyi(7, 0.35, seed=0)], ids=str
)
@pytest.mark.parametrize("name", cases())
def test_apart_to_the_bit(name, graph):
    """Also the completions: one process with all agents, and one thread for each."""
    check_threads(name, graph, cases()[name])


def test_found_by_name():
    assert distances_of("landmarks") == Landmarks()
    assert distances_of("exchange") == Exchange()
    assert distances_of(Exchange(0.5)) == Exchange(0.5)
    with pytest.raises(
        InputError, match="distances 'landmark' is not known, did you mean 'landmarks'"
    ):
        distances_of("landmark")
