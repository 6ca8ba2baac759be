"""The check of ways to share the distances between all rows.

of all    what an agent knows is the squared distance between two rows, computed here from all rows;
          it knows those between its own rows, and some that involve rows of every other agent;
          agents in threads know what simulated ones do, and send what is counted
mask      symmetric, with the diagonal; None: all distances are known
"""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np

from peerlearn import SimulatedNetwork
from peerlearn.algorithms.distances import Distances, Known, Mask
from peerlearn.arrays import Array, Indices
from peerlearn.network.base import Network
from peerlearn.testing.cases.case import Arrays
from peerlearn.testing.comparing import check_threads, quiet
from peerlearn.testing.problems import GRAPHS

EXACT = 1e-9  # relative to the largest distance
COLUMNS = 3
SEED = 5

__all__ = ["check_distances"]


def check_distances(distances: Distances) -> None:
    """Check that a way of sharing gives agents true distances between the rows of all agents.

    Parameters
    ----------
    distances : Distances
        An object with `share`, as a model takes it for its parameter `distances`.

    Raises
    ------
    AssertionError
        With a sentence about what is wrong.

    Examples
    --------
    >>> from peerlearn.algorithms.distances import Landmarks
    >>> check_distances(Landmarks())
    """
    name = type(distances).__name__
    with quiet():
        for where, graph in GRAPHS.items():
            rows = draw_rows(len(graph))
            network = SimulatedNetwork(graph, exact_order=True)
            known = distances.share(network, rows, SEED)
            _check_known(f"{name} on {where}", known, rows)
    _check_bits(distances, name)


def draw_rows(agents: int, seed: int = 0) -> list[Array]:
    """Return different numbers of rows around centres that differ between agents."""
    rng = np.random.default_rng(seed)
    sizes = rng.permutation(np.linspace(4, 12, agents).astype(int))
    rows = []
    for n in sizes:
        spread = rng.standard_normal((n, COLUMNS))
        centre = 0.5 * rng.standard_normal(COLUMNS)
        rows.append(spread + centre)
    return rows


def squared_distances(rows: Sequence[Array]) -> Array:
    """Return all squared distances without any code of the package."""
    X = np.vstack(rows)
    differences = X[:, None, :] - X[None, :, :]
    D: Array = (differences**2).sum(axis=2)
    return D


def _check_known(what: str, known: Known, rows: Sequence[Array]) -> None:
    truth = squared_distances(rows)
    ends = np.cumsum([0, *map(len, rows)])
    agents = len(known.D)
    assert agents == len(rows), f"{what}: {agents} of {len(rows)} agents know something"
    for agent, D in enumerate(known.D):
        mask = np.ones(truth.shape, dtype=bool) if known.mask is None else known.mask[agent]
        assert D.shape == truth.shape, (
            f"{what}: agent {agent} has distances of shape {D.shape}, but there are {len(truth)} "
            "rows"
        )
        away = float(np.abs(D - truth)[mask].max() / truth.max())
        assert away <= EXACT, (
            f"{what}: agent {agent} knows distances that are {away:.1e} off, relative to the "
            "largest"
        )
        assert np.array_equal(mask, mask.T), f"{what}: the mask of agent {agent} is not symmetric"
        own = slice(ends[agent], ends[agent + 1])
        assert mask[own, own].all(), f"{what}: agent {agent} does not know its own distances"
        _check_others(what, agent, mask, ends)


def _check_others(what: str, agent: int, mask: Mask, ends: Indices) -> None:
    """Check that something is known of the rows of every agent, beyond the diagonal."""
    known = mask & ~np.eye(len(mask), dtype=bool)
    for other in range(len(ends) - 1):
        assert known[ends[other] : ends[other + 1]].any(), (
            f"{what}: agent {agent} knows no distance to any row of agent {other}"
        )


def _check_bits(distances: Distances, name: str) -> None:
    where, graph = next(iter(GRAPHS.items()))
    check_threads(f"{name} on {where}", graph, lambda network: _share(distances, network, graph))


def _share(distances: Distances, network: Network, graph: nx.Graph) -> Arrays:
    rows = draw_rows(len(graph))
    known = distances.share(network, [rows[agent] for agent in network.hosted], SEED)
    masks = known.mask
    if masks is None:
        masks = [np.ones(D.shape, dtype=bool) for D in known.D]
    return {"D": np.stack(known.D), "mask": np.stack(masks)}
