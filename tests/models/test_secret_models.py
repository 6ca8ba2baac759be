"""Models whose sums are hidden under secrecy, and everything that is refused there."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from peerlearn import (
    LBFGS,
    GLMRegressor,
    LogisticClassifier,
    NetworkSearchCV,
    Newton,
    RVFLRegressor,
    S3VMClassifier,
    SimulatedNetwork,
    graphs,
)
from peerlearn.algorithms import secret_sums
from peerlearn.algorithms.threshold import threshold
from peerlearn.errors import DataError, InputError, NetworkError
from peerlearn.models.registry import models
from peerlearn.secret.statement import HIDDEN_SUMS, ONLY_TOTALS
from peerlearn.testing import model_data
from peerlearn.testing.model_settings import make_small, stream_variants, variants
from peerlearn.testing.threads import run_in_threads

GRAPH = graphs.erdos_renyi(7, 0.4, seed=1)
RNG = np.random.default_rng(0)
ROWS = [RNG.standard_normal((n, 3)) for n in (9, 0, 40, 2, 15, 1, 30)]
SECRET = {"secrecy": "sums", "colluders": 2}
CLASSES = {2: ["a", "b"], 3: ["a", "b", "c"]}


def labelled(count):
    return [(X, np.array(CLASSES[count])[np.arange(len(X)) % count]) for X in ROWS]


def counted():
    return [(X, np.random.default_rng(len(X)).poisson(np.exp(X[:, 0])) + 1.0) for X in ROWS]


def partly_labelled(count):
    return [(X, np.where(np.arange(len(X)) < 3, np.arange(len(X)) % count, -1)) for X in ROWS]


FITS = {
    "logistic": (LogisticClassifier(classes=CLASSES[2]), labelled(2)),
    "multinomial": (LogisticClassifier(classes=CLASSES[3]), labelled(3)),
    "maximum likelihood": (LogisticClassifier(0.0, classes=CLASSES[2]), labelled(2)),
    "balanced": (
        LogisticClassifier(class_weight="balanced", classes=CLASSES[3]),
        labelled(3),
    ),
    "gaussian": (GLMRegressor(alpha=0.0), counted()),
    "poisson": (GLMRegressor("poisson"), counted()),
    "gamma": (GLMRegressor("gamma", 0.0), counted()),
    "lasso": (GLMRegressor("poisson", penalty="lasso"), counted()),
    "by lbfgs": (LogisticClassifier(classes=CLASSES[2], solver=LBFGS()), labelled(2)),
    "s3vm": (S3VMClassifier(classes=[0, 1]), partly_labelled(2)),
    "s3vm by newton": (S3VMClassifier(classes=[0, 1], solver=Newton()), partly_labelled(2)),
    "s3vm of three": (S3VMClassifier(classes=[0, 1, 2]), partly_labelled(3)),
}


def over(model, network, shares):
    return type(model)(**{**model.get_params(deep=False), "network": network}).fit(shares)


@pytest.mark.parametrize("fit", FITS)
def test_the_answer_is_that_without_secrecy(fit):
    model, shares = FITS[fit]
    model.set_params(random_state=0)
    plain = over(model, SimulatedNetwork(GRAPH), shares)
    secret = over(model, SimulatedNetwork(GRAPH, **SECRET), shares)
    both = plain.report_.bound + secret.report_.bound
    away = np.linalg.norm(plain.coefficients_[0] - secret.coefficients_[0])
    assert away <= both * np.linalg.norm(plain.coefficients_[0])
    np.testing.assert_allclose(plain.coefficients_, secret.coefficients_, atol=1e-8)
    if not fit.startswith("s3vm"):  # whose last step finds another place in the same gap
        np.testing.assert_allclose(plain.intercept_, secret.intercept_, atol=1e-8)
    X = np.vstack(ROWS)
    np.testing.assert_allclose(
        *[[float(hash(v)) for v in each.predict(X)] for each in (plain, secret)], rtol=1e-7
    )
    assert secret.report_.secrecy.claim == HIDDEN_SUMS
    assert "no claim about their sequence; secret against 2 of 7 agents" in str(secret.report_)


@pytest.mark.parametrize("fit", ["logistic", "gamma", "s3vm", "s3vm by newton", "lasso"])
def test_agents_that_share_only_messages_have_the_bits_of_a_simulation(fit):
    model, shares = FITS[fit]
    model.set_params(random_state=0)
    expected = over(model, SimulatedNetwork(GRAPH, exact_order=True, **SECRET), shares)

    def work(network):
        network.keep_secrets("sums", 2)
        return over(model, network, [shares[network.hosted[0]]])

    for found in run_in_threads(GRAPH, work):
        np.testing.assert_array_equal(found.coefficients_[0], expected.coefficients_[0])
        np.testing.assert_array_equal(found.intercept_[0], expected.intercept_[0])


def test_standard_errors_are_those_without_secrecy_and_none_are_by_sites():
    """Products of single sites' gradients have a sum of low rank, which would tell the gradients"""
    model, shares = FITS["maximum likelihood"]
    plain = over(model, SimulatedNetwork(GRAPH), shares)
    secret = over(model, SimulatedNetwork(GRAPH, **SECRET), shares)
    expected = plain.summary()
    found = secret.summary()
    np.testing.assert_allclose(found.standard_errors, expected.standard_errors)
    np.testing.assert_allclose(found.aic, expected.aic)
    with pytest.raises(InputError, match="secret sums give no errors by sites"):
        secret.summary(errors="sites")


