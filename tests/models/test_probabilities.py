"""predict_proba of classifiers whose probabilities follow from scores of rows held out."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_moons
from sklearn.metrics import log_loss
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from peerlearn import (
    AnchorLapClassifier,
    LapKRRClassifier,
    RVFLClassifier,
    S3VMClassifier,
    SimulatedNetwork,
    VerticalRVFLClassifier,
    data,
    graphs,
    partition,
)
from peerlearn.algorithms.readout.chosen_features import FOLDS, Rows
from peerlearn.errors import DataError, InputError
from peerlearn.local.held_out import HeldOutScores
from peerlearn.models import archive
from peerlearn.models.base import DEALING
from peerlearn.models.probabilities import deal_folds
from peerlearn.models.vertical import TIES
from peerlearn.network.faults import Faults

MOONS = make_moons(300, noise=0.3, random_state=0)
IRIS = (data.load("iris").X, data.load("iris").y)
FIXED = {"n_hidden": 30, "alpha": 0.5, "activation": "tanh", "random_state": 0}


def net(agents=4):
    return SimulatedNetwork(graphs.ring(agents))


def folds_of(model, X, y, weights=None):
    """Return the fold of each row, which follows from the row alone."""
    setup = model.check_settings()
    outputs = [np.ones((len(y), 1))]
    seed = setup.seeds["the features"]
    given = None if weights is None else [weights]
    rows = Rows(setup.network, setup.parts["solver"], [X], outputs, given, seed, True)
    return rows.hashes[0] % FOLDS


def pooled_scale(scores, codes, weights):
    """Return the factor of the pooled rows, as the formula of its loss has it."""
    C = max(scores.shape[1], 2)
    F = np.hstack([0 * scores, scores]) if scores.shape[1] == 1 else scores
    W = np.bincount(codes, weights)
    right = ((W + 1) / (W + 2))[codes]
    T = np.tile(((1 - right) / (C - 1))[:, None], (1, C))
    T[np.arange(len(T)), codes] = right

    def slope(s):
        return weights @ ((softmax(s * F, axis=1) - T) * F).sum(axis=1)

    return brentq(slope, 1e-6, 1e4, xtol=1e-14, rtol=1e-14)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("table", [MOONS, IRIS], ids=["two classes", "three"])
def test_the_answer_of_the_pooled_rows(table, weighted, intercept):
    X, y = table
    settings = {**FIXED, "fit_intercept": intercept, "probability": True}
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    if not weighted:
        weights = np.ones(len(y))
    rows = np.array_split(np.arange(len(y)), [0, 90, 91])  # one agent has no rows, one has one
    given = [weights[own] for own in rows] if weighted else None
    model = RVFLClassifier(network=net(), **settings)
    model.fit([(X[own], y[own]) for own in rows], sample_weight=given)

    alone = RVFLClassifier(**{**settings, "probability": False})
    folds = folds_of(alone, X, y, weights if weighted else None)
    scores = np.zeros((len(y), 1 if len(np.unique(y)) == 2 else 3))
    for fold in range(FOLDS):
        others = folds != fold
        alone.fit(X[others], y[others], sample_weight=weights[others] if weighted else None)
        scores[~others] = alone.agent_outputs(X[~others])[0]
    wanted = pooled_scale(scores, np.unique(y, return_inverse=True)[1], weights)
    np.testing.assert_allclose(model.probability_scale_, wanted, rtol=1e-8)
    F = np.hstack([0 * scores, scores]) if scores.shape[1] == 1 else scores
    assert F.shape[1] == len(model.classes_)
    outputs = model.agent_outputs(X)[0]
    F = np.hstack([0 * outputs, outputs]) if outputs.shape[1] == 1 else outputs
    np.testing.assert_allclose(model.predict_proba(X), softmax(wanted * F, axis=1), atol=1e-8)


@pytest.mark.parametrize("name", ["iris", "wine", "breast-cancer"])
def test_probabilities_are_better_than_raw_scores(name):
    X, y = data.load(name).X, data.load(name).y
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[::2], order[1::2]
    model = RVFLClassifier(network=net(), random_state=0).fit(X[train], y[train])
    p = model.predict_proba(X[test])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X[test]))
    raw = model.agent_outputs(X[test])[0]
    raw = softmax(np.hstack([-raw, raw]) if raw.shape[1] == 1 else raw, axis=1)
    assert log_loss(y[test], p) < 0.7 * log_loss(y[test], raw)


@pytest.mark.parametrize("table", [MOONS, IRIS], ids=["two classes", "three"])
def test_probabilities_are_as_good_as_those_of_scikit_learn(table):
    X, y = table
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[::2], order[1::2]
    model = RVFLClassifier(**FIXED, probability=True).fit(X[train], y[train])
    folds = PredefinedSplit(folds_of(model, X[train], y[train]))
    plain = RVFLClassifier(**FIXED, probability=False)
    rival = CalibratedClassifierCV(plain, method="sigmoid", cv=folds, ensemble=False)
    rival.fit(X[train], y[train])
    ours = log_loss(y[test], model.predict_proba(X[test]))
    assert ours < 1.1 * log_loss(y[test], rival.predict_proba(X[test]))


def test_the_temperature_of_scikit_learn():
    """Without smoothed targets, which differ by one row of each class, the factor is its beta."""
    X, y = make_moons(3000, noise=0.4, random_state=1)
    model = RVFLClassifier(**FIXED, probability=True).fit(X, y)
    folds = PredefinedSplit(folds_of(model, X, y))
    plain = RVFLClassifier(**FIXED, probability=False)
    rival = CalibratedClassifierCV(plain, method="temperature", cv=folds, ensemble=False)
    rival.fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), rival.predict_proba(X), atol=2e-3)


def test_weights_of_classes_count():
    X, y = MOONS
    plain = RVFLClassifier(**FIXED, probability=True).fit(X, y)
    heavy = RVFLClassifier(**FIXED, probability=True, class_weight={1: 20.0}).fit(X, y)
    assert heavy.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean() + 0.1
    p = heavy.predict_proba(X)
    np.testing.assert_array_equal(p.argmax(axis=1), heavy.predict(X))


def test_who_has_which_row_does_not_matter():
    X, y = IRIS
    one = RVFLClassifier(30, random_state=0).fit(X, y)
    shares = partition.dirichlet(X, y, 6, concentration=0.1, seed=0)
    other = RVFLClassifier(30, random_state=0, network=net(6)).fit(shares)
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), atol=1e-6)
    assert len(set(other.probability_scale_.tolist())) == 1
    each = other.agent_probabilities(X)
    assert each.shape == (6, len(y), 3)
    np.testing.assert_array_equal(each[0], other.predict_proba(X))


def test_what_is_free_and_what_is_not():
    X, y = MOONS
    fixed = {"n_hidden": 30, "activation": "tanh", "network": net(), "random_state": 0}
    sent = {}
    for probability in (False, "auto", True):
        model = RVFLClassifier(alpha=1.0, probability=probability, **fixed).fit(X, y)
        sent[probability] = model.report_.sent.messages
        assert hasattr(model, "predict_proba") == (probability is True)
    assert sent["auto"] == sent[False] < sent[True]
    chosen = RVFLClassifier(random_state=0, network=net()).fit(X, y)
    without = RVFLClassifier(random_state=0, network=net(), probability=False).fit(X, y)
    assert hasattr(chosen, "predict_proba")
    assert "probabilities" in chosen.report_.note
    np.testing.assert_array_equal(chosen.coefficients_, without.coefficients_)
    assert chosen.report_.sent.megabytes < 1.05 * without.report_.sent.megabytes


@pytest.mark.parametrize(
    ("settings", "has"),
    [
        ({}, True),
        ({"alpha": 1.0}, False),
        ({"alpha": 1.0, "activation": "tanh"}, False),
        ({"activation": "tanh"}, True),
        ({"features": "columns"}, True),
        ({"features": np.tanh}, False),
        ({"features": np.tanh, "probability": True}, True),
        ({"probability": False}, False),
    ],
)
def test_a_model_keeps_what_it_promises(settings, has):
    model = RVFLClassifier(random_state=0, **settings)
    assert hasattr(model, "predict_proba") == has
    assert hasattr(model.fit(*IRIS), "predict_proba") == has


def test_sentence_where_there_are_none():
    X, y = MOONS
    model = RVFLClassifier(alpha=1.0, random_state=0, network=net()).fit(X, y)
    with pytest.raises(AttributeError) as error:
        model.predict_proba(X)
    assert "set probability=True and fit again" in str(error.value.__cause__)
    with pytest.raises(AttributeError):
        RVFLClassifier(probability=False).predict_proba(X)
    with pytest.raises(InputError, match="probability is 'yes': give True, False or 'auto'"):
        RVFLClassifier(probability="yes").fit(X, y)


def test_streams_have_none():
    X, y = MOONS
    model = RVFLClassifier(random_state=0).fit(X, y)
    assert hasattr(model, "predict_proba")
    with pytest.warns(UserWarning, match="begins a stream"):
        model.partial_fit(X, y)
    with pytest.raises(AttributeError) as error:
        model.predict_proba(X)
    assert "learned from a stream" in str(error.value.__cause__)
    with pytest.raises(InputError, match="probability=True needs rows that are held out"):
        RVFLClassifier(probability=True).partial_fit(X, y, classes=[0, 1])


def test_agents_alone_have_their_own():
    X, y = MOONS
    settings = {"n_hidden": 30, "activation": "tanh", "random_state": 0, "probability": True}
    shares = partition.stratified(X, y, 3, seed=0)
    model = RVFLClassifier(solver="local", network=net(3), **settings).fit(shares)
    assert model.report_.sent.messages == 0 or len(set(model.probability_scale_)) == 3
    own = RVFLClassifier(**settings).fit(*shares[0])
    np.testing.assert_allclose(model.predict_proba(X), own.predict_proba(X), atol=1e-6)


def test_messages_that_get_lost():
    X, y = MOONS
    lossy = SimulatedNetwork(graphs.ring(4), faults=Faults(loss=0.1))
    settings = {"n_hidden": 20, "random_state": 0}
    model = RVFLClassifier(network=lossy, **settings).fit(X, y)
    wanted = RVFLClassifier(**settings).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), wanted.predict_proba(X), atol=1e-4)


def test_data_frames_and_saved_models(tmp_path):
    X, y = IRIS
    table = pd.DataFrame(X, columns=list("abcd"))
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    model = RVFLClassifier(30, random_state=0, network=net()).fit(table, labels)
    archive.save(model, tmp_path / "model.npz")
    saved = archive.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(
        saved.predict_proba(table), model.predict_proba(table), strict=True
    )
    with np.load(tmp_path / "model.npz") as file:
        arrays = dict(file)
    about = json.loads(str(arrays["about"]))

    def write(**changes):
        arrays["about"] = np.array(json.dumps({**about, **changes}))
        np.savez(tmp_path / "other.npz", **arrays)
        return tmp_path / "other.npz"

    for wrong in (0.0, -1.0, "1", True, None):
        with pytest.raises(DataError, match="its probability_scale is"):
            archive.load(write(probability_scale=wrong))
    # A file of an earlier release has neither the entry nor the parameter.
    del about["probability_scale"]
    del about["parameters"]["probability"]
    old = archive.load(write())
    np.testing.assert_array_equal(old.predict(table), model.predict(table))
    with pytest.raises(AttributeError) as error:
        old.model.predict_proba(X)
    assert "its file was saved without them" in str(error.value.__cause__)


def test_scores_are_of_rows_that_were_held_out():
    """Labels that nobody can learn: scores of the training rows would seem sure of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4))
    y = rng.integers(0, 2, 120)
    settings = {**FIXED, "n_hidden": 200, "alpha": 1e-6, "probability": True}
    model = RVFLClassifier(**settings).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.predict_proba(X).max(axis=1).mean() < 0.65


