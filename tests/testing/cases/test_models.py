"""Every model of the package on agents that live apart: the same bits as all of them in one
process.

A model is found by itself, with every algorithm that it may have (`peerlearn.testing.cases`).
"""

from __future__ import annotations

import pytest

from peerlearn import graphs
from peerlearn.models.registry import models
from peerlearn.testing.cases.models import cases
from peerlearn.testing.comparing import check_threads
from peerlearn.testing.model_settings import OTHERS, SMALL

GRAPH = graphs.erdos_renyi(7, 0.4, seed=1)
CASES = cases()


@pytest.mark.processes
@pytest.mark.parametrize("name", CASES)
def test_agents_apart_find_the_same_bits(name):
    check_threads(name, GRAPH, CASES[name])


def test_every_model_is_tried_with_every_algorithm_that_it_may_have():
    for name, kind in models().items():
        own = [case for case in CASES if case.split()[0] == name]
        assert own
        for parameter, family in kind.parts.items():
            for called, algorithm in family.kinds().items():
                known = called if parameter == "stream" else algorithm.__name__
                assert any(known in case for case in own), (name, parameter, known)


def test_every_setting_that_is_tried_is_a_parameter_of_some_model():
    taken = {parameter for kind in models().values() for parameter in kind().get_params(deep=False)}
    assert {*SMALL, *(name for settings in OTHERS.values() for name in settings)} <= taken