def test_a_step_that_overflows_is_taken_back():
    """A full step of Newton's method would reach exp(200) here, which fixed-point numbers lack."""
    shares = [(X, np.where(X[:, 0] > 1.5, 1e30, 1.0)) for X in ROWS]
    model = GLMRegressor("poisson", 1e-3)
    plain = over(model, SimulatedNetwork(GRAPH), shares)
    secret = over(model, SimulatedNetwork(GRAPH, **SECRET), shares)
    np.testing.assert_allclose(plain.coefficients_, secret.coefficients_, rtol=1e-6)


def test_masks_that_do_not_cancel_stop_all_agents_of_a_search():
    """The root searches with zeros until it sends its next point, and a code with it."""

    def work(network):
        network.keep_secrets("sums", 2)
        if network.hosted[0] == 3:
            network.sessions = secret_sums._Sessions(network)
            session = secret_sums.session_of(network)
            session._histories = [bytes(32)]
        stops = pytest.raises(NetworkError, match="masks of the agents did not cancel")
        with stops, secret_sums.one_session(network):
            secret_sums.session_of(network)
            Newton().minimise(network, model_losses(network), 1.0)
        return True

    assert all(run_in_threads(GRAPH, work))


def model_losses(network):
    from peerlearn.local.margin_losses import LogisticLosses

    X = ROWS[2][: 2 + network.hosted[0]]
    return LogisticLosses([X], [np.where(np.arange(len(X)) % 2, 1.0, -1.0)])


@pytest.mark.parametrize("below", [1, 3, 40, 96])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_a_threshold_by_counts_alone_has_as_many_values_below(below, scale):
    values = [scale * X[:, 0] for X in ROWS]
    network = SimulatedNetwork(GRAPH, **SECRET)
    with secret_sums.one_session(network):
        t = threshold(network, values, below, count=97)
    assert np.count_nonzero(np.concatenate(values) <= t) == below


def test_a_threshold_among_equal_values_is_at_the_nearer_end():
    values = [np.array([0.0, 1.0, 1.0, 1.0]) for _ in range(7)]
    network = SimulatedNetwork(GRAPH, **SECRET)
    with secret_sums.one_session(network):
        t = threshold(network, values, 9, count=28)
    assert np.count_nonzero(np.concatenate(values) <= t) == 7


REFUSED = {
    "LogisticClassifier would have to send labels": LogisticClassifier(),
    "S3VMClassifier would have to send labels": S3VMClassifier(),
    "Diffusion would show": LogisticClassifier(classes=[0, 1], solver="diffusion"),
    "GradientTracking would show": S3VMClassifier(classes=[0, 1], solver="tracking"),
    "NEXT would show": S3VMClassifier(classes=[0, 1], solver="next"),
    "S3VMClassifier with probability=True would": S3VMClassifier(classes=[0, 1], probability=True),
}


@pytest.mark.parametrize("words", REFUSED)
def test_settings_that_would_show_more_are_refused_before_the_first_message(words):
    network = SimulatedNetwork(GRAPH, **SECRET)
    model = REFUSED[words].set_params(network=network)
    with pytest.raises(InputError, match=f"keeps sums secret, and {words}.*: .*nothing was sent"):
        model.fit(partly_labelled(2))
    assert network.ledger.messages == 0


def test_classes_must_have_no_mark_of_missing_labels_and_all_labels():
    network = SimulatedNetwork(GRAPH, **SECRET)
    for classes, words in (([-1, 0, 1], "-1 is among classes"), ([1, 2], "label 0, which is not")):
        with pytest.raises(DataError, match=words):
            S3VMClassifier(classes=classes, network=network).fit(partly_labelled(2))
    assert network.ledger.messages == 0


def test_a_search_is_refused_before_the_first_message():
    network = SimulatedNetwork(GRAPH, **SECRET)
    model = RVFLRegressor(10, 1.0, features="fixed", solver="gram", network=network)
    search = NetworkSearchCV(model, {"alpha": [0.1, 1.0]}, random_state=0)
    with pytest.raises(InputError, match=r"keeps sums secret, and NetworkSearchCV .*: .*nothing"):
        search.fit([(X, X[:, 0]) for X in ROWS])
    assert network.ledger.messages == 0


def every_training():
    """Every model of the package with every algorithm, and every learner of streams."""
    for name, kind in models().items():
        for words, settings in variants(kind):
            yield pytest.param(kind, settings, False, id=f"{name} {words}")
        for words, settings in stream_variants(kind):
            yield pytest.param(kind, settings, True, id=f"{name} stream {words}")


@pytest.mark.parametrize(("kind", "settings", "streams"), list(every_training()))
def test_every_model_and_algorithm_is_in_a_class_or_refused_with_a_way_out(kind, settings, streams):
    network = SimulatedNetwork(GRAPH, **SECRET)
    model = make_small(kind, settings, network)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if streams:
                model.begins_stream = True
            model.check_settings()
    except InputError as error:
        said = str(error)
        assert said.startswith("this network keeps sums secret, and ")
        assert "use" in said or "give" in said or "set" in said
        assert said.endswith("nothing was sent")
    else:
        assert model.claim in (ONLY_TOTALS, HIDDEN_SUMS)
        part = model.part("stream" if streams else "solver")
        assert part.claim == model.claim
    assert network.ledger.messages == 0


@pytest.mark.parametrize("name", sorted(set(models()) - {"GLMRegressor"}))
def test_a_model_that_is_refused_sends_nothing(name):
    """With usual settings only GLMRegressor can be used: others need some, or are refused."""
    kind = models()[name]
    network = SimulatedNetwork(GRAPH, **SECRET)
    model = make_small(kind, {}, network)
    nothing = np.zeros((7, 20))

    def train():
        if kind.takes == "signals":
            return model.run(nothing, nothing)
        return model_data.fit(model, network.hosted, False, np.asarray)

    with pytest.raises(InputError, match="this network keeps sums secret, and"):
        train()
    assert network.ledger.messages == 0
