"""NetworkSearchCV: the choice and the coefficients of all rows in one place with the same folds."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from peerlearn import (
    Averaging,
    ESNRegressor,
    GLMRegressor,
    Gram,
    LogisticClassifier,
    NetworkSearchCV,
    RVFLClassifier,
    RVFLRegressor,
    S3VMClassifier,
    SimulatedNetwork,
    data,
    graphs,
    partition,
)
from peerlearn.errors import DataError, InputError
from peerlearn.lab import read, run
from peerlearn.models import archive
from peerlearn.models.search import draw_folds
from tests.support.split_network import run_apart

IRIS = data.load("iris")
X = IRIS.X
y = IRIS.y
NUMBERS = X[:, 3] + 0.3 * np.sin(9 * X[:, 0]) + 40.0
ALPHAS = [1e-3, 0.1, 10.0]


def ring(agents=5):
    return SimulatedNetwork(graphs.ring(agents))


def pooled(shares, search):
    """All rows in one place, and the folds that the agents drew."""
    rows = np.concatenate([X_k for X_k, _ in shares])
    targets = np.concatenate([y_k for _, y_k in shares])
    return rows, targets, PredefinedSplit(np.concatenate(search.folds_))


def same_as(search, other, atol=1e-9):
    assert search.best_params_ == other.best_params_
    assert search.best_score_ == pytest.approx(other.best_score_, abs=atol)
    for name in ("mean_test_score", "std_test_score", "split0_test_score", "split3_test_score"):
        np.testing.assert_allclose(search.cv_results_[name], other.cv_results_[name], atol=atol)
    assert search.cv_results_["params"] == other.cv_results_["params"]
    np.testing.assert_array_equal(
        search.cv_results_["rank_test_score"], other.cv_results_["rank_test_score"]
    )


@pytest.mark.parametrize("network", [None, ring(5)])
def test_ridge_classifiers_are_those_of_scikit_learn(network):
    shares = partition.dirichlet(X, y, 5, concentration=0.5, seed=0)
    model = RVFLClassifier(features="columns", network=network)
    search = NetworkSearchCV(model, {"alpha": ALPHAS}, random_state=0)
    search.fit(*((X, y) if network is None else (shares,)))
    rows, targets, folds = pooled([(X, y)] if network is None else shares, search)
    other = GridSearchCV(RidgeClassifier(), {"alpha": ALPHAS}, cv=folds).fit(rows, targets)
    same_as(search, other)
    coefficients = other.best_estimator_.coef_.T / 2  # its targets are -1 and 1
    np.testing.assert_allclose(search.coefficients_[-1], coefficients, atol=1e-10)
    np.testing.assert_array_equal(search.predict(X), other.predict(X))


@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error"])
@pytest.mark.parametrize("intercept", [True, False])
def test_regressors_are_those_of_scikit_learn(scoring, intercept):
    shares = partition.even(X, NUMBERS, 4, seed=1)
    grid = {"alpha": ALPHAS, "fit_intercept": [intercept]}
    model = RVFLRegressor(features="columns", network=ring(4))
    search = NetworkSearchCV(model, grid, scoring=scoring, random_state=0).fit(shares)
    rows, targets, folds = pooled(shares, search)
    other = GridSearchCV(Ridge(), grid, cv=folds, scoring=scoring).fit(rows, targets)
    same_as(search, other, 1e-8)
    np.testing.assert_allclose(search.coefficients_[0, :, 0], other.best_estimator_.coef_, 1e-10)
    assert search.score(X, NUMBERS) == pytest.approx(other.score(X, NUMBERS))


@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
def test_logistic_regression_is_that_of_scikit_learn(scoring):
    shares = partition.stratified(X, y, 4, seed=2)
    model = LogisticClassifier(network=ring(4))
    search = NetworkSearchCV(model, {"alpha": [0.1, 1.0]}, scoring=scoring, random_state=0)
    search.fit(shares)
    rows, targets, folds = pooled(shares, search)
    fit = LogisticRegression(tol=1e-12, max_iter=10_000)
    other = GridSearchCV(fit, {"C": [10.0, 1.0]}, cv=folds, scoring=scoring).fit(rows, targets)
    assert search.best_params_["alpha"] == 1 / other.best_params_["C"]
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"], atol=1e-6
    )
    np.testing.assert_allclose(search.predict_proba(X), other.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (
            RVFLClassifier(random_state=3),
            {"alpha": ALPHAS, "n_hidden": [9, 30], "activation": ["tanh", "sine"]},
        ),
        (RVFLClassifier(20, activation="tanh", class_weight="balanced"), {"alpha": ALPHAS}),
        (RVFLClassifier(20, activation="tanh", probability=True), {"alpha": ALPHAS}),
        (RVFLRegressor(features=np.cos, fit_intercept=False), {"alpha": ALPHAS}),
        (RVFLRegressor(20, random_state=0), {"alpha": [0.1, "auto"], "features": ["fixed"]}),
        (
            LogisticClassifier(),
            [{"alpha": [0.1, 1.0]}, {"penalty": ["lasso"], "alpha": [0.5, 2.0]}],
        ),
        (GLMRegressor("gamma"), {"alpha": [0.0, 1.0, 100.0]}),
    ],
    ids=["hidden units", "balanced", "probabilities", "function", "auto", "lasso", "gamma"],
)
def test_the_choice_is_that_of_one_place(model, grid):
    """Agents with few rows and with none take part."""
    targets = y if is_classifier(model) else NUMBERS
    parts = np.split(np.random.default_rng(0).permutation(len(y)), [0, 3, 60, 61])
    shares = [(X[own], targets[own]) for own in parts]
    scoring = "neg_log_loss" if getattr(model, "probability", False) is True else None
    settings = {"cv": 4, "scoring": scoring, "network": ring(5), "random_state": 0}
    search = NetworkSearchCV(model, grid, **settings).fit(shares)
    rows, labels, folds = pooled(shares, search)
    alone = clone(model).set_params(random_state=search.best_estimator_.random_state)
    other = GridSearchCV(alone, search.param_grid, cv=folds, scoring=scoring).fit(rows, labels)
    assert search.best_params_ == other.best_params_
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"], atol=1e-7
    )
    np.testing.assert_allclose(
        search.coefficients_[-1], other.best_estimator_.coefficients_[0], rtol=1e-6, atol=1e-10
    )


def series(lengths, outputs=1, seed=0):
    """Sequences of these lengths, whose outputs remember the inputs."""
    rng = np.random.default_rng(seed)
    inputs = [rng.uniform(-1, 1, (length, 2)) for length in lengths]
    sums = [np.cumsum(x, axis=0) for x in inputs]
    targets = [
        np.sin(each)[:, :outputs] + x[:, :outputs] ** 2
        for each, x in zip(sums, inputs, strict=True)
    ]
    return inputs, [d[:, 0] if outputs == 1 else d for d in targets]


def cut_as_agents_do(share, folds, washout):
    """One long sequence becomes a stretch per fold; others stay whole."""
    inputs, targets = share
    if len(inputs) == 1 and len(inputs[0]) // folds > washout:
        return np.array_split(inputs[0], folds), np.array_split(targets[0], folds)
    return [x for x in inputs if len(x)], [d for d in targets if len(d)]


@pytest.mark.parametrize(
    ("settings", "outputs", "grid"),
    [
        ({}, 1, {"alpha": [1e-6, 1e-2, 10.0], "spectral_radius": [0.4, 0.9]}),
        ({"feedback_scaling": 0.3, "solver": "cg"}, 1, {"alpha": [1e-3, 1.0], "washout": [5, 8]}),
        ({"leak": 0.7}, 2, [{"alpha": ["auto", 0.1]}, {"penalty": ["lasso"], "alpha": [0.05]}]),
    ],
    ids=["radius", "feedback", "two outputs"],
)
def test_echo_state_networks_are_searched_as_in_one_place(settings, outputs, grid):
    """Agents have a long sequence, several, none, and one too short to be cut."""
    empty, none = series([1], outputs)
    shares = [
        series([90], outputs, 1),
        series([30, 40, 25, 31], outputs, 2),
        (empty[0][:0], none[0][:0]),
        series([12], outputs, 3),
    ]
    model = ESNRegressor(12, **{"washout": 5, "random_state": 1, **settings})
    search = NetworkSearchCV(model, grid, cv=3, network=ring(4), random_state=0).fit(shares)
    washout = 8 if "washout" in grid else 5
    pieces = [cut_as_agents_do(share, 3, washout) for share in shares]
    x = [each for own, _ in pieces for each in own]
    d = [each for _, own in pieces for each in own]
    folds = np.concatenate(search.folds_)
    assert [len(own) for own in search.folds_] == [3, 4, 0, 1]
    assert sorted(search.folds_[0]) == [0, 1, 2]
    wanted = []
    for candidate in search.cv_results_["params"]:
        scores = []
        for fold in range(3):
            one = clone(model).set_params(**candidate)
            kept, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            one.fit([x[j] for j in kept], [d[j] for j in kept])
            w = one.washout
            said = one.predict([x[j] for j in held], [d[j][:w] for j in held])
            known = np.concatenate([d[j][w:] for j in held])
            scores.append(r2_score(known, np.concatenate([each[w:] for each in said])))
        wanted.append(np.mean(scores))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], wanted, atol=1e-6)
    assert search.best_index_ == int(np.argmax(wanted))
    whole = [each for own, _ in shares for each in own if np.ndim(each) == 2 and len(each)]
    outs = [each for own, ys in shares if isinstance(own, list) for each in ys]
    best = clone(model).set_params(**search.best_params_).fit(whole, outs)
    np.testing.assert_allclose(search.coefficients_[-1], best.coefficients_[0], atol=1e-6)
    if outputs == 1:
        assert search.score(*shares[1]) == pytest.approx(best.score(*shares[1]), abs=1e-6)


def test_one_series_is_cut_among_agents_and_folds():
    x = np.sin(0.2 * np.arange(401))[:, None]
    model = ESNRegressor(20, washout=10, network=ring(4), random_state=0)
    search = NetworkSearchCV(model, {"alpha": [1e-6, 1e3]}, random_state=0).fit(x[:-1], x[1:])
    assert search.best_params_ == {"alpha": 1e-6}
    assert [sorted(own) for own in search.folds_] == [[0, 1, 2, 3, 4]] * 4
    assert search.best_estimator_.forecast(3).shape == (3, 1)
    with pytest.raises(DataError, match="n_samples=4 sequences of the whole network cannot make 5"):
        search.fit(x[:50], x[1:51])


def test_all_alphas_share_the_sums_of_folds():
    model = RVFLClassifier(40, activation="tanh", solver="gram", random_state=0)
    sent = []
    for alphas in ([0.1], [0.1] + [0.1 * n for n in range(2, 11)]):
        network = ring()
        search = NetworkSearchCV(model, {"alpha": alphas}, network=network, random_state=0)
        sent.append(search.fit(X, y).report_.sent.megabytes)
        assert search.report_.sent.megabytes == network.ledger.since().megabytes
    assert "by 5-fold cross-validation of 10 candidates, accuracy" in search.report_.note
    assert sent[1] < 2.2 * sent[0]  # coefficients of nine more alphas, and no more sums


def test_features_far_from_zero_lose_no_digits():
    far = X + 1e6
    model = RVFLRegressor(features="columns", network=ring())
    one = NetworkSearchCV(model, {"alpha": ALPHAS}, random_state=0).fit(X, NUMBERS)
    other = NetworkSearchCV(model, {"alpha": ALPHAS}, random_state=0).fit(far, NUMBERS)
    np.testing.assert_allclose(
        one.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"], atol=1e-7
    )


def test_sums_by_gossip():
    solver = Gram(averaging=Averaging("chebyshev", 1e-13))
    model = RVFLClassifier(20, activation="tanh", random_state=0)
    tree = NetworkSearchCV(model, {"alpha": ALPHAS}, network=ring(), random_state=0).fit(X, y)
    gossip = NetworkSearchCV(
        model.set_params(solver=solver), {"alpha": ALPHAS}, network=ring(), random_state=0
    ).fit(X, y)
    np.testing.assert_allclose(
        tree.cv_results_["mean_test_score"], gossip.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize("model", [LogisticClassifier(), RVFLClassifier(15, activation="tanh")])
def test_agents_apart_choose_what_one_process_does(model):
    shares = partition.dirichlet(X, y, 4, concentration=0.3, seed=0)
    grid = {"alpha": ALPHAS}
    together = NetworkSearchCV(
        model, grid, random_state=5, network=SimulatedNetwork(graphs.ring(4), exact_order=True)
    ).fit(shares)

    def work(network, agent):
        return NetworkSearchCV(model, grid, random_state=5, network=network).fit(*shares[agent])

    for agent, own in enumerate(run_apart(graphs.ring(4), work, exact_order=True)):
        np.testing.assert_array_equal(own.folds_[0], together.folds_[agent])
        for name in ("mean_test_score", "split1_test_score"):
            np.testing.assert_array_equal(own.cv_results_[name], together.cv_results_[name])
        np.testing.assert_array_equal(own.coefficients_[0], together.coefficients_[agent])


def test_folds_are_even_within_sites_and_classes():
    shares = partition.even(X, y, 3, seed=0)
    search = NetworkSearchCV(
        RVFLClassifier(5, activation="tanh", network=ring(3)), {"alpha": [1.0]}, random_state=1
    ).fit(shares)
    for own, (_, labels) in zip(search.folds_, shares, strict=True):
        counts = pd.crosstab(own, labels).to_numpy()
        assert len(counts) == 5
        assert np.ptp(counts, axis=0).max() <= 1
        assert np.ptp(counts.sum(axis=1)) <= 1


def test_agents_with_one_row_do_not_all_have_it_in_the_same_fold():
    folds = [draw_folds(np.zeros(1), 5, True, (0, agent))[0] for agent in range(60)]
    assert sorted(set(folds)) == [0, 1, 2, 3, 4]
    assert len(draw_folds(np.zeros(0), 5, True, (0, 0))) == 0
    network = SimulatedNetwork(graphs.complete(60))
    model = RVFLRegressor(features="columns", network=network)
    search = NetworkSearchCV(model, {"alpha": [1.0]}, random_state=0)
    search.fit([(X[[row]], NUMBERS[[row]]) for row in range(60)])
    assert {int(own[0]) for own in search.folds_} == {0, 1, 2, 3, 4}


def test_in_a_comparison(tmp_path):
    (tmp_path / "comparison.toml").write_text("""
