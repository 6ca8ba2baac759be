"""Intercepts: the same answer as scikit-learn's, whatever is added to targets and features."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Lasso, Ridge
from sklearn.model_selection import cross_val_score

from peerlearn import (
    ADMM,
    ConjugateGradient,
    ESNRegressor,
    Gram,
    RVFLClassifier,
    RVFLRegressor,
    SimulatedNetwork,
    VerticalRVFLRegressor,
    graphs,
)
from peerlearn.errors import InputError
from peerlearn.models import archive, stream_archive
from tests.support.split_network import run_apart

X, y = load_diabetes(return_X_y=True)
FAR = y + 1e5


def net(agents=5):
    return SimulatedNetwork(graphs.ring(agents))


def test_a_constant_added_to_targets_changes_no_score():
    model = RVFLRegressor(
        direct_links=True, network=net(), random_state=0, alpha=1.0, activation="sigmoid"
    )
    near = cross_val_score(model, X, y, cv=5).mean()
    far = cross_val_score(model, X, FAR, cv=5).mean()
    assert far == pytest.approx(near, abs=1e-6)
    assert far > cross_val_score(Ridge(), X, FAR, cv=5).mean()
    without = model.set_params(fit_intercept=False)
    assert cross_val_score(without, X, FAR, cv=5).mean() < 0


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
@pytest.mark.parametrize("hidden", [30, 300], ids=["many rows", "fewer rows than units"])
def test_the_network_has_the_intercept_of_scikit_learn(graph, hidden, alpha):
    network = SimulatedNetwork(graph)
    model = RVFLRegressor(
        hidden, alpha, solver="gram", network=network, random_state=0, activation="sigmoid"
    )
    model.fit(X, FAR)
    H = model.features_(X)
    rival = Ridge(alpha, solver="svd").fit(H, FAR)
    np.testing.assert_allclose(model.agent_predictions(X), [rival.predict(H)] * len(graph), 1e-10)
    np.testing.assert_allclose(model.intercept_[:, 0], rival.intercept_, 1e-9)


@pytest.mark.parametrize(
    "solver",
    [
        "auto",
        "cg",
        ADMM(1e-7),
        Gram(averaging="plain"),
        ConjugateGradient(1e-8, averaging="chebyshev"),
        ConjugateGradient(1e-8, preconditioner="synthetic"),
    ],
    ids=str,
)
def test_every_solver_has_it(solver):
    sites = np.arange(len(y)) % 5
    shares = [(X[sites == k] + k, FAR[sites == k]) for k in range(5)]  # sites that differ
    model = RVFLRegressor(
        40, solver=solver, network=net(), random_state=0, alpha=1.0, activation="sigmoid"
    ).fit(shares)
    H = model.features_(np.vstack([x for x, _ in shares]))
    rival = Ridge(1.0, solver="svd").fit(H, np.concatenate([d for _, d in shares]))
    distances = np.linalg.norm(model.coefficients_ - rival.coef_[:, None], axis=(1, 2))
    assert distances.max() < 1e-5 * np.linalg.norm(rival.coef_)
    np.testing.assert_allclose(model.intercept_[:, 0], rival.intercept_, rtol=1e-7)


def test_features_far_from_zero_lose_no_digits():
    shifted = X + 1e5  # relu of it is far from 0 too
    model = RVFLRegressor(
        20, activation="relu", direct_links=True, network=net(), random_state=0, alpha=1.0
    )
    model.fit(shifted, FAR)
    H = model.features_(shifted)
    H = (H - H.mean(axis=0)).astype(np.longdouble)
    D = (FAR - FAR.mean()).astype(np.longdouble)
    A = (H.T @ H).astype(float) + np.eye(30)
    b = np.linalg.solve(A, (H.T @ D).astype(float))
    predicted = (H.astype(float) @ b) + FAR.mean()
    np.testing.assert_allclose(model.predict(shifted), predicted, atol=1e-3)


def test_agents_alone_have_their_own_means():
    model = RVFLRegressor(
        20, solver="local", network=net(), random_state=0, alpha=1.0, activation="sigmoid"
    )
    shares = [(X[k::5], y[k::5] + 1e4 * k) for k in range(5)]
    model.fit(shares)
    assert (
        model.report_.sent.megabytes
        < RVFLRegressor(
            20, solver="consensus", network=net(), random_state=0, alpha=1.0, activation="sigmoid"
        )
        .fit(shares)
        .report_.sent.megabytes
    )
    for k, (x, d) in enumerate(shares):
        rival = Ridge(1.0).fit(model.features_(x), d)
        assert model.intercept_[k, 0] == pytest.approx(rival.intercept_)


def test_classes_that_are_not_balanced():
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((300, 2))
    labels = (inputs[:, 0] > 1.5).astype(int)
    model = RVFLClassifier(30, 10.0, network=net(), random_state=0, activation="sigmoid").fit(
        inputs, labels
    )
    rival = Ridge(10.0).fit(model.features_(inputs), 2.0 * labels - 1)
    decided = rival.predict(model.features_(inputs))
    np.testing.assert_allclose(model.decision_function(inputs), decided, atol=1e-9)


def test_one_agent_per_process_has_the_same_bits():
    shares = [(X[k::4], FAR[k::4]) for k in range(4)]

    def work(network, k):
        model = RVFLRegressor(30, network=network, random_state=0, alpha=1.0, activation="sigmoid")
        model.fit(*shares[k]) if network.size > len(network.hosted) else model.fit(shares)
        return model.coefficients_[0].tobytes(), model.intercept_[0].tobytes()

    together = RVFLRegressor(
        30,
        network=SimulatedNetwork(graphs.ring(4)),
        random_state=0,
        alpha=1.0,
        activation="sigmoid",
    )
    together.fit(shares)
    bits = [
        (b.tobytes(), c.tobytes())
        for b, c in zip(together.coefficients_, together.intercept_, strict=True)
    ]
    assert run_apart(graphs.ring(4), work) == bits


def test_it_costs_one_small_sum():
    with_it = RVFLRegressor(
        50, solver="gram", network=net(), random_state=0, alpha=1.0, activation="sigmoid"
    ).fit(X, y)
    without = RVFLRegressor(
        50,
        solver="gram",
        fit_intercept=False,
        network=net(),
        random_state=0,
        alpha=1.0,
        activation="sigmoid",
    ).fit(X, y)
    numbers = 2 * 50 + 1 + 3
    more = with_it.report_.sent.megabytes - without.report_.sent.megabytes
    assert more * 1e6 == pytest.approx(2 * 4 * 8 * numbers, rel=0.05)  # twice over 4 links


class TestSequences:
    x = np.sin(0.3 * np.arange(601))[:, None]

    @pytest.mark.parametrize("penalty", ["ridge", "lasso"])
    def test_the_constant_has_no_penalty(self, penalty):
        model = ESNRegressor(
            20, alpha=0.01, penalty=penalty, washout=10, network=net(), random_state=0
        )
        model.fit(self.x[:-1], self.x[1:] + 1000)
        rows = np.vstack(
            [h[10:] for h in model.reservoir_.harvest(np.array_split(self.x[:-1], 5), None)]
        )
        d = np.vstack([part[10:] for part in np.array_split(self.x[1:] + 1000, 5)])
        n = len(rows)
        rival = Ridge(0.01) if penalty == "ridge" else Lasso(0.01 / n, tol=1e-12, max_iter=10**6)
        rival.fit(rows[:, 1:], d)
        b = model.coefficients_[0][:, 0]
        assert b[0] == pytest.approx(float(np.ravel(rival.intercept_)[0]))
        expected = rows[:, 1:] @ np.ravel(rival.coef_)
        np.testing.assert_allclose(rows[:, 1:] @ b[1:], expected, atol=1e-5)

    def test_without_a_penalty_it_is_as_before(self):
        inputs = np.random.default_rng(0).uniform(-1, 1, (600, 1))
        on, off = (
            ESNRegressor(10, alpha=0.0, fit_intercept=on, random_state=0).fit(inputs, inputs[:, 0])
            for on in (True, False)
        )
        assert on.coefficients_.tobytes() == off.coefficients_.tobytes()


class TestStreams:
    def test_exact_streams_have_it(self):
        model = RVFLRegressor(
            30, stream="exact", network=net(), random_state=0, alpha=1.0, activation="sigmoid"
        )
        model.partial_fit(X[:0], FAR[:0])
        assert not model.intercept_.any()
        for start in range(0, len(X), 60):
            model.partial_fit(X[start : start + 60], FAR[start : start + 60])
        whole = RVFLRegressor(30, random_state=0, alpha=1.0, activation="sigmoid").fit(X, FAR)
        np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-9)

    def test_of_sequences_too(self):
        x = np.sin(0.3 * np.arange(401))[:, None]
        model = ESNRegressor(20, washout=5, stream="exact", random_state=0)
        for start in range(0, 400, 100):
            model.partial_fit(x[start : start + 100], x[start + 1 : start + 101] + 100)
        whole = ESNRegressor(20, washout=5, random_state=0).fit(x[:-1], x[1:] + 100)
        np.testing.assert_allclose(model.predict(x[:-1]), whole.predict(x[:-1]), atol=1e-6)

    def test_streams_that_cannot_have_it_train_without(self):
        model = RVFLRegressor(
            20, network=net(), random_state=0, alpha=1.0, activation="sigmoid"
        ).partial_fit(X, y)
        off = RVFLRegressor(
            20, fit_intercept=False, network=net(), random_state=0, alpha=1.0, activation="sigmoid"
        )
        assert model.coefficients_.tobytes() == off.partial_fit(X, y).coefficients_.tobytes()
        assert not model.intercept_.any()
        with pytest.raises(
            InputError, match=r"StreamConsensus keeps no sums .* use stream='exact'"
        ):
            RVFLRegressor(
                20, fit_intercept=True, network=net(), alpha=1.0, activation="sigmoid"
            ).partial_fit(X, y)

    def test_a_saved_stream_goes_on_exactly(self, tmp_path):
        model = RVFLRegressor(
            20, stream="exact", network=net(), random_state=0, alpha=1.0, activation="sigmoid"
        )
        model.partial_fit(X[:200], FAR[:200])
        stream_archive.save_stream(model, tmp_path / "s.npz")
        again = stream_archive.resume_stream(tmp_path / "s.npz", net())
        assert again.intercept_.tobytes() == model.intercept_.tobytes()
        more = slice(200, 442)
        again.partial_fit(X[more], FAR[more])
        model.partial_fit(X[more], FAR[more])
        assert again.predict(X).tobytes() == model.predict(X).tobytes()


def test_saved_models_have_it(tmp_path):
    model = RVFLRegressor(20, network=net(), random_state=0, alpha=1.0, activation="sigmoid").fit(
        X, FAR
    )
    archive.save(model, tmp_path / "m.npz")
    np.testing.assert_array_equal(archive.load(tmp_path / "m.npz").predict(X), model.predict(X))


@pytest.mark.parametrize("solver", ["dual", "sketched", "sharing"])
def test_columns(solver):
    model = VerticalRVFLRegressor(20, network=net(), solver=solver, random_state=0).fit(X, FAR)
    H = np.hstack([h(X[:, c]) for h, c in zip(model.features_, model.columns_, strict=True)])
    rival = Ridge(1.0).fit(H, FAR)
    np.testing.assert_allclose(model.predict(X), rival.predict(H), atol=0.01)
    off = VerticalRVFLRegressor(20, network=net(), fit_intercept=False, random_state=0).fit(X, FAR)
    assert off.score(X, FAR) < model.score(X, FAR)


@pytest.mark.parametrize("kind", [RVFLRegressor, VerticalRVFLRegressor, ESNRegressor])
def test_what_is_refused(kind):
    with pytest.raises(InputError, match="fit_intercept is 'yes': give True, False or 'auto'"):
        kind(fit_intercept="yes").fit(X, y)
