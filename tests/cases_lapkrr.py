"""The cases of LapKRRClassifier that every engine must agree on, bit by bit; rows and labels are those of anchors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from peerlearn import DiffusionCompletion, Exchange, LapKRRClassifier, RandomProjection
from peerlearn.network.base import Network
from tests.cases_anchors import Case, inputs, labels

EXCHANGE = Exchange(0.3, 0.1, pattern_rounds=6, entry_rounds=4)


def cases() -> dict[str, Case]:
    def case(network: Network, hosted: Sequence[int], classes: int, settings: dict[str, Any]) -> dict[str, np.ndarray]:
        model = LapKRRClassifier(n_neighbors=4, power=2, network=network, random_state=3, **settings)
        model.fit([(inputs(agent), labels(agent, classes)) for agent in hosted])
        most = max(len(inputs(agent)) for agent in range(network.size))
        found = {"a": np.stack([np.pad(own, ((0, most - len(own)), (0, 0))) for own in model.coefficients_])}
        if settings.get("distances") != "local":  # where all agents say the same
            found["outputs"] = np.tile(model.decision_function(inputs(1)), (len(hosted), *[1] * min(classes - 1, 2)))
        return found

    few = {"completion": DiffusionCompletion(iterations=23, tolerance=1e-12)}
    return {
        "LapKRRClassifier": partial(case, classes=3, settings={}),
        "LapKRRClassifier projected": partial(case, classes=2, settings={"privacy": RandomProjection(3)}),
        "LapKRRClassifier exchange": partial(case, classes=3, settings={"distances": EXCHANGE, **few}),
        "LapKRRClassifier block": partial(case, classes=2, settings={"distances": EXCHANGE, "completion": "block"}),
        "LapKRRClassifier local": partial(case, classes=3, settings={"distances": "local"}),
    }
