"""Every estimator of the package, found in it, passes scikit-learn's own checks: in one place, and
over a network.
"""

from __future__ import annotations

import pytest

from peerlearn import SimulatedNetwork, graphs
from peerlearn.models.registry import models
from peerlearn.testing.conventions import convention_checks

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
        known = kind().get_params(deep=False)
        for way, settings in WAYS.items():
            if way != "linked" or "direct_links" in known:
                yield (
                    way,
                    kind(**{name: value for name, value in settings().items() if name in known}),
                )


CHECKS = [
    pytest.param(check, id=f"{type(model).__name__}-{way}-{name}")
    for way, model in checked()
    for name, check in convention_checks(model)
]


@pytest.mark.parametrize("check", CHECKS)
def test_scikit_learn_contract(check):
    check()
