"""Agents without rows: exact solvers give the centralised answer over the rows there are, and nothing crashes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from peerlearn import (
    AnchorLapClassifier,
    LapKRRClassifier,
    RVFLClassifier,
    RVFLRegressor,
    S3VMClassifier,
    SimulatedNetwork,
    graphs,
)
from peerlearn.algorithms.choice import solvers
from peerlearn.algorithms.smooth.minimum import smooth_solvers
from peerlearn.algorithms.streaming.learner import learners
from peerlearn.errors import DataError, NotConverged

GRAPHS = {"ring": graphs.ring(4), "star": graphs.star(4), "line": graphs.line(4)}
EMPTY = {"the first": (0,), "another": (2,), "all but one": (0, 1, 3)}


def shares(empty, kind="numbers"):
    rng, found = np.random.default_rng(0), []
    for agent in range(4):
        X = rng.standard_normal((0 if agent in empty else 40, 3))
        y = X[:, 0] * 2 + 0.1 * X[:, 1] if kind == "numbers" else (X[:, 0] > 0).astype(int)
        found.append((X, np.where(np.arange(len(y)) % 4 < 2, y, -1) if kind == "few labels" else y))
    return found


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        yield


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("solver", sorted(solvers()))
class TestSolvers:
    def test_regression(self, solver, graph, empty):
        given = shares(EMPTY[empty])
        X, y = (np.concatenate(parts) for parts in zip(*given, strict=True))
        together = RVFLRegressor(10, solver=solver, network=SimulatedNetwork(GRAPHS[graph]), random_state=0).fit(given)
        centralised = RVFLRegressor(10, random_state=0).fit(X, y)
        assert np.isfinite(together.coefficients_).all()
        if solvers()[solver].exact:
            wanted = np.broadcast_to(centralised.coefficients_, together.coefficients_.shape)
            np.testing.assert_allclose(together.coefficients_, wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())

    def test_classification(self, solver, graph, empty):
        given = shares(EMPTY[empty], "labels")
        model = RVFLClassifier(10, solver=solver, network=SimulatedNetwork(GRAPHS[graph]), random_state=0).fit(given)
        X, y = (np.concatenate(parts) for parts in zip(*given, strict=True))
        if solver != "local":  # alone, an agent without rows knows nothing
            assert model.agent_scores(X, y).min() > 0.8


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("stream", sorted(learners()))
def test_streams(stream, empty):
    model = RVFLRegressor(6, stream=stream, network=SimulatedNetwork(graphs.ring(4)), random_state=0)
    for _ in range(3):
        model.partial_fit(shares(EMPTY[empty]))
    assert np.isfinite(model.coefficients_).all()


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize(
    "model",
    [AnchorLapClassifier(), LapKRRClassifier(), *(S3VMClassifier(solver=name) for name in sorted(smooth_solvers()))],
    ids=repr,
)
def test_few_labels(model, empty):
    given = shares(EMPTY[empty], "few labels")
    model.set_params(network=SimulatedNetwork(graphs.ring(4)), random_state=0).fit(given)
    X = np.concatenate([own for own, _ in given])
    assert np.mean(model.predict(X) == (X[:, 0] > 0)) > 0.75


@pytest.mark.parametrize(
    "model", [RVFLRegressor, RVFLClassifier, AnchorLapClassifier, S3VMClassifier, LapKRRClassifier]
)
def test_nobody_has_rows(model):
    given = shares(range(4), "numbers" if model is RVFLRegressor else "labels")
    with pytest.raises(DataError, match=r"no agent of the network has a row|no row of the whole network has a label"):
        model(network=SimulatedNetwork(graphs.ring(4)), random_state=0).fit(given)


def test_one_place_needs_rows():
    with pytest.raises(DataError, match="0 sample"):
        RVFLRegressor(random_state=0).fit(np.empty((0, 3)), np.empty(0))
