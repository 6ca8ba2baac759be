"""Exact streams under secrecy: chunks of too few agents wait."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from peerlearn import RVFLClassifier, RVFLRegressor, SimulatedNetwork, StreamExact, graphs
from peerlearn.algorithms import secret_sums
from peerlearn.errors import DataError, InputError
from peerlearn.models.stream_archive import resume_stream, save_stream
from peerlearn.secret.statement import ONLY_TOTALS
from peerlearn.testing.threads import run_in_threads

GRAPH = graphs.erdos_renyi(7, 0.4, seed=1)
RNG = np.random.default_rng(0)
SHARES = [(RNG.standard_normal((n, 3)), RNG.standard_normal(n)) for n in (9, 3, 40, 2, 15, 6, 30)]
SECRET = {"secrecy": "sums", "colluders": 2}


def some(agents, rows):
    """These rows of these agents, and no rows of others."""
    return [
        (X[rows], y[rows]) if agent in agents else (X[:0], y[:0])
        for agent, (X, y) in enumerate(SHARES)
    ]


ALL = range(7)
CHUNKS = [
    some(ALL, slice(0, None, 3)),
    some([2], slice(1, 4)),  # one agent, then three: together they are still too few
    some([0, 2, 4], slice(1, None, 3)),
    some([5, 6], slice(1, None, 3)),  # five agents have rows by now
    some(ALL, slice(2, None, 3)),
]
WAITING = [0, 3, 3 + 3 + 13 + 5, 0, 0]


def regressor(network, **settings):
    stream = StreamExact(**settings)
    return RVFLRegressor(12, 0.5, stream=stream, network=network, random_state=0)


@pytest.mark.parametrize("settings", [{}, {"forgetting": 0.9}])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_stream_has_the_coefficients_without_secrecy_whenever_nothing_waits(settings, intercept):
    networks = SimulatedNetwork(GRAPH), SimulatedNetwork(GRAPH, **SECRET)
    plain, secret = [regressor(network, **settings) for network in networks]
    for model in (plain, secret):
        model.set_params(fit_intercept=intercept)
    before = None
    for chunk, waiting in zip(CHUNKS, WAITING, strict=True):
        plain.partial_fit(chunk)
        secret.partial_fit(chunk)
        assert f"; {waiting} of them wait until 4 agents have new rows" in secret.report_.note
        if waiting:
            np.testing.assert_array_equal(secret.coefficients_, before)
            continue
        before = secret.coefficients_.copy()
        away = np.linalg.norm(plain.coefficients_[0] - secret.coefficients_[0])
        both = plain.report_.bound + secret.report_.bound
        assert both < 1e-9
        assert away <= both * np.linalg.norm(plain.coefficients_[0])
        np.testing.assert_allclose(plain.intercept_, secret.intercept_, atol=1e-9)
    assert secret.report_.secrecy.claim == ONLY_TOTALS
    assert secret.report_.secrecy.totals.count("agents with new rows") == 5
    assert secret.report_.secrecy.totals.count("squares of features and targets") == 3
    assert secret.report_.secrecy.known_to_all == ("agents with new rows",)
    assert secret.stream_under_way.rows == plain.stream_under_way.rows


def test_no_sum_is_made_of_fewer_agents(monkeypatch):
    """Not even a masked one: what would be summed is the number of agents alone."""
    model = regressor(SimulatedNetwork(GRAPH, **SECRET)).partial_fit(CHUNKS[0])
    summed = []
    sum_to_root = secret_sums.SecretSession.sum_to_root

    def record(self, quantity, words, scales=b""):
        summed.append(quantity)
        return sum_to_root(self, quantity, words, scales)

    monkeypatch.setattr(secret_sums.SecretSession, "sum_to_root", record)
    model.partial_fit(some([0, 1, 2], slice(0, 2)))
    assert summed == ["agents with new rows"]
    model.partial_fit(some([3], slice(0, 1)))
    assert len(summed) == 4


def test_classes_are_given_and_agents_have_the_bits_of_a_simulation():
    chunks = [[(X, np.arange(len(X)) % 2) for X, _ in chunk] for chunk in CHUNKS]

    def learn(network, shares_of):
        model = RVFLClassifier(10, stream="exact", network=network, random_state=0)
        for n, chunk in enumerate(chunks):
            model.partial_fit(shares_of(chunk), **({"classes": [0, 1]} if n == 0 else {}))
        return model

    network = SimulatedNetwork(GRAPH, exact_order=True, **SECRET)
    with pytest.raises(DataError, match="classes must be passed on the first call"):
        RVFLClassifier(10, stream="exact", network=network, random_state=0).partial_fit(chunks[0])
    assert network.ledger.messages == 0
    expected = learn(network, lambda chunk: chunk)

    def work(network):
        network.keep_secrets("sums", 2)
        return learn(network, lambda chunk: [chunk[network.hosted[0]]])

    for model in run_in_threads(GRAPH, work):
        np.testing.assert_array_equal(model.coefficients_[0], expected.coefficients_[0])
        np.testing.assert_array_equal(model.intercept_[0], expected.intercept_[0])


def test_every_chunk_has_a_session_of_its_own(monkeypatch):
    """So a copy of a model cannot mask other numbers by the same keys."""
    ids = []
    open_session = secret_sums.open_session

    def record(network):
        session = open_session(network)
        ids.append(session.id)
        return session

    monkeypatch.setattr(secret_sums, "open_session", record)
    model = regressor(SimulatedNetwork(GRAPH, **SECRET)).partial_fit(CHUNKS[0])
    copied = copy.deepcopy(model)
    model.partial_fit(CHUNKS[4])
    copied.partial_fit([(X, -y) for X, y in CHUNKS[4]])
    assert len(set(ids)) == 3


def test_a_stream_that_waits_is_saved_and_resumed(tmp_path):
    network = SimulatedNetwork(GRAPH, **SECRET)
    model = regressor(network)
    for chunk in CHUNKS[:2]:
        model.partial_fit(chunk)
    save_stream(model, tmp_path / "stream.npz")
    resumed = resume_stream(tmp_path / "stream.npz", network)
    for chunk in CHUNKS[2:]:
        model.partial_fit(chunk)
        resumed.partial_fit(chunk)
    np.testing.assert_array_equal(model.coefficients_, resumed.coefficients_)


@pytest.mark.parametrize("stream", ["consensus", "lms", "rls", StreamExact(averaging="plain")])
def test_other_learners_are_refused_before_the_first_message(stream):
    network = SimulatedNetwork(GRAPH, **SECRET)
    model = RVFLRegressor(10, stream=stream, network=network, random_state=0)
    with pytest.raises(InputError, match=r"keeps sums secret, and .* use .*nothing was sent"):
        model.partial_fit(SHARES)
    assert network.ledger.messages == 0
