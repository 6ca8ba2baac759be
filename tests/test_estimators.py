"""Every estimator of the package, found in it, passes scikit-learn's own checks: in one place, and over a network."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from peerlearn import SimulatedNetwork, graphs, models

KINDS = [getattr(models, name) for name in models.__all__]
CHECKED = [
    *(kind() for kind in KINDS),
    *(kind(n_hidden=30, network=SimulatedNetwork(graphs.ring(2))) for kind in KINDS),
    *(kind(n_hidden=15, direct_links=True, network=SimulatedNetwork(graphs.ring(2))) for kind in KINDS),
]


def named(model):
    where = "alone" if model.network is None else "linked" if model.direct_links else "network"
    return f"{type(model).__name__}-{where}"


CHECKS = [
    pytest.param(model, check, id=f"{named(model)}-{name}")
    for model in CHECKED
    for model, check in estimator_checks_generator(model)
    if (name := check.func.__name__) != "check_array_api_input"  # for estimators that claim to take other arrays
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "check"), CHECKS)
def test_scikit_learn_contract(model, check):
    check(model)
