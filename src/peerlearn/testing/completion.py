"""The check of completions: of rows in few dimensions, they find the one possible answer.

of all    every agent ends with the distances between all rows, from different parts of them;
          they are symmetric, 0 or more, and 0 on the diagonal; what is known completely stays;
          the answer scales with the distances; the report has what was sent, and converged;
          agents in threads compute what simulated ones do
"""

from __future__ import annotations

import networkx as nx
import numpy as np

from peerlearn import SimulatedNetwork
from peerlearn.algorithms.completion import Completed, Completion
from peerlearn.algorithms.distances import Known, Mask, Places
from peerlearn.arrays import Array
from peerlearn.network.base import Network
from peerlearn.testing.cases.case import Arrays
from peerlearn.testing.comparing import check_threads, quiet
from peerlearn.testing.distances import COLUMNS, draw_rows, squared_distances
from peerlearn.testing.problems import GRAPHS

SHARE = 0.7  # of the distances that an agent knows
NEAR = 1e-2  # relative distance to the truth: misfits are below the tolerance, errors are larger
SCALE = 4.0
SEED = 6

__all__ = ["check_completion"]


def check_completion(completion: Completion) -> None:
    """Check that a completion finds all distances from parts of them.

    Parameters
    ----------
    completion : Completion
        An object with `complete`, as a model takes it for its parameter `completion`.

    Raises
    ------
    AssertionError
        With a sentence about what is wrong.

    Examples
    --------
    >>> from peerlearn.algorithms.completion import DiffusionCompletion
    >>> check_completion(DiffusionCompletion())
    """
    name = type(completion).__name__
    with quiet():
        for where, graph in GRAPHS.items():
            what = f"{name} on {where}"
            network = SimulatedNetwork(graph, exact_order=True)
            found = completion.complete(network, know_some(network), SEED)
            _check_answer(what, found, network)
            _check_scale(what, completion, found, graph)
            _check_complete_knowledge(what, completion, graph)
    where, graph = next(iter(GRAPHS.items()))
    check_threads(f"{name} on {where}", graph, lambda network: _complete(completion, network))


def know_some(network: Network, scale: float = 1.0) -> Known:
    """Return what the hosted agents know: each another part, and all that its own rows have."""
    rows = draw_rows(network.size)
    places = Places(tuple(map(len, rows)))
    truth = scale * squared_distances(rows)
    masks = [_draw_mask(agent, places) for agent in network.hosted]
    return Known(places, [truth * mask for mask in masks], masks, COLUMNS)


def _draw_mask(agent: int, places: Places) -> Mask:
    draws = np.random.default_rng(agent).random((places.N, places.N))
    upper = np.triu(draws < SHARE, 1)
    mask = upper | upper.T | np.eye(places.N, dtype=bool)
    own = places.of(agent)
    mask[own, own] = True
    return mask


def _truth(network: Network) -> Array:
    return squared_distances(draw_rows(network.size))


def _check_answer(what: str, found: Completed, network: Network) -> None:
    truth = _truth(network)
    sent = network.ledger.since()
    assert found.report.converged, f"{what} does not converge on an easy problem"
    assert found.report.sent == sent, f"{what} reports {found.report.sent}, not {sent}"
    for agent, D in enumerate(found.D):
        away = float(np.linalg.norm(D - truth) / np.linalg.norm(truth))
        assert away <= NEAR, (
            f"{what}: agent {agent} ends {away:.1e} away from the distances between all rows"
        )
        symmetric = np.array_equal(D, D.T)
        zero_diagonal = not np.diagonal(D).any()
        proper = symmetric and D.min() >= 0 and zero_diagonal
        assert proper, (
            f"{what}: agent {agent} does not end with distances: they must be symmetric, 0 or "
            "more, and 0 on the diagonal"
        )


def _check_scale(what: str, completion: Completion, found: Completed, graph: nx.Graph) -> None:
    """Check that distances in another unit give the same answer in that unit."""
    network = SimulatedNetwork(graph, exact_order=True)
    other = completion.complete(network, know_some(network, SCALE), SEED)
    for agent, (D, scaled) in enumerate(zip(found.D, other.D, strict=True)):
        away = float(np.linalg.norm(scaled / SCALE - D) / np.linalg.norm(D))
        assert away <= NEAR, (
            f"{what}: {SCALE:g} times the distances do not give {SCALE:g} times the answer at "
            f"agent {agent} ({away:.1e} off)"
        )


def _check_complete_knowledge(what: str, completion: Completion, graph: nx.Graph) -> None:
    network = SimulatedNetwork(graph, exact_order=True)
    truth = _truth(network)
    places = Places(tuple(map(len, draw_rows(network.size))))
    known = Known(places, [truth] * len(graph), columns=COLUMNS)
    found = completion.complete(network, known, SEED)
    unchanged = all(np.array_equal(D, truth) for D in found.D)
    assert unchanged, f"{what} changes distances that all agents know completely"


def _complete(completion: Completion, network: Network) -> Arrays:
    found = completion.complete(network, know_some(network), SEED)
    return {"D": np.stack(found.D), "misfits": found.misfits.T.copy()}
