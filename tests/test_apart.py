"""Agents that live apart compute the same numbers as agents simulated together: every algorithm, every method."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import (
    ADMM,
    Averaging,
    ConjugateGradient,
    Faults,
    Gram,
    RVFLClassifier,
    RVFLRegressor,
    SimulatedNetwork,
    average,
    data,
    everyone,
    graphs,
    maximum,
    partition,
    total,
)
from peerlearn.algorithms.choice import solvers
from peerlearn.algorithms.consensus import follow
from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Ridge
from tests.split_network import run_apart

GRAPH = graphs.erdos_renyi(6, 0.4, seed=2)
RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((6, 4))
FEATURES = RandomFeatures.draw(3, 15, seed=0)
X = [RNG.standard_normal((n, 3)) for n in (1, 4, 9, 16, 25, 2)]
Y = [np.sin(x[:, :2]) for x in X]


@pytest.mark.parametrize("stopping", ["bound", "messages"])
@pytest.mark.parametrize("method", ["plain", "chebyshev", "tree"])
def test_averages(method, stopping):
    options = {"method": method, "stopping": stopping, "tolerance": 1e-7}
    together = average(SimulatedNetwork(GRAPH), ROWS, **options)
    apart = run_apart(GRAPH, lambda network, k: average(network, ROWS[k : k + 1], **options)[0])
    np.testing.assert_allclose(apart, together, atol=1e-12)


@pytest.mark.parametrize("operation", [total, maximum, follow])
def test_other_agreements(operation):
    together = operation(SimulatedNetwork(GRAPH), ROWS)
    apart = run_apart(GRAPH, lambda network, k: operation(network, ROWS[k : k + 1])[0])
    np.testing.assert_allclose(apart, together, atol=1e-12)


def test_votes():
    assert run_apart(GRAPH, lambda network, k: everyone(network, [k != 3])) == [False] * 6
    assert run_apart(GRAPH, lambda network, k: everyone(network, [True])) == [True] * 6


CASES = [
    *((make(), Ridge(0.5), {}) for make in solvers().values()),
    (ADMM(averaging="chebyshev"), Ridge(0.5), {}),
    (ADMM(), Lasso(0.5), {}),
    (ADMM(averaging="tree", variant="thesis", rho=1.0), Ridge(0.5), {}),
    (Gram(averaging="chebyshev"), Ridge(0.5), {}),
    *(
        (ConjugateGradient(preconditioner=kind, averaging=how), Ridge(0.5), {})
        for kind in ("synthetic", "local", "none")
        for how in ("tree", "chebyshev", Averaging("chebyshev", 1e-9, stopping="messages"))
    ),
    (ConjugateGradient(preconditioner="local"), Ridge(0.0), {}),
    (ConjugateGradient(1e-4), Ridge(0.5), {"faults": Faults(0.1, seed=1)}),
]


@pytest.mark.parametrize(("solver", "penalty", "options"), CASES, ids=str)
def test_solvers(solver, penalty, options):
    together = solver.solve(SimulatedNetwork(GRAPH, **options), LeastSquares.of_inputs(FEATURES, X, Y), penalty)

    def alone(network, k):
        return solver.solve(network, LeastSquares.of_inputs(FEATURES, X[k : k + 1], Y[k : k + 1]), penalty)

    apart = run_apart(GRAPH, alone, **options)
    size = np.abs(together.coefficients).max()
    for k, own in enumerate(apart):
        np.testing.assert_allclose(own.coefficients[0], together.coefficients[k], atol=1e-10 * size)
        assert own.report.iterations == together.report.iterations
        assert own.report.converged


@pytest.mark.parametrize("model", [RVFLClassifier, RVFLRegressor])
def test_models(model):
    digits = data.load("digits")
    shares = partition.dirichlet(digits.X[:400], digits.y[:400], 6, concentration=0.2, seed=1)
    options = {"n_hidden": 25, "random_state": 3}
    together = model(network=SimulatedNetwork(GRAPH), **options).fit(shares)
    apart = run_apart(GRAPH, lambda network, k: model(network=network, **options).fit(*shares[k]))
    for k, own in enumerate(apart):
        np.testing.assert_allclose(own.coefficients_[0], together.coefficients_[k], atol=1e-8)
        assert (own.predict(digits.X[400:500]) == together.predict(digits.X[400:500])).mean() > 0.99
