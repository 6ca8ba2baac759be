"""Logistic regression: the answers of scikit-learn and statsmodels on the pooled rows, and bad
input.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from peerlearn import LBFGS, NEXT, LogisticClassifier, SimulatedNetwork, data, graphs
from peerlearn.errors import DataError, InputError
from peerlearn.models import archive
from tests.support.like_statsmodels import check_summary
from tests.support.sites_with_effects import (
    OFFSETS,
    SITES,
    THREE,
    TWO,
    WEIGHTS,
    X,
    by_site,
    shares_of,
)
from tests.support.split_network import run_apart

Z = (X - X.mean(axis=0)) / X.std(axis=0)
CLUSTERED = {"cov_type": "cluster", "cov_kwds": {"groups": SITES}}
TO_THE_END = {"tol": 1e-14, "tol_criterion": "params", "maxiter": 100}
GROWS = "ignore::peerlearn.errors.NotConverged"  # the error that follows says why


def net(agents=4):
    return SimulatedNetwork(graphs.ring(agents))


def exact(alpha=0.0, **settings):
    return LogisticClassifier(alpha, network=net(), random_state=0, **settings)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights and offsets"])
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
def test_two_classes_as_statsmodels(intercept, weighted):
    inputs = X if intercept else Z
    model = exact(fit_intercept=intercept)
    more = {}
    options = {}
    if weighted:
        more = {"sample_weight": by_site(WEIGHTS), "offset": by_site(OFFSETS)}
        options = {"var_weights": WEIGHTS, "offset": OFFSETS}
    model.fit(shares_of(TWO, inputs), **more)
    design = sm.add_constant(inputs) if intercept else inputs
    rival = sm.GLM(TWO, design, family=sm.families.Binomial(), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # statsmodels: weights with clusters are new
        check_summary(model, rival.fit(**TO_THE_END), rival.fit(**TO_THE_END, **CLUSTERED))
    assert model.report_.iterations <= 8
    assert model.report_.bound <= 1e-8


def test_three_classes_as_statsmodels():
    model = exact().fit(shares_of(THREE))
    rival = sm.MNLogit(THREE, sm.add_constant(X))
    # In raw units its gradient cannot fall far enough for its own test of convergence.
    options = {
        "method": "newton",
        "tol": 1e-12,
        "maxiter": 50,
        "disp": 0,
        "warn_convergence": False,
    }
    check_summary(model, rival.fit(**options), rival.fit(**options, **CLUSTERED))
    assert model.summary().names[:3] == ("intercept, 1", "intercept, 2", "x0, 1")
    wanted = rival.fit(**options).predict(sm.add_constant(X))
    np.testing.assert_allclose(model.predict_proba(X), wanted, rtol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.1, 10.0])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three"])
def test_ridge_as_scikit_learn(y, alpha, intercept):
    model = exact(alpha, fit_intercept=intercept)
    model.fit(shares_of(y, Z), sample_weight=by_site(WEIGHTS))
    rival = LogisticRegression(
        C=1 / alpha, fit_intercept=intercept, tol=1e-12, max_iter=10_000, solver="newton-cg"
    ).fit(Z, y, WEIGHTS)
    np.testing.assert_allclose(model.coefficients_[0].T, rival.coef_, atol=1e-9)
    np.testing.assert_allclose(model.intercept_[0], rival.intercept_, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(Z), rival.predict_proba(Z), atol=1e-9)
    np.testing.assert_array_equal(model.predict(Z), rival.predict(Z))


@pytest.mark.parametrize("alpha", [1.0, 5.0, 20.0])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three"])
def test_lasso_as_scikit_learn(y, alpha):
    inputs = np.column_stack([Z, np.random.default_rng(3).standard_normal((len(Z), 6))])
    model = exact(alpha, penalty="lasso").fit(shares_of(y, inputs))
    rival = LogisticRegression(
        C=1 / alpha, l1_ratio=1.0, solver="saga", tol=1e-12, max_iter=10_000, random_state=0
    ).fit(inputs, y)
    np.testing.assert_allclose(model.coefficients_[0].T, rival.coef_, atol=1e-8)
    np.testing.assert_array_equal(model.coefficients_[0].T == 0, rival.coef_ == 0)
    np.testing.assert_allclose(model.predict_proba(inputs), rival.predict_proba(inputs), atol=1e-8)
    assert model.report_.converged
    assert model.report_.iterations <= 8


def test_lasso_of_agents_apart():
    def coefficients(network, agent=None):
        here = [shares_of(THREE)[own] for own in network.hosted]
        model = LogisticClassifier(5.0, penalty="lasso", network=network).fit(here)
        return model.coefficients_[0], model.report_.residuals

    wanted, residuals = coefficients(net())
    for found, same in run_apart(graphs.ring(4), coefficients):
        np.testing.assert_array_equal(found, wanted)
        assert same == residuals


@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
def test_the_intercept_is_not_penalised(penalty):
    model = exact(1e9, penalty=penalty).fit(shares_of(TWO))
    assert np.abs(model.coefficients_).max() < 1e-5
    share = TWO.mean()
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], share, rtol=1e-3)


def test_the_same_bits_at_agents_apart():
    names = {0: "no", 1: "yes"}
    y = np.array([names[label] for label in TWO])

    def summaries(network, agent=None):
        here = [shares_of(y)[own] for own in network.hosted]
        model = LogisticClassifier(0.0, network=network).fit(here)
        table = model.summary("sites")
        return table.coefficients, table.covariance

    coefficients, covariance = summaries(net())
    for same in run_apart(graphs.ring(4), summaries):
        np.testing.assert_array_equal(same[0], coefficients)
        np.testing.assert_array_equal(same[1], covariance)


@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_offsets_of_three_classes_lead_to_the_pooled_optimum(alpha, penalty):
    offsets = np.random.default_rng(5).normal(0.0, 0.7, (len(Z), 3))
    model = exact(alpha, penalty=penalty)
    model.fit(shares_of(THREE, Z), sample_weight=by_site(WEIGHTS), offset=by_site(offsets))
    design = np.column_stack([np.ones(len(Z)), Z])
    W = np.vstack([model.intercept_[0], model.coefficients_[0]])
    missed = softmax(design @ W + offsets, axis=1) - np.eye(3)[THREE]
    gradient = design.T @ (WEIGHTS[:, None] * missed)
    np.testing.assert_allclose(gradient[0], 0.0, atol=1e-6)
    if penalty == "lasso" and alpha > 0:
        own = model.coefficients_[0]
        assert (np.abs(gradient[1:]) <= alpha + 1e-6).all()
        np.testing.assert_allclose((gradient[1:] + alpha * np.sign(own))[own != 0], 0, atol=1e-6)
    else:
        np.testing.assert_allclose(gradient[1:] + alpha * W[1:], 0.0, atol=1e-6)
    plain = exact(alpha, penalty=penalty).fit(shares_of(THREE, Z), sample_weight=by_site(WEIGHTS))
    assert np.abs(plain.coefficients_ - model.coefficients_).max() > 0.01
    moved = exact(alpha, penalty=penalty)  # what is added to all classes changes nothing
    more = by_site(offsets + OFFSETS[:, None])
    moved.fit(shares_of(THREE, Z), sample_weight=by_site(WEIGHTS), offset=more)
    np.testing.assert_allclose(moved.coefficients_, model.coefficients_, atol=1e-7)


def test_offsets_of_three_classes_at_agents_apart():
    offsets = np.random.default_rng(5).normal(0.0, 0.7, (len(X), 3))

    def coefficients(network, agent=None):
        here = [shares_of(THREE)[own] for own in network.hosted]
        own_offsets = [by_site(offsets)[own] for own in network.hosted]
        model = LogisticClassifier(0.0, network=network).fit(here, offset=own_offsets)
        return model.coefficients_[0], model.summary().covariance

    wanted = coefficients(net())
    for found in run_apart(graphs.ring(4), coefficients):
        np.testing.assert_array_equal(found[0], wanted[0])
        np.testing.assert_array_equal(found[1], wanted[1])


def test_rows_are_dealt_with_their_offsets():
    model = exact().fit(X, TWO, WEIGHTS, OFFSETS)
    alone = LogisticClassifier(0.0).fit(X, TWO, WEIGHTS, OFFSETS)
    np.testing.assert_allclose(model.coefficients_[0], alone.coefficients_[0], rtol=1e-9)
    with pytest.raises(InputError, match="only one has some"):
        alone.summary("sites")


def test_a_site_without_rows_is_no_cluster():
    network = net(5)
    shares = [*shares_of(TWO), (X[:0], TWO[:0])]
    model = LogisticClassifier(0.0, network=network).fit(shares)
    wanted = exact().fit(shares_of(TWO)).summary("sites")
    found = model.summary("sites")
    assert found.sites == 4
    np.testing.assert_allclose(found.standard_errors, wanted.standard_errors, rtol=1e-9)


def test_the_summary_prints_as_a_table():
    frame = pd.DataFrame(X, columns=["age", "income", "height"])
    text = str(exact().fit(shares_of(TWO, frame)).summary("sites", level=0.9))
    assert "90 % from" in text
    assert "\nincome " in text
    assert "400 rows of 4 sites, errors clustered by site, times G/(G-1) * (N-1)/(N-p)" in text
    assert "AIC" in text


@pytest.mark.parametrize("solver", ["lbfgs", LBFGS(1e-6)], ids=["by name", "with settings"])
def test_other_solvers(solver):
    model = LogisticClassifier(1.0, solver=solver, network=net()).fit(shares_of(TWO, Z))
    wanted = exact(1.0).fit(shares_of(TWO, Z))
    np.testing.assert_allclose(model.coefficients_, wanted.coefficients_, atol=1e-5)


def separated(kind):
    """Tables in which one column or several predict some labels without an error."""
    rng = np.random.default_rng(1)
    inputs = rng.standard_normal((200, 4))
    y = (rng.uniform(size=200) < 1 / (1 + np.exp(-inputs[:, 0]))).astype(int)
    rare = rng.uniform(size=200) < 0.1
    if kind == "all rows":
        return inputs, (inputs[:, 2] > 0.1).astype(int), "column x2 is enough"
    if kind == "all rows by two":
        return inputs, (inputs[:, 1] - inputs[:, 2] > 0.1).astype(int), "columns x1, x2 are enough"
    inputs[:, 1] = 1000.0 + rare
    if kind == "some rows":
        return inputs, np.where(rare, 1, y), "column x1 is enough"
    y = rng.integers(0, 3, 200)
    if kind == "some rows of three classes":
        return inputs, np.where(rare, 2, y), "column x1 is enough"
    return inputs, np.where(rare, np.minimum(y, 1), y), "column x1 is enough"


KINDS = [
    "all rows",
    "all rows by two",
    "some rows",
    "some rows of three classes",
    "one class never",
]


@pytest.mark.filterwarnings(GROWS)
@pytest.mark.parametrize("kind", KINDS)
def test_separation_is_named_and_a_penalty_helps(kind):
    inputs, y, sentence = separated(kind)
    with pytest.raises(DataError, match=f"targets are separated: {sentence}.*penalty helps"):
        exact().fit(inputs, y)
    assert exact(0.1).fit(inputs, y).report_.converged


@pytest.mark.filterwarnings(GROWS)
def test_other_solvers_find_separation_of_all_rows():
    inputs, y, sentence = separated("all rows")
    with pytest.raises(DataError, match=f"targets are separated: {sentence}"):
        exact(solver="lbfgs").fit(inputs, y)


def test_large_coefficients_are_no_separation():
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((2000, 2))
    y = (rng.uniform(size=2000) < 1 / (1 + np.exp(-20 * inputs[:, 0]))).astype(int)
    model = exact().fit(inputs, y)
    assert model.coefficients_[0, 0, 0] > 10
    assert model.report_.converged


def with_column(values):
    return [(np.column_stack([own, values[: len(own)]]), y) for own, y in shares_of(TWO)]


BAD = {
    "constant": (lambda m: m.fit(with_column(np.full(400, 7.7))), "column x3 is constant over the"),
    "dependent": (
        lambda m: m.fit([(np.column_stack([own, own[:, 0] - own[:, 1]]), y) for own, y in BOTH]),
        "columns .*x3 are a linear combination",
    ),
    "one class": (lambda m: m.fit(X, np.ones(400)), "only one class in the whole network"),
    "few rows": (
        lambda m: m.fit(X[:60:10], THREE[:60:10]),
        "6 rows of .* determine 8 coefficients",
    ),
    "class without weight": (lambda m: m.fit(X, TWO, TWO), "all rows of class 0 have weight 0"),
    "offset of three": (lambda m: m.fit(X, THREE, None, OFFSETS), "one number per row and class"),
    "offset too short": (lambda m: m.fit(X, TWO, None, OFFSETS[:9]), "give one number per row"),
    "offset not finite": (lambda m: m.fit(X, TWO, None, OFFSETS * np.nan), "finite numbers"),
    "offset no list": (lambda m: m.fit(BOTH, offset=OFFSETS), "a list of 4 arrays"),
    "offset text": (lambda m: m.fit(X, TWO, None, ["a"] * 400), "offset must hold numbers"),
    "alpha": (lambda m: m.set_params(alpha=-1.0).fit(X, TWO), "alpha is -1"),
    "intercept": (lambda m: m.set_params(fit_intercept="auto").fit(X, TWO), "True or False"),
    "penalty name": (lambda m: m.set_params(penalty="l1").fit(X, TWO), "give 'ridge' or 'lasso'"),
    "lasso by lbfgs": (
        lambda m: m.set_params(alpha=1.0, penalty="lasso", solver="lbfgs").fit(X, TWO),
        "lasso' needs solver='newton'",
    ),
    "next": (lambda m: m.set_params(solver=NEXT()).fit(X, TWO), "NEXT needs a penalty"),
    "penalty": (lambda m: m.set_params(alpha=1.0).fit(X, TWO).summary(), "fit with alpha=0"),
    "errors": (lambda m: m.fit(X, TWO).summary("robust"), "'model' or 'sites'"),
    "level": (lambda m: m.fit(X, TWO).summary(level=95), "between 0 and 1"),
}
BOTH = shares_of(TWO, Z)


@pytest.mark.filterwarnings(GROWS)
@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, sentence = BAD[name]
    with pytest.raises(InputError, match=sentence):
        call(exact())


def test_columns_without_information_need_a_penalty():
    model = exact(1.0).fit(with_column(np.full(400, 7.7)))
    assert abs(model.coefficients_[0, 3, 0]) < 1e-20
    zeros = [(np.column_stack([own, np.zeros(len(own))]), y) for own, y in BOTH]
    with pytest.raises(DataError, match="column x3 is zero in all rows"):
        exact(fit_intercept=False).fit(zeros)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three"])
def test_a_loaded_model_has_its_standard_errors(y, tmp_path):
    model = exact().fit(shares_of(y))
    archive.save(model, tmp_path / "model.npz")
    loaded = archive.load(tmp_path / "model.npz").model
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    for errors in ("model", "sites"):
        assert str(loaded.summary(errors)) == str(model.summary(errors))


def test_a_saved_model_of_one_site_has_no_errors_by_sites(tmp_path):
    model = LogisticClassifier(0.0).fit(X, TWO)
    archive.save(model, tmp_path / "model.npz")
    loaded = archive.load(tmp_path / "model.npz").model
    assert str(loaded.summary()) == str(model.summary())
    with pytest.raises(InputError, match="only one has some"):
        loaded.summary("sites")


def test_a_file_with_wrong_standard_errors_is_refused(tmp_path):
    model = exact().fit(shares_of(TWO))
    archive.save(model, tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as file:
        arrays = dict(file)
    arrays["covariance"] = arrays["covariance"][:2]
    np.savez(tmp_path / "model.npz", **arrays)
    with pytest.raises(DataError, match="covariance has shape"):
        archive.load(tmp_path / "model.npz")


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three"])
@pytest.mark.parametrize("given", ["balanced", {1: 3.0}], ids=str)
def test_class_weights_as_scikit_learn(y, given):
    model = LogisticClassifier(0.5, class_weight=given, network=net())
    model.fit(shares_of(y, Z), sample_weight=by_site(WEIGHTS))
    factors = given
    if given == "balanced":  # scikit-learn counts rows, and does so before their weights
        labels, counts = np.unique(y, return_counts=True)
        factors = dict(zip(labels.tolist(), len(y) / (len(labels) * counts), strict=True))
    wanted = LogisticRegression(C=2.0, class_weight=factors, tol=1e-10, max_iter=1000)
    wanted.fit(Z, y, WEIGHTS)
    np.testing.assert_allclose(model.predict_proba(Z), wanted.predict_proba(Z), atol=1e-6)


@pytest.mark.parametrize("given", ["even", {1: -1.0}, {1: "a"}], ids=str)
def test_wrong_class_weights_are_refused(given):
    with pytest.raises((InputError, TypeError), match="class_weight"):
        LogisticClassifier(class_weight=given).fit(X, TWO)


def test_a_class_without_weight_is_named():
    with pytest.raises(DataError, match="all rows of class 1 have weight 0"):
        LogisticClassifier(class_weight={1: 0.0}, network=net()).fit(X, TWO)


def test_ten_classes_take_few_sums():
    table = data.load("digits")
    model = LogisticClassifier(network=net(10), random_state=0).fit(table.X, table.y)
    assert model.score(table.X, table.y) > 0.98
    assert model.report_.iterations <= 10
