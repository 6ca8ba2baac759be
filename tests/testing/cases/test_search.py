"""Searches of agents that live apart: the same bits as all of them in one process."""

from __future__ import annotations

import pytest

from peerlearn import graphs
from peerlearn.testing.cases.search import cases
from peerlearn.testing.comparing import check_threads

CASES = cases()


@pytest.mark.parametrize("name", CASES)
def test_agents_apart_find_the_same_bits(name):
    check_threads(name, graphs.erdos_renyi(7, 0.4, seed=1), CASES[name])


def test_models_of_all_kinds_are_searched_with():
    wanted = ("LogisticClassifier", "RVFLRegressor paths", "ESNRegressor")
    assert {f"NetworkSearchCV {name}" for name in wanted} <= {*CASES}
