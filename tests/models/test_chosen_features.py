"""RVFL models whose features and penalty are chosen from sums."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_moons

from peerlearn import (
    ConjugateGradient,
    Faults,
    Gram,
    RVFLClassifier,
    RVFLRegressor,
    SimulatedNetwork,
    data,
    graphs,
    partition,
)
from peerlearn.models import archive

X, y = make_moons(300, noise=0.2, random_state=0)
IRIS = data.load("iris")
SETTINGS = {"n_hidden": 60, "random_state": 0}


def net(agents=5):
    return SimulatedNetwork(graphs.ring(agents))


def fitted(kind=RVFLClassifier, X=X, y=y, **settings):
    return kind(**{**SETTINGS, **settings}).fit(X, y)


def test_defaults_follow_the_data():
    chosen = fitted(network=net(), X=X[:200], y=y[:200])
    fixed = fitted(network=net(), X=X[:200], y=y[:200], activation="sigmoid", alpha=1.0)
    assert chosen.score(X[200:], y[200:]) > fixed.score(X[200:], y[200:]) + 0.05
    assert chosen.report_.note.endswith("MB")
    assert "cross-validation" in chosen.report_.note
    assert "cross-validation" not in fixed.report_.note


@pytest.mark.parametrize("kind", [RVFLClassifier, RVFLRegressor])
@pytest.mark.parametrize("agents", [None, 2, 7])
def test_the_choice_does_not_depend_on_who_has_which_row(agents, kind):
    one = fitted(kind)
    other = fitted(kind, network=None if agents is None else net(agents), random_state=0)
    np.testing.assert_allclose(other.alpha_, one.alpha_[0], rtol=1e-9)
    np.testing.assert_allclose(other.features_.W, one.features_.W, rtol=1e-9)
    np.testing.assert_allclose(other.agent_outputs(X)[-1], one.agent_outputs(X)[0], atol=1e-6)


def test_unequal_shares_and_agents_without_rows():
    one = fitted(X=IRIS.X, y=IRIS.y)
    order = np.argsort(IRIS.y, kind="stable")
    parts = [order[:0], order[:70], order[70:80], order[80:]]
    shares = [(IRIS.X[own], IRIS.y[own]) for own in parts]
    model = RVFLClassifier(**SETTINGS, network=net(4)).fit(shares)
    np.testing.assert_allclose(
        model.agent_outputs(IRIS.X)[0], one.agent_outputs(IRIS.X)[0], atol=1e-6
    )


def test_units_of_columns_do_not_matter():
    one = fitted()
    scale = np.array([1e6, 1e-6])
    other = fitted(X=(X - 3.0) * scale)
    np.testing.assert_allclose(other.alpha_, one.alpha_, rtol=1e-9)
    outputs = other.agent_outputs((X - 3.0) * scale)
    np.testing.assert_allclose(outputs, one.agent_outputs(X), atol=1e-6)


@pytest.mark.parametrize("place", ["among the rows", "only later"])
def test_a_wrong_cell_does_little_harm(place):
    wrong = X[:200].copy()
    if place == "among the rows":
        wrong[7, 0] = 100.0  # a decimal point is missing
    model = fitted(RVFLRegressor, X=wrong, y=y[:200], network=net())
    rows = X[200:].copy()
    rows[3, 1] = -1e9
    assert model.score(rows[4:], y[204:]) > 0.7
    assert abs(model.predict(rows[3:4])[0]) < 3


def test_constant_columns_change_nothing_when_predicting():
    wide = np.column_stack([X, np.full(len(X), 7.0)])
    model = fitted(X=wide)
    elsewhere = wide.copy()
    elsewhere[:, 2] += 1e3
    np.testing.assert_allclose(model.agent_outputs(elsewhere), model.agent_outputs(wide), atol=1e-6)


@pytest.mark.parametrize("network", [None, net()])
def test_sparse_rows_have_the_answer_of_dense_ones(network):
    rows = X * (np.abs(X) > 0.3)
    dense = fitted(X=rows, network=network)
    sparse = fitted(X=sp.csr_array(rows), network=network)
    np.testing.assert_allclose(sparse.agent_outputs(rows), dense.agent_outputs(rows), atol=1e-7)
    assert str(sparse.report_.note) == str(dense.report_.note)


def test_a_weight_is_as_many_rows():
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = RVFLRegressor(**SETTINGS).fit(X, y, sample_weight=weights)
    repeated = RVFLRegressor(**SETTINGS).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.alpha_, repeated.alpha_)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-7)


@pytest.mark.parametrize("solver", ["auto", "gram", "cg", "admm", "consensus"])
def test_every_solver_trains_at_the_chosen_settings(solver):
    model = fitted(network=net(), solver=solver)
    assert model.features_.direct_links
    assert len(set(model.alpha_)) == 1
    assert model.score(X, y) > 0.93


def test_sums_by_gossip_give_the_same_choice():
    one = fitted()
    gossip = fitted(network=net(), solver=Gram(averaging="chebyshev"))
    np.testing.assert_allclose(gossip.alpha_, one.alpha_[0], rtol=1e-6)
    np.testing.assert_allclose(gossip.features_.W, one.features_.W, rtol=1e-6)


def test_each_agent_has_one_class():
    one = fitted(X=IRIS.X, y=IRIS.y)
    shares = [(IRIS.X[IRIS.y == label], IRIS.y[IRIS.y == label]) for label in range(3)]
    model = RVFLClassifier(**SETTINGS, network=net(3)).fit(shares)
    np.testing.assert_allclose(
        model.agent_outputs(IRIS.X)[1], one.agent_outputs(IRIS.X)[0], atol=1e-6
    )


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_few_rows_at_each_agent(rows):
    """Also fewer rows than folds, and folds with all rows or with none."""
    shares = [(X[rows * k : rows * (k + 1)], X[rows * k : rows * (k + 1), 0]) for k in range(3)]
    model = RVFLRegressor(**SETTINGS, network=net(3)).fit(shares)
    assert np.isfinite(model.predict(X)).all()
    assert model.alpha_[0] > 0
    one = RVFLRegressor(**SETTINGS).fit(X[: 3 * rows], X[: 3 * rows, 0])
    np.testing.assert_allclose(model.predict(X), one.predict(X), atol=1e-6)


@pytest.mark.filterwarnings("ignore:Gram stopped")  # coefficients of 0 have no relative bound
def test_rows_or_targets_that_do_not_vary():
    same = fitted(RVFLRegressor, X=np.ones((30, 2)), y=np.arange(30.0), network=net())
    np.testing.assert_allclose(same.predict(np.zeros((2, 2))), 14.5)
    still = fitted(RVFLRegressor, y=np.full(len(X), 3.5), network=net())
    np.testing.assert_allclose(still.predict(X), 3.5, atol=1e-6)


def test_several_outputs_share_one_choice():
    Y = np.column_stack([np.sin(3 * X[:, 0]), X[:, 1], X[:, 0] * X[:, 1]])
    model = fitted(RVFLRegressor, y=Y, network=net())
    one = fitted(RVFLRegressor, y=Y)
    assert model.predict(X).shape == Y.shape
    assert model.score(X, Y) > 0.99
    np.testing.assert_allclose(model.predict(X), one.predict(X), atol=1e-5)


def test_messages_that_get_lost():
    lossy = SimulatedNetwork(graphs.ring(4), faults=Faults(loss=0.2, seed=0))
    model = fitted(network=lossy, solver=ConjugateGradient(1e-4), n_hidden=20)
    one = fitted(n_hidden=20)
    np.testing.assert_allclose(model.alpha_, one.alpha_[0], rtol=1e-4)
    assert model.features_.activation == one.features_.activation
    assert abs(model.score(X, y) - one.score(X, y)) < 0.02


def test_agents_that_send_nothing_have_fixed_features_and_an_alpha_each():
    network = net()
    shares = partition.stratified(X, y, 5, seed=0)
    model = RVFLClassifier(**SETTINGS, solver="local", network=network).fit(shares)
    assert model.features_.activation == "sigmoid"
    assert not model.features_.direct_links
    assert len(set(model.alpha_)) > 1
    own = RVFLClassifier(**SETTINGS, features="fixed").fit(*shares[2])
    np.testing.assert_allclose(model.alpha_[2], own.alpha_[0])
    np.testing.assert_allclose(model.coefficients_[2], own.coefficients_[0], atol=1e-8)


def test_streams_have_fixed_features_and_alpha_1():
    plain = RVFLRegressor(20, random_state=0).partial_fit(X, y)
    given = RVFLRegressor(20, 1.0, activation="sigmoid", direct_links=False, random_state=0)
    given.partial_fit(X, y)
    np.testing.assert_array_equal(plain.coefficients_, given.coefficients_)


def test_the_choice_of_features_at_a_given_alpha():
    model = fitted(alpha=0.5)
    assert model.alpha_.tolist() == [0.5]
    assert "features by 5-fold" in model.report_.note
    assert "alpha" not in model.report_.note


def test_the_choice_of_alpha_for_given_features():
    model = fitted(activation="tanh", network=net())
    assert model.features_.activation == "tanh"
    assert model.report_.note.count("alpha") == 1
    again = fitted(activation="tanh", alpha=float(model.alpha_[0]), network=net())
    np.testing.assert_array_equal(again.coefficients_, model.coefficients_)
    assert again.report_.sent.bytes < model.report_.sent.bytes


def sent_by_the_choice(model):
    return float(model.report_.note.split("which sent ")[1].split(" MB")[0])


def test_the_cost_of_a_chosen_alpha_is_what_a_given_one_saves():
    model = fitted(activation="tanh", network=net(), solver="gram")
    given = fitted(activation="tanh", alpha=float(model.alpha_[0]), network=net(), solver="gram")
    saved = model.report_.sent.megabytes - given.report_.sent.megabytes
    assert sent_by_the_choice(model) == pytest.approx(saved, abs=0.0005)


def test_the_cost_of_the_choice_is_that_of_its_sums():
    model = fitted(network=net(), solver="gram", probability=False)
    hidden = 60
    shared = 1 + 1 + 2  # the constant, one output, two columns
    moments = 2 * (2 + 2) + 3 * 2 * (2 + 2)  # up and down the tree
    candidate = shared * hidden + hidden * (hidden + 1) // 2  # 64 units, if there are as many
    compared = shared * (shared + 1) // 2 + 7 * candidate
    chosen = 2 * 3 // 2 + 2 * (hidden + 2) + (hidden + 2) * (hidden + 3) // 2
    choices = 2 * 2
    numbers = moments + 5 * compared + 5 * chosen + choices
    assert sent_by_the_choice(model) == pytest.approx(8e-6 * 4 * numbers, abs=0.0005)


@pytest.mark.parametrize("given", [{"features": "fixed"}, {"activation": "sigmoid"}])
def test_fixed_features_and_alpha_cost_what_they_did_before_there_was_a_choice(given):
    sent = fitted(network=net(), solver="gram", alpha=1.0, **given).report_.sent
    assert (sent.rounds, sent.messages) == (14, 66)
    # `features`, `probability`, `classes` and `differential_privacy` are more settings to compare,
    # by two rounds on ten links. For the bound of the intercept, the sum of means has one more
    # number, up and down a tree.
    more = 4 * (2 * 10 * 2 * 8) + 8 * 8
    assert sent.bytes == 75_760 + more


def test_the_cost_of_probabilities_is_that_of_readouts_and_small_sums():
    with_them = fitted(network=net(), solver="gram")
    without = fitted(network=net(), solver="gram", probability=False)
    readouts = 5 * (1 + 60 + 2)  # down the tree: constant, hidden units, two columns
    first = 2 * (2 + 1)  # up and down: weights of two classes, and squares
    numbers = (with_them.report_.sent.bytes - without.report_.sent.bytes) / 8 / 4
    steps = (numbers - readouts - first) / (2 * 2)
    assert steps in range(4, 9)


def test_the_number_of_units_follows_the_rows():
    few = RVFLRegressor(random_state=0).fit(X[:30], y[:30])
    more = RVFLRegressor(random_state=0).fit(X[:150], y[:150])
    assert few.coefficients_.shape[1] in (2, 102)
    assert more.coefficients_.shape[1] in (2, 152)


def test_direct_links_can_be_left_out():
    model = fitted(direct_links=False)
    assert model.coefficients_.shape[1] == 60
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("kind", [RVFLClassifier, RVFLRegressor])
def test_saved_and_loaded(kind, tmp_path):
    model = fitted(kind)
    archive.save(model, tmp_path / "model.npz")
    loaded = archive.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"features": "other"}, "features is 'other': give 'auto', 'fixed', 'columns'"),
        ({"direct_links": "no"}, "direct_links is 'no': give True, False or 'auto'"),
        ({"alpha": "some"}, "alpha"),
    ],
)
def test_bad_settings(settings, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        fitted(**settings)
