"""Distances of which each agent knows a part."""

from __future__ import annotations

import numpy as np

from peerlearn import graphs
from peerlearn.algorithms.completion import BlockCompletion, DiffusionCompletion
from peerlearn.algorithms.distances import Known, Places
from peerlearn.local.squared_distances import squared_distances

SEVEN = graphs.erdos_renyi(7, 0.5, seed=3)
METHODS = [DiffusionCompletion(5), BlockCompletion(7)]
X = np.random.default_rng(1).standard_normal((70, 5))
TRUTH = squared_distances(X)
TENS = Places((10,) * 7)


def mask_of(share, N=70, seed=0):
    upper = np.triu(np.random.default_rng(seed).random((N, N)) < share, 1)
    return upper | upper.T | np.eye(N, dtype=bool)


def known_to_all(mask, truth=TRUTH, places=TENS, agents=7):
    return Known(places, [truth * mask] * agents, [mask] * agents)


def away(D, truth=TRUTH):
    return np.linalg.norm(D - truth) / np.linalg.norm(truth)
