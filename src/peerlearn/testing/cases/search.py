"""Cases of `NetworkSearchCV`: every model whose training is sums."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from peerlearn.models.registry import models
from peerlearn.models.search import NetworkSearchCV
from peerlearn.network.base import Network
from peerlearn.testing import model_data as data
from peerlearn.testing.cases.case import Arrays, Case
from peerlearn.testing.model_settings import make_small

GRID = {"alpha": [0.5, 2.0, 20.0]}
FIXED = {"activation": "tanh"}  # of models that choose their features otherwise


def cases() -> dict[str, Case]:
    """Return a case for every model that can be searched with, by name."""
    found: dict[str, Case] = {}
    for name, kind in models().items():
        if kind.sum_solvers:
            found[f"NetworkSearchCV {name}"] = partial(_search, model=make_small(kind))
            if hasattr(kind, "fit_folds"):
                model = make_small(kind, FIXED)
                found[f"NetworkSearchCV {name} paths"] = partial(_search, model=model)
    return found


def _search(network: Network, model: Any) -> Arrays:
    search = NetworkSearchCV(model, GRID, cv=3, network=network, random_state=4)
    if model.takes == "sequences":
        search.fit([data.sequences(agent) for agent in network.hosted])
    else:
        search.fit([(data.rows(agent), data.targets(model, agent)) for agent in network.hosted])
    scores = search.cv_results_
    agents = len(network.hosted)
    return {
        "coefficients": search.coefficients_,
        "means": np.tile(scores["mean_test_score"], (agents, 1)),
        "spreads": np.tile(scores["std_test_score"], (agents, 1)),
    }