title = "a search in every run"
data = [{ name = "iris" }]
networks = [{ name = "ring", graph = "ring", agents = 4 }]
[[models]]
name = "searched"
kind = "peerlearn.NetworkSearchCV"
estimator = { kind = "peerlearn.RVFLClassifier", n_hidden = 15, activation = "tanh" }
param_grid = { alpha = [[0.1, 1000.0]] }
""")
    results = run(read(tmp_path / "comparison.toml"), tmp_path / "out", jobs=1)
    (row,) = results.rows
    assert row["status"] == "done"
    assert row["error"] < 0.1
    assert "alpha 0.1 by 5-fold cross-validation" in row["note"]


def test_without_refit_there_are_scores_only():
    model = RVFLClassifier(5, activation="tanh")
    search = NetworkSearchCV(model, {"alpha": [1.0, 2.0]}, refit=False, random_state=0).fit(X, y)
    assert search.best_params_
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(InputError, match="refit is False"):
        search.predict(X)


def test_the_best_model_is_saved(tmp_path):
    search = NetworkSearchCV(
        RVFLClassifier(9, activation="tanh", network=ring()), {"alpha": ALPHAS}, random_state=0
    ).fit(X, y)
    archive.save(search, tmp_path / "model.npz")
    np.testing.assert_array_equal(
        archive.load(tmp_path / "model.npz").predict(X), search.predict(X)
    )


class TestRefusals:
    def search(self, model, grid=None, **settings):
        grid = {"alpha": [1.0]} if grid is None else grid
        NetworkSearchCV(model, grid, **{"random_state": 0, **settings}).fit(X, y)

    @pytest.mark.parametrize(
        "model",
        [
            S3VMClassifier(),
            ESNRegressor(solver="admm", network=ring()),
            RidgeClassifier(),
            make_pipeline(StandardScaler(), RVFLClassifier()),
            RVFLClassifier(solver="admm", network=ring()),
            RVFLClassifier(solver="local", network=ring()),
            LogisticClassifier(solver="tracking", network=ring()),
        ],
        ids=lambda model: type(model).__name__,
    )
    def test_training_that_is_not_sums(self, model):
        with pytest.raises(InputError, match=r"sums.*GridSearchCV"):
            self.search(model)

    @pytest.mark.parametrize(
        ("settings", "sentence"),
        [
            ({"grid": {"alpha": 3}}, "param_grid cannot be used"),
            ({"grid": {"random_state": [1, 2]}}, "param_grid has random_state"),
            ({"grid": {"alfa": [3]}}, "alfa"),
            ({"grid": {"alpha": [-1.0]}}, "alpha"),
            ({"grid": {"solver": ["gram", "admm"]}, "network": ring()}, "ADMM is not"),
            ({"cv": 1}, "cv"),
            ({"cv": 2.5}, "cv"),
            ({"scoring": "r2"}, "scoring is 'r2': for RVFLClassifier give one of 'accuracy'"),
            ({"scoring": "neg_log_loss"}, "needs predict_proba, and RVFLClassifier has none"),
            ({"refit": "accuracy"}, "refit is 'accuracy'"),
        ],
    )
    def test_settings(self, settings, sentence):
        with pytest.raises((InputError, ValueError, TypeError), match=sentence):
            self.search(RVFLClassifier(5, activation="tanh", probability=False), **settings)

    def test_fewer_rows_than_folds(self):
        search = NetworkSearchCV(RVFLRegressor(features="columns"), {"alpha": [1.0]}, cv=9)
        with pytest.raises(DataError, match="n_samples=8 rows of the whole network cannot make 9"):
            search.fit(X[:8], NUMBERS[:8])

    def test_agents_that_search_for_different_things(self):
        shares = partition.even(X, y, 2, seed=0)

        def work(network, agent):
            grid = {"alpha": [1.0, 2.0 + agent]}
            model = RVFLClassifier(5, activation="tanh", network=network)
            with pytest.raises(InputError, match="agents disagree on param_grid"):
                NetworkSearchCV(model, grid, random_state=0).fit(*shares[agent])

        run_apart(graphs.complete(2), work)

    def test_an_error_leaves_the_search_as_it_was(self):
        search = NetworkSearchCV(
            RVFLClassifier(5, activation="tanh"), {"alpha": [1.0]}, random_state=0
        ).fit(X, y)
        before = search.best_estimator_
        with pytest.raises(DataError):
            search.fit(X, np.zeros(len(y)))
        assert search.best_estimator_ is before


SEARCHES = [
    NetworkSearchCV(model, {"alpha": [0.1, 1.0]}, cv=2, random_state=0)
    for model in (
        RVFLClassifier(10, activation="tanh"),
        LogisticClassifier(),
        RVFLRegressor(10, activation="tanh"),
        ESNRegressor(10),
    )
]
CHECKS = [
    pytest.param(search, check, id=f"{type(search.estimator).__name__}-{check.func.__name__}")
    for search in SEARCHES
    for search, check in estimator_checks_generator(search)
    if check.func.__name__ != "check_array_api_input"  # for those that claim to take other arrays
]


@pytest.mark.filterwarnings("ignore::peerlearn.errors.NotConverged")  # columns are not scaled
@pytest.mark.parametrize(("search", "check"), CHECKS)
def test_conventions_of_scikit_learn(search, check):
    check(search)
