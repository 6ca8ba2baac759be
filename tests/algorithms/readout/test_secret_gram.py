"""Gram under secrecy: the answer of Gram, from totals alone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from peerlearn import (
    ADMM,
    AnchorLapClassifier,
    Gram,
    RVFLClassifier,
    RVFLRegressor,
    SimulatedNetwork,
    graphs,
)
from peerlearn.errors import DataError, InputError, NotConverged
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Ridge
from peerlearn.testing.threads import run_in_threads

GRAPH = graphs.erdos_renyi(7, 0.4, seed=1)
RNG = np.random.default_rng(0)
SHARES = [(RNG.standard_normal((n, 3)), RNG.standard_normal(n)) for n in (9, 0, 40, 2, 15, 1, 30)]
SECRET = {"secrecy": "sums", "colluders": 2}


def regressor(network=None, **settings):
    usual = {"alpha": 0.5, "features": "fixed", "solver": "gram", "random_state": 0}
    return RVFLRegressor(12, network=network, **{**usual, **settings})


def classifier(network=None, **settings):
    usual = {"alpha": 0.5, "features": "fixed", "solver": "gram", "random_state": 0}
    return RVFLClassifier(12, network=network, **{**usual, "classes": ["a", "b", "c"], **settings})


def labelled(classes):
    return [(X, np.array(classes)[np.arange(len(X)) % len(classes)]) for X, _ in SHARES]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("features", ["fixed", "columns"])
def test_a_regressor_is_the_one_without_secrecy_within_both_bounds(intercept, features):
    settings = {"fit_intercept": intercept, "features": features}
    if features == "columns":
        settings["n_hidden"] = None
    model = regressor().set_params(**settings)
    plain = clone(model).set_params(network=SimulatedNetwork(GRAPH)).fit(SHARES)
    secret = clone(model).set_params(network=SimulatedNetwork(GRAPH, **SECRET)).fit(SHARES)
    both = plain.report_.bound + secret.report_.bound
    assert both < 1e-9
    away = np.linalg.norm(plain.coefficients_ - secret.coefficients_)
    assert away <= both * np.linalg.norm(plain.coefficients_)
    np.testing.assert_allclose(plain.intercept_, secret.intercept_, atol=1e-9)
    assert secret.intercept_.any() == intercept


@pytest.mark.parametrize("classes", [["a", "b"], ["a", "b", "c"], ["a", "b", "c", "unseen"]])
def test_a_classifier_is_the_one_without_secrecy(classes):
    shares = labelled([label for label in classes if label != "unseen"])
    secret = classifier(SimulatedNetwork(GRAPH, **SECRET), classes=classes).fit(shares)
    plain = classifier(SimulatedNetwork(GRAPH), classes=classes).fit(shares)
    np.testing.assert_allclose(secret.coefficients_, plain.coefficients_, atol=1e-10)
    X = np.vstack([X for X, _ in SHARES])
    np.testing.assert_array_equal(secret.predict(X), plain.predict(X))
    assert secret.classes_.tolist() == classes


@pytest.mark.parametrize("class_weight", ["balanced", {"a": 3.0}, None])
def test_weights_of_rows_and_classes_are_those_without_secrecy(class_weight):
    shares = labelled(["a", "b", "c", "a"])
    weights = None
    if class_weight is None:
        weights = [np.arange(len(X)) % 3 / 7 for X, _ in SHARES]
    found = []
    for settings in (SECRET, {}):
        model = classifier(SimulatedNetwork(GRAPH, **settings), class_weight=class_weight)
        found.append(model.fit(shares, sample_weight=weights))
    secret, plain = found
    assert secret.report_.bound < 1e-9
    away = np.linalg.norm(plain.coefficients_[0] - secret.coefficients_[0])
    both = plain.report_.bound + secret.report_.bound
    assert away <= both * np.linalg.norm(plain.coefficients_[0])
    np.testing.assert_allclose(plain.intercept_, secret.intercept_, atol=1e-9)
    unweighted = classifier(SimulatedNetwork(GRAPH)).fit(shares)
    assert np.abs(unweighted.coefficients_ - secret.coefficients_).max() > 1e-3
    assert ("rows of each class" in str(secret.report_)) == (class_weight == "balanced")


def test_sums_of_the_report():
    report = regressor(SimulatedNetwork(GRAPH, **SECRET)).fit(SHARES).report_
    assert report.converged
    said = str(report)
    assert "only the listed totals are learned; secret against 2 of 7 agents" in said
    assert "2: squares of features and targets, number or weight of rows, sums of features" in said
    assert "visible       shapes" in said
    assert "limits        totals may reveal rows" in said
    assert report.for_json()["secrecy"]["colluders"] == 2
    assert "secrecy" not in regressor(SimulatedNetwork(GRAPH)).fit(SHARES).report_.for_json()


def test_agents_that_share_only_messages_have_the_bits_of_a_simulation():
    expected = regressor(SimulatedNetwork(GRAPH, **SECRET)).fit(SHARES)

    def work(network):
        network.keep_secrets("sums", 2)
        return regressor(network).fit([SHARES[network.hosted[0]]])

    for model in run_in_threads(GRAPH, work):
        np.testing.assert_array_equal(model.coefficients_[0], expected.coefficients_[0])
        np.testing.assert_array_equal(model.intercept_[0], expected.intercept_[0])


@pytest.mark.parametrize(("offset", "totals"), [(1e2, 2), (1e4, 2), (1e6, 5), (1e8, 5)])
def test_bounds_hold_for_raw_columns(offset, totals):
    """Columns far from zero lose digits when means are subtracted from the total.

    Then the means are summed first, and the matrix about them.
    """
    scales = np.array([1e-3, 1, 1e3])
    far = [((X + offset) * scales, y) for X, y in SHARES]
    settings = {"features": "columns", "n_hidden": None, "alpha": 1e-3}
    plain = regressor(SimulatedNetwork(GRAPH)).set_params(**settings).fit(far)
    secret = regressor(SimulatedNetwork(GRAPH, **SECRET)).set_params(**settings).fit(far)
    assert secret.report_.converged
    assert len(secret.report_.secrecy.totals) == totals
    size = np.linalg.norm(plain.coefficients_[0])
    away = np.linalg.norm(plain.coefficients_[0] - secret.coefficients_[0])
    assert away <= (secret.report_.bound + plain.report_.bound) * size


def collinear(spread):
    """Shares whose last column is the sum of the others, up to `spread`."""
    shares = []
    for X, y in SHARES:
        last = X.sum(axis=1, keepdims=True) + spread * X[:, :1] ** 2
        shares.append((np.hstack([X, last]) * 100, y))
    return shares


@pytest.mark.parametrize(
    ("spread", "alpha", "intercept"),
    [(1e-4, 1e-4, True), (1e-5, 1e-4, True), (1e-5, 1e-4, False), (1e-6, 1e-6, False)],
)
def test_refinement_reaches_the_answer_where_the_condition_is_large(spread, alpha, intercept):
    settings = {"features": "columns", "n_hidden": None, "alpha": alpha, "fit_intercept": intercept}
    shares = collinear(spread)
    plain = regressor(SimulatedNetwork(GRAPH)).set_params(**settings).fit(shares)
    secret = regressor(SimulatedNetwork(GRAPH, **SECRET)).set_params(**settings).fit(shares)
    assert plain.report_.converged
    assert secret.report_.converged
    both = plain.report_.bound + secret.report_.bound
    size = np.linalg.norm(plain.coefficients_[0])
    assert np.linalg.norm(plain.coefficients_[0] - secret.coefficients_[0]) <= both * size
    assert "gradient of the objective" in secret.report_.secrecy.totals


def test_an_answer_beyond_double_precision_is_reported_as_such():
    settings = {"features": "columns", "n_hidden": None, "alpha": 1e-13}
    model = regressor(SimulatedNetwork(GRAPH, **SECRET)).set_params(**settings)
    with pytest.warns(NotConverged, match="secret sums send no R factors"):
        model.fit(collinear(0.0))


REFUSED = {
    "ADMM makes totals": {"solver": ADMM()},
    "a number as alpha": {"alpha": "auto"},
    "features='fixed'": {"features": "auto"},
    "would have to send labels": {"classes": None},
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_would_send_more_is_refused_before_the_first_message(words):
    network = SimulatedNetwork(GRAPH, **SECRET)
    model = classifier(network, **REFUSED[words])
    with pytest.raises(InputError, match=f"keeps sums secret, and .*{words}"):
        model.fit(labelled(["a", "b"]))
    with pytest.raises(InputError, match=words):
        model.check_settings()
    assert network.ledger.messages == 0


def test_streams_and_other_models_are_refused_before_the_first_message():
    network = SimulatedNetwork(GRAPH, **SECRET)
    with pytest.raises(InputError, match="keeps sums secret"):
        regressor(network).partial_fit(SHARES)
    with pytest.raises(InputError, match="AnchorLapClassifier would"):
        AnchorLapClassifier(network=network).fit(labelled(["a", "b"]))
    assert network.ledger.messages == 0


def test_a_sum_that_could_overflow_is_refused_at_home_before_any_sum():
    network = SimulatedNetwork(GRAPH, **SECRET)
    shares = [(X, y * 1e30) for X, y in SHARES]
    with pytest.raises(DataError, match="scale the inputs or targets"):
        regressor(network).fit(shares)
    assert network.ledger.rounds == network.flood_rounds  # only settings were compared


def test_answers_that_do_not_exist():
    network = SimulatedNetwork(GRAPH, **SECRET)
    with pytest.raises(DataError, match="no agent of the network has a row"):
        regressor(network).fit([(X[:0], y[:0]) for X, y in SHARES])
    with pytest.raises(DataError, match="undetermined"):
        regressor(network, alpha=0.0).fit([(X[:1], y[:1]) for X, y in SHARES])


def test_a_label_that_is_not_among_the_classes_is_refused_at_home():
    network = SimulatedNetwork(GRAPH, **SECRET)
    with pytest.raises(DataError, match="'c', which is not among the classes that the model was"):
        classifier(network, classes=["a", "b"]).fit(labelled(["a", "b", "c"]))
    assert network.ledger.messages == 0


def test_given_classes_need_no_messages_without_secrecy_either():
    found = classifier(SimulatedNetwork(GRAPH), classes=None).fit(labelled(["a", "b", "c"]))
    given = classifier(SimulatedNetwork(GRAPH)).fit(labelled(["a", "b", "c"]))
    np.testing.assert_array_equal(found.coefficients_, given.coefficients_)
    assert given.report_.sent.messages < found.report_.sent.messages


@pytest.mark.parametrize("solver", [Gram(), ADMM()])
def test_a_solver_that_is_called_without_a_model_meets_the_network_itself(solver):
    network = SimulatedNetwork(GRAPH, **SECRET)
    problems = LeastSquares.of_rows([X for X, _ in SHARES], [y[:, None] for _, y in SHARES])
    with pytest.raises(InputError, match="keeps sums secret"):
        solver.solve(network, problems, Ridge(1.0))
    assert network.ledger.messages == 0
