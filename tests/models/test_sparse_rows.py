"""Sparse inputs: the answer of dense ones, and no dense copy of X."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from peerlearn import (
    GLMRegressor,
    LogisticClassifier,
    RVFLClassifier,
    RVFLRegressor,
    SimulatedNetwork,
    graphs,
)
from peerlearn.algorithms.readout.auto import solvers
from peerlearn.algorithms.readout.conjugate_gradient import ConjugateGradient
from peerlearn.algorithms.streaming.learner import learners
from peerlearn.errors import DataError
from tests.support.split_network import run_apart

RNG = np.random.default_rng(0)
SPARSE = sp.random_array((240, 30), density=0.1, rng=RNG, format="csr")
X = SPARSE.toarray()
Y = X[:, 0] + 3 * X[:, 1] ** 2


def net(agents=4):
    return SimulatedNetwork(graphs.ring(agents))


@pytest.mark.parametrize("hidden", [20, 100], ids=["many rows", "fewer rows than units"])
@pytest.mark.parametrize("direct_links", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_the_answer_of_dense_rows(form, fit_intercept, direct_links, hidden):
    settings = {
        "alpha": 1.0,
        "activation": "sigmoid",
        "direct_links": direct_links,
        "fit_intercept": fit_intercept,
        "network": net(),
        "random_state": 0,
    }
    dense = RVFLRegressor(hidden, **settings).fit(X, Y)
    sparse = RVFLRegressor(hidden, **settings).fit(form(X), Y)
    np.testing.assert_allclose(sparse.coefficients_, dense.coefficients_, atol=1e-9)
    np.testing.assert_allclose(
        sparse.agent_predictions(form(X)), dense.agent_predictions(X), atol=1e-9
    )


@pytest.mark.parametrize("solver", [*sorted(solvers()), ConjugateGradient()], ids=str)
def test_every_solver(solver):
    labels = (Y > 0.1).astype(int)
    dense = RVFLClassifier(
        20, solver=solver, network=net(), random_state=0, alpha=1.0, activation="sigmoid"
    ).fit(X, labels)
    sparse = RVFLClassifier(
        20, solver=solver, network=net(), random_state=0, alpha=1.0, activation="sigmoid"
    ).fit(SPARSE, labels)
    np.testing.assert_allclose(
        sparse.decision_function(SPARSE), dense.decision_function(X), atol=1e-5
    )


@pytest.mark.parametrize("stream", sorted(learners()))
def test_every_stream(stream):
    dense, sparse = (
        RVFLRegressor(
            20, stream=stream, network=net(), random_state=0, alpha=1.0, activation="sigmoid"
        )
        for _ in range(2)
    )
    for start in range(0, 240, 60):
        rows = slice(start, start + 60)
        dense.partial_fit(X[rows], Y[rows])
        sparse.partial_fit(SPARSE[rows], Y[rows])
    np.testing.assert_allclose(sparse.predict(SPARSE), dense.predict(X), atol=1e-9)


def test_shares_with_weights_and_an_agent_without_rows():
    shares = [(SPARSE[:0], Y[:0]), (SPARSE[:100], Y[:100]), (X[100:], Y[100:])]  # one is dense
    weights = [np.ones(0), np.full(100, 2.0), np.full(140, 0.5)]
    model = RVFLRegressor(20, network=net(3), random_state=0, alpha=1.0, activation="sigmoid").fit(
        shares, sample_weight=weights
    )
    one = RVFLRegressor(20, random_state=0, alpha=1.0, activation="sigmoid").fit(
        X, Y, np.concatenate(weights)
    )
    np.testing.assert_allclose(model.coefficients_[0], one.coefficients_[0], atol=1e-9)


def test_one_agent_per_process_has_the_same_bits():
    shares = [(SPARSE[k::4], Y[k::4]) for k in range(4)]
    together = (
        RVFLRegressor(20, network=net(), random_state=0, alpha=1.0, activation="sigmoid")
        .fit(shares)
        .coefficients_
    )
    apart = run_apart(
        graphs.ring(4),
        lambda network, k: (
            RVFLRegressor(20, network=network, random_state=0, alpha=1.0, activation="sigmoid")
            .fit(*shares[k])
            .coefficients_[0]
        ),
    )
    assert [own.tobytes() for own in apart] == [own.tobytes() for own in together]


@pytest.mark.parametrize("direct_links", [False, True])
def test_rows_are_never_dense(direct_links):
    """X has 20,000 x 1,000 numbers, 160 MB if it were dense."""
    rng = np.random.default_rng(0)
    wide = sp.random_array((20_000, 1000), density=0.002, rng=rng, format="csr")
    model = RVFLRegressor(
        50,
        direct_links=direct_links,
        network=net(1),
        random_state=0,
        alpha=1.0,
        activation="sigmoid",
    )
    y = np.asarray(wide.sum(axis=1)).ravel()
    tracemalloc.start()
    try:
        model.fit(wide, y)
        trained = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        model.predict(wide)
        predicted = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # With direct links, features are as wide as X: a block of rows has 9 MB, and so have G, its
    # inverse and three more of their size, of which the bound is made.
    assert trained < (60e6 if direct_links else 5e6)
    assert predicted < 20e6


def test_values_that_are_no_numbers_are_named():
    bad = SPARSE.copy()
    bad.data[0] = np.nan
    with pytest.raises(DataError, match=r"NaN or inf .* in 1 of 240 rows"):
        RVFLRegressor(network=net(), alpha=1.0, activation="sigmoid").fit(bad, Y)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_linear_models_have_the_answer_of_dense_rows(form):
    labels = np.digitize(Y, [0.05, 0.5])
    dense = LogisticClassifier(network=net(), random_state=0).fit(X, labels)
    sparse = LogisticClassifier(network=net(), random_state=0).fit(form(X), labels)
    np.testing.assert_allclose(sparse.predict_proba(form(X)), dense.predict_proba(X), atol=1e-9)
    shares = [(form(X[k::4]), Y[k::4]) for k in range(4)]
    model = GLMRegressor(alpha=1e-3, network=net()).fit(shares)
    wanted = GLMRegressor(alpha=1e-3).fit(X, Y)
    np.testing.assert_allclose(model.coefficients_[0], wanted.coefficients_[0], atol=1e-7)


def test_linear_models_never_have_all_rows_dense():
    wide = sp.random_array((20_000, 400), density=0.002, rng=RNG, format="csr")
    labels = np.arange(20_000) % 2
    tracemalloc.start()
    LogisticClassifier(100.0, network=net(), random_state=0).fit(wide, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000 * 400 * 8 / 2
