"""Cases of sharing and completing the distances between all rows."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from peerlearn.algorithms.completion import COMPLETION, DiffusionCompletion
from peerlearn.algorithms.distances import DISTANCES, Exchange
from peerlearn.arrays import Array
from peerlearn.local.privacy import RandomProjection, TanhTransform
from peerlearn.network.base import Network
from peerlearn.testing.cases.case import Arrays, Case

ROWS = (1, 33, 24, 36, 2, 7, 15)  # of each agent; numpy sums the squares of more than 91 in pieces
FEW: dict[str, Any] = {  # four agents and more have something left to complete after so few rounds
    "patterns": 0.3,
    "entries": 0.1,
    "pattern_rounds": 6,
    "entry_rounds": 4,
    "iterations": 23,  # two windows of ten, and some more
    "tolerance": 1e-12,
}
PRIVACY = {"": None, " projected": RandomProjection(2), " tanh": TanhTransform(2, 50, C=1e-3)}


def cases() -> dict[str, Case]:
    """Return the cases of every way to share and to complete distances, by name."""
    found: dict[str, Case] = {}
    for name, kind in DISTANCES.kinds().items():
        for words, privacy in PRIVACY.items():
            way = with_few_iterations(kind)
            found[f"distances {name}{words}"] = partial(_share, way=way, privacy=privacy)
    for name, completion in COMPLETION.kinds().items():
        found[f"completion {name}"] = partial(_complete, way=with_few_iterations(completion))
    too_far = with_few_iterations(DiffusionCompletion, step=1.0)  # it goes back
    return found | {"completion diffusion too far": partial(_complete, way=too_far)}


def with_few_iterations(kind: type[Any], **settings: Any) -> Any:
    """Return an algorithm that is cut short."""
    few = {field.name: FEW[field.name] for field in fields(kind) if field.name in FEW}
    return kind(**few, **settings)


def _rows(agent: int) -> Array:
    return np.random.default_rng(agent).standard_normal((ROWS[agent], 3)) + 0.1 * agent


def _share(network: Network, way: Any, privacy: Any = None) -> Arrays:
    transform = privacy.drawn(3, 7) if privacy else np.asarray
    rows = [transform(_rows(agent)) for agent in network.hosted]
    known = way.share(network, rows, seed=5)
    masks = known.mask
    if masks is None:
        masks = [np.ones_like(D, dtype=bool) for D in known.D]
    return {"D": np.stack(known.D), "mask": np.stack(masks)}


def _complete(network: Network, way: Any) -> Arrays:
    known = with_few_iterations(Exchange).share(
        network, [_rows(agent) for agent in network.hosted], seed=5
    )
    found = way.complete(network, known, seed=6)
    answer = {"D": np.stack(found.D)}
    # With a note it went back: iterations that diverge amplify a last bit.
    if found.report.note:
        return answer
    residuals = np.tile(found.report.residuals, (len(network.hosted), 1))
    return answer | {"misfits": found.misfits.T.copy(), "residuals": residuals}
