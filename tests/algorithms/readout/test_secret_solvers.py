"""ConjugateGradient and Consensus under secrecy: the answers without it, from totals alone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from peerlearn import (
    ConjugateGradient,
    Consensus,
    RVFLClassifier,
    RVFLRegressor,
    SimulatedNetwork,
    graphs,
)
from peerlearn.algorithms import secret_sums
from peerlearn.errors import DataError, InputError, NetworkError, NotConverged
from peerlearn.secret.statement import ONLY_TOTALS
from peerlearn.testing.threads import run_in_threads

GRAPH = graphs.erdos_renyi(7, 0.4, seed=1)
RNG = np.random.default_rng(0)
SHARES = [(RNG.standard_normal((n, 3)), RNG.standard_normal(n)) for n in (9, 0, 40, 2, 15, 1, 30)]
SECRET = {"secrecy": "sums", "colluders": 2}
SOLVERS = {
    "none": ConjugateGradient(preconditioner="none"),
    "synthetic": ConjugateGradient(preconditioner="synthetic"),
    "exact": ConjugateGradient(1e-10),
    "weighted": Consensus(),
    "thesis": Consensus(variant="thesis"),
}


def regressor(solver, network=None, **settings):
    usual = {"alpha": 0.5, "features": "fixed", "random_state": 0}
    return RVFLRegressor(12, solver=solver, network=network, **{**usual, **settings})


def both(model, shares):
    """The model trained without secrecy and with it."""
    networks = SimulatedNetwork(GRAPH), SimulatedNetwork(GRAPH, **SECRET)
    return [clone(model).set_params(network=network).fit(shares) for network in networks]


def check_bounds(plain, secret):
    size = np.linalg.norm(plain.coefficients_[0])
    away = np.linalg.norm(plain.coefficients_[0] - secret.coefficients_[0])
    assert away <= (plain.report_.bound + secret.report_.bound) * size


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("features", ["fixed", "columns", "function"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_answer_is_that_without_secrecy(solver, features, intercept):
    settings = {"fit_intercept": intercept}
    if features != "fixed":
        settings |= {"n_hidden": None, "features": np.cos if features == "function" else features}
    kind = SOLVERS[solver]
    if features == "function" and solver == "synthetic":
        kind = ConjugateGradient()  # there are no random features: under secrecy, no preconditioner
    plain, secret = both(regressor(kind).set_params(**settings), SHARES)
    check_bounds(plain, secret)
    assert secret.report_.converged
    np.testing.assert_allclose(plain.coefficients_, secret.coefficients_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(plain.intercept_, secret.intercept_, atol=1e-6)
    assert secret.intercept_.any() == intercept


def test_a_classifier_of_three_classes():
    shares = [(X, np.arange(len(X)) % 3) for X, _ in SHARES]
    model = RVFLClassifier(
        12, 0.5, features="fixed", solver="cg", classes=[0, 1, 2], random_state=0
    )
    plain, secret = both(model, shares)
    check_bounds(plain, secret)
    rows = np.vstack([X for X, _ in SHARES])
    np.testing.assert_array_equal(plain.predict(rows), secret.predict(rows))


@pytest.mark.parametrize("solver", ["none", "synthetic", "weighted"])
def test_agents_that_share_only_messages_have_the_bits_of_a_simulation(solver):
    network = SimulatedNetwork(GRAPH, exact_order=True, **SECRET)
    expected = regressor(SOLVERS[solver], network).fit(SHARES)

    def work(network):
        network.keep_secrets("sums", 2)
        return regressor(SOLVERS[solver], network).fit([SHARES[network.hosted[0]]])

    for model in run_in_threads(GRAPH, work):
        np.testing.assert_array_equal(model.coefficients_[0], expected.coefficients_[0])
        np.testing.assert_array_equal(model.intercept_[0], expected.intercept_[0])


TOTALS = {
    "none": ["H'Y, number of rows, trace of H'H and squares of targets", "product of H'H"],
    "synthetic": ["H'Y, number of rows, trace of H'H", "moments of the inputs", "product of H'H"],
    "weighted": ["number of rows", "coefficients of the agents, weighted"],
}


@pytest.mark.parametrize("solver", TOTALS)
def test_the_report_lists_all_totals_and_who_learns_them(solver):
    network = SimulatedNetwork(GRAPH, **SECRET)
    report = regressor(SOLVERS[solver], network, fit_intercept=False).fit(SHARES).report_
    assert report.secrecy.claim == ONLY_TOTALS
    names = list(dict.fromkeys(report.secrecy.totals))
    assert len(names) == len(TOTALS[solver])
    for name, expected in zip(names, TOTALS[solver], strict=True):
        assert name.startswith(expected)
    assert sorted(names) == list(report.secrecy.known_to_all)
    assert "learned by all agents" in str(report)
    assert "learned by agent" not in str(report)


def test_totals_of_conjugate_gradients_follow_from_h_h_and_h_y(monkeypatch):
    """What a coalition sees, computed again from H'H, H'Y, |Y|^2 and the number of rows alone."""
    seen = []
    answer = secret_sums.SecretSession.answer

    def record(self, total, size, compute):
        rows = answer(self, total, size, compute)
        seen.append((self.quantities[-1], rows[0]))
        return rows

    monkeypatch.setattr(secret_sums.SecretSession, "answer", record)
    network = SimulatedNetwork(GRAPH, **SECRET)
    model = regressor(SOLVERS["none"], network, fit_intercept=False).fit(SHARES)
    H = np.vstack([model.features_(X) for X, _ in SHARES])
    Y = np.concatenate([y for _, y in SHARES])
    G = H.T @ H
    c = H.T @ Y
    expected = [*c, len(Y), np.trace(G), Y @ Y]
    np.testing.assert_allclose(seen[0][1], expected, rtol=1e-12)
    # The space of all directions is spanned by c, A c, A^2 c, ..
    A = G + 0.5 * np.eye(12)
    krylov = c[:, None] / np.linalg.norm(c)
    for quantity, numbers in seen[1:]:
        assert quantity == "product of H'H with a direction"
        q = numbers[:-1]
        d = np.linalg.solve(G, q)
        left = d - krylov @ (krylov.T @ d)
        assert np.linalg.norm(left) < 1e-6 * np.linalg.norm(d)
        more = np.column_stack([krylov, A @ krylov[:, -1]])
        krylov, _ = np.linalg.qr(more)
    assert len(seen) > 5


# Means of 1e8 times the spread take digits, and H'H of 1e-36 is lost in fixed-point numbers.
@pytest.mark.parametrize(
    ("scale", "offset", "is_exact"),
    [(1.0, 1e4, True), (1.0, 1e8, False), (1e-9, 0.0, True), (1e9, 0.0, True), (1e-18, 0.0, False)],
)
def test_bounds_hold_for_columns_of_any_size_or_the_report_says_that_there_is_none(
    scale, offset, is_exact
):
    far = [((X + offset) * scale * [0.1, 1, 10], y) for X, y in SHARES]
    settings = {"features": "columns", "n_hidden": None, "alpha": 0.1 * scale**2}
    model = regressor(SOLVERS["none"]).set_params(**settings)
    plain = clone(model).set_params(network=SimulatedNetwork(GRAPH), solver="gram").fit(far)
    secret = clone(model).set_params(network=SimulatedNetwork(GRAPH, **SECRET))
    if is_exact:
        secret.fit(far)
    else:
        with pytest.warns(NotConverged, match="raise max_iterations, tolerance or alpha"):
            secret.fit(far)
    assert secret.report_.converged == is_exact
    check_bounds(plain, secret)


REFUSED = {
    "with the preconditioner 'local' would sum inverses": ConjugateGradient(preconditioner="local"),
    "ConjugateGradient by gossip would mix": ConjugateGradient(averaging="plain"),
    "Consensus by gossip would mix": Consensus(averaging="chebyshev"),
    "ADMM makes totals from which": "admm",
    "Auto would show how many rows": "auto",
    "Local makes no sums at all": "local",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_would_tell_more_is_refused_before_the_first_message(words):
    network = SimulatedNetwork(GRAPH, **SECRET)
    model = regressor(REFUSED[words], network)
    with pytest.raises(InputError, match=f"keeps sums secret, and .*{words}.*use .*nothing was"):
        model.fit(SHARES)
    assert network.ledger.messages == 0


def test_consensus_without_a_penalty_is_refused():
    network = SimulatedNetwork(GRAPH, **SECRET)
    with pytest.raises(InputError, match="then needs alpha above 0"):
        regressor("consensus", network, alpha=0.0).fit(SHARES)
    assert network.ledger.messages == 0


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("solver", ["none", "weighted"])
def test_a_network_without_rows_has_no_answer(solver, intercept):
    nothing = [(X[:0], y[:0]) for X, y in SHARES]
    network = SimulatedNetwork(GRAPH, **SECRET)
    model = regressor(SOLVERS[solver], network, fit_intercept=intercept)
    with pytest.raises(DataError, match="no agent of the network has a row"):
        model.fit(nothing)


def test_agents_with_other_directions_stop():
    """The scales of a product are part of its keys: masks do not cancel if they differ."""

    def work(network):
        network.keep_secrets("sums", 2)
        session = secret_sums.open_session(network)
        exponents = np.array([network.hosted[0] == 3], dtype=np.int64)
        with pytest.raises(NetworkError, match="masks of the agents did not cancel"):
            session.total("product", np.ones((1, 2)), exponents.tobytes())
        return True

    assert all(run_in_threads(GRAPH, work))