def test_codes_of_rows():
    two = HeldOutScores(np.zeros((2, 1)), np.array([[-1.0], [1.0]]))
    assert two.codes.tolist() == [0, 1]
    predicted = cross_val_predict(
        RVFLClassifier(**FIXED, probability=True), *IRIS, method="predict_proba"
    )
    assert predicted.shape == (150, 3)


# Classifiers that hold out rows on request


MOONS_40 = np.where(np.random.default_rng(0).permutation(300) < 40, MOONS[1], -1)
IRIS_30 = np.where(np.random.default_rng(0).permutation(150) < 30, IRIS[1], -1)
FEW = {
    "two classes": (MOONS[0], MOONS_40, MOONS[1]),
    "three": (IRIS[0], IRIS_30, IRIS[1]),
}
KINDS = [AnchorLapClassifier, S3VMClassifier, LapKRRClassifier]
SAME_PENALTY = {AnchorLapClassifier: {"gamma_I": 0.5}}


@pytest.mark.parametrize("table", FEW)
@pytest.mark.parametrize("kind", KINDS)
def test_few_labels_as_by_refits_in_one_place(kind, table):
    X, some, _ = FEW[table]
    settings = {"random_state": 0, **SAME_PENALTY.get(kind, {})}
    model = kind(probability=True, **settings).fit(X, some)
    seed = model.check_settings().seeds[DEALING]
    seeds = [(seed, 0, code, 0) for code in range(len(model.classes_))]
    folds = deal_folds(some, FOLDS, seeds)
    assert (folds >= 0).sum() == (some >= 0).sum()
    scores = np.zeros((len(X), 1 if table == "two classes" else 3))
    for fold in range(FOLDS):
        held = folds == fold
        other = kind(**settings).fit(X, np.where(held, -1, some))
        scores[held] = np.asarray(other.agent_outputs(X[held])[0])
    known = some >= 0
    wanted = pooled_scale(scores[known], some[known], np.ones(known.sum()))
    np.testing.assert_allclose(model.probability_scale_, wanted, rtol=1e-7)


