"""A table whose columns have very different scales, at four sites of different sizes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

ROWS = 400
_rng = np.random.default_rng(0)
_scaled = _rng.standard_normal((ROWS, 3))
X = _scaled * [1.0, 50.0, 0.01] + [0.0, 2000.0, 3.0]
SITES = np.repeat([0, 1, 2, 3], [40, 200, 10, 150])
ENDS = [40, 240, 250]
F = 0.3 + _scaled @ [1.0, -0.5, 0.2] + np.array([0.3, -0.2, 0.1, 0.0])[SITES]
WEIGHTS = _rng.uniform(0.5, 2.0, ROWS)
OFFSETS = 0.3 * _rng.standard_normal(ROWS)
TWO = (_rng.uniform(size=ROWS) < 1 / (1 + np.exp(-F))).astype(int)
THREE = np.digitize(F + _rng.logistic(size=ROWS), [0.0, 1.0])
NUMBERS = F + _rng.standard_normal(ROWS)
COUNTS = _rng.poisson(np.exp(F))
POSITIVE = np.exp(F) * _rng.gamma(2.0, 0.5, ROWS)


def by_site(values):
    """The values of each site's rows."""
    return [values[start:end] for start, end in pairwise([0, *ENDS, ROWS])]


def shares_of(y, inputs=X):
    """What each site has."""
    return list(zip(by_site(inputs), by_site(y), strict=True))
