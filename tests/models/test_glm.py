"""Generalised linear regression: the answers of statsmodels and scikit-learn on the pooled rows,
and bad input.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.linear_model import GammaRegressor, PoissonRegressor, Ridge

from peerlearn import GLMRegressor, SimulatedNetwork, graphs
from peerlearn.errors import DataError, InputError
from peerlearn.models import archive
from tests.support.like_statsmodels import check_summary
from tests.support.sites_with_effects import (
    COUNTS,
    NUMBERS,
    OFFSETS,
    POSITIVE,
    SITES,
    WEIGHTS,
    X,
    by_site,
    shares_of,
)

Z = (X - X.mean(axis=0)) / X.std(axis=0)
TARGETS = {"gaussian": NUMBERS, "poisson": COUNTS, "gamma": POSITIVE}
FAMILIES = {
    "gaussian": sm.families.Gaussian(),
    "poisson": sm.families.Poisson(),
    "gamma": sm.families.Gamma(sm.families.links.Log()),
}
TO_THE_END = {"tol": 1e-14, "tol_criterion": "params", "maxiter": 100}
CLUSTERED = {"cov_type": "cluster", "cov_kwds": {"groups": SITES}}


def exact(family, alpha=0.0, **settings):
    network = SimulatedNetwork(graphs.ring(4))
    return GLMRegressor(family, alpha, network=network, random_state=0, **settings)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights and offsets"])
@pytest.mark.parametrize("family", TARGETS)
def test_as_statsmodels(family, weighted):
    y = TARGETS[family]
    more = {}
    options = {}
    if weighted:
        more = {"sample_weight": by_site(WEIGHTS), "offset": by_site(OFFSETS)}
        options = {"var_weights": WEIGHTS, "offset": OFFSETS}
    model = exact(family).fit(shares_of(y), **more)
    rival = sm.GLM(y, sm.add_constant(X), family=FAMILIES[family], **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # statsmodels: weights with clusters are new
        pooled = rival.fit(**TO_THE_END)
        check_summary(model, pooled, rival.fit(**TO_THE_END, **CLUSTERED))
    offset = OFFSETS if weighted else None
    np.testing.assert_allclose(model.predict(X, offset), pooled.fittedvalues, rtol=1e-8)
    assert model.report_.iterations <= 8


RIVALS = {
    "gaussian": lambda alpha: Ridge(alpha),
    "poisson": lambda alpha: PoissonRegressor(alpha=alpha / 400, tol=1e-12, max_iter=10_000),
    "gamma": lambda alpha: GammaRegressor(alpha=alpha / 400, tol=1e-12, max_iter=10_000),
}


@pytest.mark.parametrize("family", TARGETS)
def test_ridge_as_scikit_learn(family):
    y = TARGETS[family]
    model = exact(family, 20.0).fit(shares_of(y, Z))
    rival = RIVALS[family](20.0).fit(Z, y)
    np.testing.assert_allclose(model.coefficients_[0, :, 0], rival.coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict(Z), rival.predict(Z), rtol=1e-6)


SLOPES = {
    "gaussian": lambda f, y: f - y,
    "poisson": lambda f, y: np.exp(f) - y,
    "gamma": lambda f, y: 1 - y * np.exp(-f),
}


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("family", TARGETS)
def test_lasso_meets_the_conditions_of_a_minimum(family, intercept):
    y = TARGETS[family] * 1e3  # far from the start without an intercept: steps must be shortened
    inputs = np.column_stack([Z, np.random.default_rng(3).standard_normal((len(Z), 6))])
    # With an intercept, slopes of gamma do not depend on the unit of y.
    alpha = 20.0 if family == "gamma" and intercept else 1e4
    model = exact(family, alpha, penalty="lasso", fit_intercept=intercept)
    model.fit(shares_of(y, inputs))
    b = model.coefficients_[0, :, 0]
    slopes = SLOPES[family](inputs @ b + model.intercept_[0], y)
    g = inputs.T @ slopes
    assert 0 < np.count_nonzero(b) < len(b)
    if intercept:
        assert abs(slopes.sum()) < 1e-5 * np.abs(y).sum()
    np.testing.assert_allclose(g[b != 0], -alpha * np.sign(b[b != 0]), rtol=1e-6)
    assert (np.abs(g[b == 0]) <= alpha).all()
    assert model.report_.converged


def test_offsets_of_any_size_cost_no_more_sums():
    """Counts per person, where sites count millions of persons."""
    persons = np.random.default_rng(0).uniform(1e5, 1e7, len(X))
    y = np.random.default_rng(1).poisson(persons * np.exp(0.3 * Z[:, 0] - 9))
    model = exact("poisson").fit(Z, y, offset=np.log(persons))
    assert model.report_.iterations <= 7
    np.testing.assert_allclose(model.intercept_[0], -9, atol=0.05)


@pytest.mark.parametrize("family", TARGETS)
def test_saved_and_loaded(family, tmp_path):
    model = exact(family).fit(shares_of(TARGETS[family]))
    archive.save(model, tmp_path / "model.npz")
    loaded = archive.load(tmp_path / "model.npz").model
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_as_many_rows_as_coefficients_have_no_dispersion():
    model = exact("gaussian").fit(Z[::100], NUMBERS[::100])
    assert np.isnan(model.summary().standard_errors).all()


@pytest.mark.filterwarnings("ignore::peerlearn.errors.NotConverged")
def test_counts_that_are_all_zero_where_a_column_is_one():
    rare = np.arange(len(X)) % 10 == 0
    inputs = np.column_stack([Z, rare])
    y = np.where(rare, 0, COUNTS)
    with pytest.raises(DataError, match=r"separated: column x3 is enough.*penalty helps"):
        exact("poisson").fit(inputs, y)
    assert exact("poisson", 0.1).fit(inputs, y).coefficients_[0, 3, 0] < -1


BAD = {
    "family": (lambda: exact("binomial").fit(X, COUNTS), "family is 'binomial': give one of"),
    "negative": (lambda: exact("poisson").fit(shares_of(NUMBERS)), "agent 0: y has -.*0 or more"),
    "zero": (lambda: exact("gamma").fit(shares_of(COUNTS)), "agent 0: y has 0.*above 0"),
    "all zero": (lambda: exact("poisson").fit(X, 0 * COUNTS), "all targets .* are 0"),
    "two columns": (lambda: exact("gaussian").fit(X, X[:, :2]), "1d array"),
    "few rows": (lambda: exact("gaussian").fit(X[:4][:, :1].repeat(4, 1), NUMBERS[:4]), "4 rows"),
    "no weight": (
        lambda: exact("gaussian").fit(X, NUMBERS, np.zeros(len(X))),
        "sample_weight is zero for all rows",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, sentence = BAD[name]
    with pytest.raises((InputError, ValueError), match=sentence):
        call()
