"""Every estimator of the package, found in it, passes scikit-learn's own checks: in one place, and over a network."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from peerlearn import SimulatedNetwork, graphs, models
from peerlearn.models.unlabelled import PartlyLabelled

KINDS = [getattr(models, name) for name in models.__all__]
WAYS = {  # hidden units are fewer only to be quick
    "alone": dict,
    "network": lambda: {"n_hidden": 30, "network": SimulatedNetwork(graphs.ring(2))},
    "linked": lambda: {"n_hidden": 15, "direct_links": True, "network": SimulatedNetwork(graphs.ring(2))},
}


def checked():
    for kind in KINDS:
        known = kind().get_params()
        for way, settings in WAYS.items():
            if way != "linked" or "direct_links" in known:
                yield way, kind(**{name: value for name, value in settings().items() if name in known})


CHECKS = [
    pytest.param(model, check, id=f"{type(model).__name__}-{way}-{name}")
    for way, model in checked()
    for model, check in estimator_checks_generator(model)
    if (name := check.func.__name__) != "check_array_api_input"  # for estimators that claim to take other arrays
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "check"), CHECKS)
def test_scikit_learn_contract(model, check):
    if isinstance(model, PartlyLabelled) and check.func.__name__ == "check_classifiers_classes":
        # It has -1 for a class, but with those of scikit-learn's semi-supervised estimators that it knows by name.
        check.func("SelfTrainingClassifier", model)
    else:
        check(model)
