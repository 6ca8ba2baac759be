"""The cases of S3VMClassifier that every engine must agree on, bit by bit.

What an agent has depends on its number alone. Labels are texts. Some agents have no labelled row, one has no other, and
one has a single row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from peerlearn.models.s3vm import S3VMClassifier
from peerlearn.network.base import Network

Case = Callable[[Network, Sequence[int]], dict[str, np.ndarray]]

ROWS = (1, 30, 4, 25, 7, 13, 18)
COLUMNS = 6


def inputs(agent: int) -> np.ndarray:
    """Two clouds, a third of the entries zero."""
    rng = np.random.default_rng((agent, 8))
    X = rng.standard_normal((ROWS[agent], COLUMNS)) + 1.5 * np.where(positive(agent), 1.0, -1.0)[:, None]
    return np.where(rng.random(X.shape) < 1 / 3, 0.0, X)


def positive(agent: int) -> np.ndarray:
    return np.arange(ROWS[agent]) % 5 < 2


def labels(agent: int) -> np.ndarray:
    """Every third row has its label; all of agent 2 have, none of agents 0 and 3. The texts are objects beside -1."""
    y = np.where(positive(agent), "tin", "lead").astype(object)
    known = np.arange(ROWS[agent]) % 3 == 0
    y[~known if agent not in (0, 2, 3) else np.full(len(y), agent != 2)] = -1
    return y


def cases() -> dict[str, Case]:
    def case(network: Network, hosted: Sequence[int], form: Any, settings: dict[str, Any]) -> dict[str, np.ndarray]:
        model = S3VMClassifier(2.0, 3.0, network=network, **settings)
        model.fit([(form(inputs(agent)), labels(agent)) for agent in hosted])
        return {
            "coefficients": model.coefficients_,
            "mean": model.mean_,
            "intercept": model.intercept_,
            "iterations": np.full(len(hosted), model.report_.iterations),
            "predictions": np.tile(model.predict(inputs(1)), (len(hosted), 1)),
        }

    return {
        "S3VMClassifier": partial(case, form=np.asarray, settings={}),
        "S3VMClassifier sparse": partial(case, form=sp.csr_array, settings={}),
        "S3VMClassifier known share": partial(case, form=np.asarray, settings={"positive_share": 0.4}),
        "S3VMClassifier tracking": partial(case, form=sp.csr_array, settings={"solver": "tracking"}),
    }
