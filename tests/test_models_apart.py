"""Every model of the package on agents that live apart: the same bits as all of them in one process.

A model is found by itself, with every algorithm that it may have (`cases_models`).
"""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import SimulatedNetwork, graphs
from peerlearn.local.threads import one_blas_thread
from peerlearn.models.registry import models
from tests.cases_models import OTHERS, SMALL, cases
from tests.split_network import run_apart

GRAPH = graphs.erdos_renyi(7, 0.4, seed=1)
CASES = cases()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::peerlearn.errors.NotConverged")  # they are cut short
def test_agents_apart_find_the_same_bits(name):
    case = CASES[name]
    with one_blas_thread():
        together = case(SimulatedNetwork(GRAPH, exact_order=True), range(7))
        apart = run_apart(GRAPH, lambda network, k: case(network, [k]), exact_order=True)
    for key, rows in together.items():
        assert len(rows) == 7, key
        assert np.concatenate([found[key] for found in apart]).tobytes() == rows.tobytes(), key


def test_every_model_is_tried_with_every_algorithm_that_it_may_have():
    for name, kind in models().items():
        own = [case for case in CASES if case.split()[0] == name]
        assert own
        for parameter, family in kind.parts.items():
            for called, algorithm in family.kinds().items():
                known = called if parameter == "stream" else algorithm.__name__
                assert any(known in case for case in own), (name, parameter, known)


def test_every_setting_that_is_tried_is_a_parameter_of_some_model():
    taken = {parameter for kind in models().values() for parameter in kind().get_params()}
    assert {*SMALL, *(name for settings in OTHERS.values() for name in settings)} <= taken
