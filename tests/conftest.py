"""Graphs and problems that many tests need."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import data, graphs
from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import LeastSquares

GRAPHS = {
    "ring": graphs.ring(10),
    "random": graphs.erdos_renyi(20, 0.2, seed=0),
    "star": graphs.star(10),
    "line": graphs.linear(10, 1),
}


@pytest.fixture(params=list(GRAPHS))
def graph(request):
    return GRAPHS[request.param]


@pytest.fixture(scope="session")
def g50c():
    return data.load("g50c")


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


def closed_form(H, Y, alpha):
    """The centralised ridge solution, computed without any code of the package."""
    return np.linalg.solve(H.T @ H + alpha * np.eye(H.shape[1]), H.T @ Y)


def distance(coefficients, answer):
    """Of the worst agent, relative."""
    return np.linalg.norm(coefficients - answer, axis=(1, 2)).max() / np.linalg.norm(answer)


STATES = {}  # of each module's RNG, before its first test


@pytest.fixture(autouse=True)
def draws_do_not_depend_on_the_tests_before(request):
    rng = getattr(request.module, "RNG", None)
    if rng is not None:
        rng.bit_generator.state = STATES.setdefault(
            request.module.__name__, rng.bit_generator.state
        )


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A comparison's text as a file, on a machine without data sets of its own."""
    monkeypatch.delenv("PEERLEARN_DATA", raising=False)

    def write(text):
        file = tmp_path / "mine.toml"
        file.write_text(text)
        return file

    return write
