"""Random features and targets of several agents."""

from __future__ import annotations

import numpy as np


def shares(sizes, B, M, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, B)) for n in sizes], [
        rng.standard_normal((n, M)) for n in sizes
    ]
