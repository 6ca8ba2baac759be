"""The cases of AnchorLapClassifier that every engine must agree on, bit by bit.

What an agent has depends on its number alone. Labels are texts. Some agents have no labelled row, one has no other, and
one has a single row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from peerlearn.models.anchor_lap import AnchorLapClassifier
from peerlearn.network.base import Network

Case = Callable[[Network, Sequence[int]], dict[str, np.ndarray]]

ROWS = (1, 30, 4, 25, 7, 13, 18)
METALS = np.array(["iron", "lead", "tin"])


def inputs(agent: int) -> np.ndarray:
    """Three clouds in four dimensions."""
    return np.random.default_rng((agent, 9)).standard_normal((ROWS[agent], 4)) + 2.0 * np.eye(3, 4)[kinds(agent)]


def kinds(agent: int) -> np.ndarray:
    return (np.arange(ROWS[agent]) + agent) % 3


def labels(agent: int, classes: int) -> np.ndarray:
    """Every fourth row has its label; all of agent 2 have, none of agents 0 and 3. The texts are objects beside -1."""
    y = METALS[np.minimum(kinds(agent), classes - 1)].astype(object)
    known = np.arange(ROWS[agent]) % 4 == 0
    y[~known if agent not in (0, 2, 3) else np.full(len(y), agent != 2)] = -1
    return y


def cases() -> dict[str, Case]:
    def case(network: Network, hosted: Sequence[int], classes: int, settings: dict[str, Any]) -> dict[str, np.ndarray]:
        model = AnchorLapClassifier(network=network, random_state=3, **settings)
        model.fit([(inputs(agent), labels(agent, classes)) for agent in hosted])
        return {
            "coefficients": model.coefficients_,
            "anchors": np.tile(model.anchors_, (len(hosted), 1, 1)),
            "predictions": np.tile(model.predict(inputs(1)), (len(hosted), 1)),
        }

    return {
        "AnchorLapClassifier": partial(case, classes=3, settings={}),
        "AnchorLapClassifier of two classes": partial(
            case, classes=2, settings={"n_anchors": 9, "n_local": 5, "n_nearest": 3, "rank": 7, "gamma_I": 0.5}
        ),
    }
