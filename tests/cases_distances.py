"""Cases of sharing and completing distances that every engine must agree on, in the manner of conformance_cases.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from peerlearn.algorithms.completion import BlockCompletion, DiffusionCompletion
from peerlearn.algorithms.distances import Exchange, Known, Landmarks
from peerlearn.local.privacy import RandomProjection, TanhTransform
from peerlearn.network.base import Network

Arrays = dict[str, np.ndarray]
Case = Callable[[Network, Sequence[int]], Arrays]

ROWS = (
    1,
    33,
    24,
    36,
    2,
    7,
    15,
)  # of each agent; together more than 91, whose squares numpy sums in pieces
EXCHANGE = Exchange(
    0.3, 0.1, pattern_rounds=6, entry_rounds=4
)  # leaves something to complete, also of four agents
ITERATIONS = 23  # two windows of ten rounds, and some more


def rows_of(agent: int) -> np.ndarray:
    return np.random.default_rng(agent).standard_normal((ROWS[agent], 3)) + 0.1 * agent


def cases() -> dict[str, Case]:
    def shared(network: Network, hosted: Sequence[int], way: Any, privacy: Any = None) -> Arrays:
        transform = privacy.drawn(3, 7) if privacy else np.asarray
        return told(way.share(network, [transform(rows_of(agent)) for agent in hosted], seed=5))

    def completed(network: Network, hosted: Sequence[int], way: Any) -> Arrays:
        known = EXCHANGE.share(network, [rows_of(agent) for agent in hosted], seed=5)
        found = way.complete(network, known, seed=6)
        answer = {"D": np.stack(found.D)}
        if found.report.note:  # it went back: what diverges makes much of a last bit
            return answer
        residuals = np.tile(found.report.residuals, (len(hosted), 1))
        return answer | {"misfits": found.misfits.T.copy(), "residuals": residuals}

    few = {"iterations": ITERATIONS, "tolerance": 1e-12}
    return {
        "distances landmarks": partial(shared, way=Landmarks()),
        "distances landmarks projected": partial(
            shared, way=Landmarks(), privacy=RandomProjection(2)
        ),
        "distances exchange": partial(shared, way=EXCHANGE),
        "distances exchange tanh": partial(
            shared, way=EXCHANGE, privacy=TanhTransform(2, 50, C=1e-3)
        ),
        "completion diffusion": partial(completed, way=DiffusionCompletion(**few)),
        "completion diffusion too far": partial(
            completed, way=DiffusionCompletion(**few, step=1.0)
        ),  # goes back
        "completion block": partial(completed, way=BlockCompletion(**few)),
    }


def told(known: Known) -> Arrays:
    """What each agent knows, and where."""
    masks = [np.ones_like(D, dtype=bool) for D in known.D] if known.mask is None else known.mask
    return {"D": np.stack(known.D), "mask": np.stack(masks)}