@pytest.mark.parametrize("table", FEW)
@pytest.mark.parametrize("kind", KINDS)
def test_few_labels_over_a_network(kind, table):
    X, some, y = FEW[table]
    parts = np.array_split(np.arange(len(y)), [0, 60, 61])  # an agent without rows, one with one
    shares = [(X[own], some[own]) for own in parts]
    model = kind(probability=True, random_state=0, network=net()).fit(shares)
    assert len(set(model.probability_scale_.tolist())) == 1
    p = model.predict_proba(X)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    new = some == -1
    raw = model.agent_outputs(X)[0]
    raw = softmax(np.hstack([-raw, raw]) if raw.shape[1] == 1 else raw, axis=1)
    assert log_loss(y[new], p[new]) < 0.9 * log_loss(y[new], raw[new])
    plain = kind(random_state=0, network=net()).fit(shares)
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    with pytest.raises(AttributeError):
        plain.predict_proba(X)


@pytest.mark.parametrize("kind", KINDS)
def test_too_few_labels(kind):
    X, _, y = FEW["three"]
    some = np.where(np.arange(150) % 25 == 0, y, -1)  # two labels of every class
    model = kind(probability=True, random_state=0, network=net()).fit(X, some)
    assert np.isfinite(model.probability_scale_).all()
    some[125] = -1
    with pytest.raises(DataError, match="and class 2 has 1 in the whole network: label more rows"):
        kind(probability=True, random_state=0, network=net()).fit(X, some)
    with pytest.raises(InputError, match="probability is 'auto': give True or False"):
        kind(probability="auto").fit(X, some)


