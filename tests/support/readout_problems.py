"""Problems of the linear readout, and their centralised answer."""

from __future__ import annotations

import numpy as np

from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import LeastSquares


def ragged_problem(agents, hidden, outputs, seed=0, largest=200):
    """Agents with 1 to `largest` rows each, and the rows of all of them in one place."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, largest, agents)
    rows[0], rows[-1] = 1, largest
    features = RandomFeatures.draw(8, hidden, seed=seed)
    X = [rng.standard_normal((n, 8)) for n in rows]
    target = rng.standard_normal((8, outputs))
    Y = [np.sin(x @ target) + 0.1 * rng.standard_normal((len(x), outputs)) for x in X]
    return LeastSquares.of_inputs(features, X, Y), features(np.vstack(X)), np.vstack(Y)


def closed_form(H, Y, alpha, free=0):
    """The centralised ridge solution, computed without any code of the package.

    free: how many columns at the beginning have no penalty.
    """
    penalties = np.where(np.arange(H.shape[1]) < free, 0.0, alpha)
    return np.linalg.solve(H.T @ H + np.diag(penalties), H.T @ Y)


def distance(coefficients, answer):
    """Of the worst agent, relative."""
    return np.linalg.norm(coefficients - answer, axis=(1, 2)).max() / np.linalg.norm(answer)
