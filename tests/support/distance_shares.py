"""Rows and distances of agents, computed by hand."""

from __future__ import annotations

import numpy as np

from peerlearn import graphs

GRAPHS = {
    "ring": graphs.ring(5),
    "star": graphs.star(5),
    "complete": graphs.complete(5),
    "random": graphs.erdos_renyi(5, 0.5, seed=1),
}


def tables(agents=5, rows=(1, 6, 3, 9, 4), d=4, seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((rows[k % len(rows)], d)) + offset for k in range(agents)]


def by_differences(X):
    return ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)


def away(D, truth):
    return np.linalg.norm(D - truth) / np.linalg.norm(truth)