def test_labels_of_a_class_are_in_two_folds_at_least():
    """Two labels of every class, all at different agents: many would be dealt to one fold."""
    X, _, y = FEW["three"]
    rows = np.concatenate([np.flatnonzero(y == c)[:40] for c in range(3)])
    shares = []
    for agent in range(12):
        own = rows[agent * 10 : (agent + 1) * 10]
        labels = np.full(10, -1)
        labels[:1] = y[own[:1]]
        shares.append((X[own], labels))
    for seed in range(5):
        model = S3VMClassifier(probability=True, random_state=seed, network=net(12)).fit(shares)
        assert np.isfinite(model.probability_scale_).all()


def test_distances_of_each_agent_alone():
    X, some, _ = FEW["two classes"]
    shares = [(X[:150], some[:150]), (X[150:], some[150:])]
    settings = {"probability": True, "random_state": 0, "distances": "local"}
    model = LapKRRClassifier(network=net(2), **settings).fit(shares)
    own = LapKRRClassifier(probability=True, random_state=0).fit(*shares[0])
    np.testing.assert_allclose(model.probability_scale_[0], own.probability_scale_[0], rtol=1e-9)
    assert model.probability_scale_[0] != model.probability_scale_[1]


@pytest.mark.parametrize("kind", [AnchorLapClassifier, S3VMClassifier])
def test_few_labels_saved_and_loaded(kind, tmp_path):
    X, some, _ = FEW["three"]
    table = pd.DataFrame(X, columns=list("abcd"))
    model = kind(probability=True, random_state=0).fit(table, some)
    archive.save(model, tmp_path / "model.npz")
    loaded = archive.load(tmp_path / "model.npz")
    np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(table), rtol=1e-9)


@pytest.mark.parametrize("solver", ["dual", "sketched", "sharing", "ensemble", "local"])
def test_columns_as_by_refits(solver):
    X, y = IRIS
    settings = {"solver": solver, "random_state": 0, "network": net()}
    model = VerticalRVFLClassifier(probability=True, **settings).fit(X, y)
    tie_seed = model.check_settings().seeds[TIES]
    folds = deal_folds(y, FOLDS, [(tie_seed, code) for code in range(3)])
    scores = np.zeros((4, len(y), 3))
    for fold in range(FOLDS):
        held = folds == fold
        other = VerticalRVFLClassifier(**settings).fit(X[~held], y[~held])
        scores[:, held] = other.agent_outputs(X[held])
    for k, own in enumerate(scores):
        wanted = pooled_scale(own, y, np.ones(len(y)))
        np.testing.assert_allclose(model.probability_scale_[k], wanted, rtol=1e-6)
    p = model.predict_proba(X)
    np.testing.assert_array_equal(p.argmax(axis=1), model.predict(X))
    assert model.agent_probabilities(X).shape == (4, 150, 3)


def test_columns_without_probabilities():
    X, y = IRIS
    model = VerticalRVFLClassifier(random_state=0, network=net()).fit(X, y)
    with pytest.raises(AttributeError) as error:
        model.predict_proba(X)
    assert "set probability=True and fit again" in str(error.value.__cause__)
    with pytest.raises(DataError, match="class 2 has 1 in the whole network"):
        VerticalRVFLClassifier(random_state=0, probability=True).fit(X[:101], y[:101])
