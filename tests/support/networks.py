"""Random rows for the agents of a network."""

from __future__ import annotations

import numpy as np


def random_rows(network, *shape, seed=0):
    return np.random.default_rng(seed).standard_normal((network.size, *shape))
