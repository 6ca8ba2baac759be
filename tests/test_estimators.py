"""Every estimator of the package, found in it, passes scikit-learn's own checks: in one place, and over a network."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from peerlearn import SimulatedNetwork, graphs
from peerlearn.models.registry import models

KINDS = [kind for kind in models().values() if hasattr(kind, "fit")]  # no filters
WAYS = {  # hidden units are fewer only to be quick
    "alone": dict,
    "network": lambda: {
        "n_hidden": 30,
        "n_reservoir": 20,
        "network": SimulatedNetwork(graphs.ring(2)),
    },
    "linked": lambda: {
        "n_hidden": 15,
        "direct_links": True,
        "network": SimulatedNetwork(graphs.ring(2)),
    },
}


def checked():
    for kind in KINDS:
        known = kind().get_params()
        for way, settings in WAYS.items():
            if way != "linked" or "direct_links" in known:
                yield (
                    way,
                    kind(**{name: value for name, value in settings().items() if name in known}),
                )


# These call partial_fit(X, y) with one table, which cannot be dealt to agents that have a running
# sequence each.
TABLE_IN_TIME = (
    "check_fit_score_takes_y",
    "check_n_features_in_after_fitting",
    "check_estimators_partial_fit_n_features",
)


def applies(model, name):
    """check_array_api_input is for estimators that claim to take other arrays."""
    apart = model.takes == "sequences" and model.network is not None
    return name != "check_array_api_input" and not (apart and name in TABLE_IN_TIME)


CHECKS = [
    pytest.param(model, check, id=f"{type(model).__name__}-{way}-{name}")
    for way, model in checked()
    for model, check in estimator_checks_generator(model)
    if applies(model, name := check.func.__name__)
]


def in_order(model):
    """The model without the tag by which no check shuffles rows: one that does not shuffle would be skipped for it."""

    class InOrder(type(model)):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.non_deterministic = False
            return tags

    return InOrder(**model.get_params())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "check"), CHECKS)
def test_scikit_learn_contract(model, check):
    if model.takes == "sequences" and check.func.__name__ == "check_pipeline_consistency":
        check.func(type(model).__name__, in_order(model))
    elif model.partly_labelled and check.func.__name__ == "check_classifiers_classes":
        # It has -1 for a class, but with those of scikit-learn's semi-supervised estimators that it
        # knows by name.
        check.func("SelfTrainingClassifier", model)
    else:
        check(model)
