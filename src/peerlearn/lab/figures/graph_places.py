"""Places of agents on a page: near their neighbors, with circles as large as there is room for."""

from __future__ import annotations

import networkx as nx
import numpy as np
from scipy.sparse import csgraph
from scipy.spatial import KDTree

from peerlearn.arrays import Array
from peerlearn.lab.figures.style import level

LEVEL_UP_TO = 200  # agents; more are placed in less time, and less evenly
WIDE = 370  # points that the graph has on the page
HIGH = 320
PATHS_UP_TO = 5000  # links; more are dots in the .svg too, which would be slow to open


def places(graph: nx.Graph) -> Array:
    """Return where agents are in points: where they say, or near their neighbors."""
    own = np.array(
        [[graph.nodes[agent].get(axis, np.nan) for axis in "xy"] for agent in range(len(graph))]
    )
    if np.isfinite(own).all() and len(np.unique(own, axis=0)) == len(own):
        at = own
    elif len(graph) <= LEVEL_UP_TO:
        at = level(graph)
    else:
        at = _by_distances(graph)
    middle = (at.max(axis=0) + at.min(axis=0)) / 2
    extent = np.maximum(np.ptp(at, axis=0), 1e-9)
    return np.asarray((at - middle) * min(WIDE / extent[0], HIGH / extent[1]))


def _by_distances(graph: nx.Graph) -> Array:
    """Return places as far apart as in the graph, as well as two dimensions can.

    Classical scaling; Torgerson, 1952.
    """
    links = nx.to_scipy_sparse_array(graph, nodelist=range(len(graph)), weight=None)
    squares = csgraph.shortest_path(links, unweighted=True) ** 2
    rows = squares.mean(axis=0)
    values, vectors = np.linalg.eigh((rows + rows[:, None] - rows.mean() - squares) / 2)
    if (
        values[-1] < 1.01 * values[-3]
    ):  # everybody is equally far from everybody, and no two dimensions show more
        return level(graph)
    return np.asarray(vectors[:, :-3:-1] * np.sqrt(np.maximum(values[:-3:-1], 0)))


def diameter(places: Array) -> float:
    """Return the diameter of an agent's circle in points, as large as its neighbors allow."""
    nearest = KDTree(places).query(places, 2)[0][:, 1]
    return float(np.clip(0.75 * np.quantile(nearest, 0.05), 4.5, 19))
