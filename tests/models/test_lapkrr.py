"""Laplacian kernel ridge regression: over the network as in one place, and what it refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.kernel_ridge import KernelRidge

from peerlearn import (
    LapKRRClassifier,
    RandomProjection,
    SimulatedNetwork,
    TanhTransform,
    data,
    graphs,
    partition,
)
from peerlearn.algorithms.completion import BlockCompletion, DiffusionCompletion
from peerlearn.algorithms.distances import Exchange, Landmarks
from peerlearn.errors import DataError, InputError
from peerlearn.local.manifold import laplacian
from tests.support.split_network import run_apart

SETTINGS = {"width": 0.8, "n_neighbors": 4, "gamma_A": 1e-2, "gamma_I": 0.5, "power": 2}
RNG = np.random.default_rng(0)


def blobs(classes, n=60, seed=0):
    """Rows around as many centres, half of them without a label, and the labels of all."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.standard_normal((n, 3)) + 1.5 * rng.standard_normal((classes, 3))[y]
    return X, np.where(np.arange(n) < n // 2, y, -1), y


def printed(X, y, x, *, width, n_neighbors, gamma_A, gamma_I, power):
    """f(x) by the formula, dense and in one place, without any code of the package; y: rows of 0
    have no label.
    """
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    N = len(X)
    joined = np.zeros((N, N), dtype=bool)
    for i in range(N):
        others = [j for j in np.argsort(distance[i], kind="stable") if j != i]
        joined[i, others[:n_neighbors]] = True
    t = distance[joined].mean()
    W = np.where(joined | joined.T, np.exp(-(distance**2) / (2 * t**2)), 0.0)
    G = np.diag(W.sum(axis=1) ** -0.5)
    L = np.linalg.matrix_power(np.eye(N) - G @ W @ G, power)
    K = np.exp(-(distance**2) / (2 * width**2))
    J = np.diag((y != 0).any(axis=1).astype(float))
    a = np.linalg.inv(J @ K + gamma_A * np.eye(N) + gamma_I * L @ K) @ y
    return np.exp(-(np.linalg.norm(x[:, None] - X[None], axis=2) ** 2) / (2 * width**2)) @ a


def signs(some, classes):
    if classes == 2:
        return np.select([some == 1, some == 0], [1.0, -1.0], 0.0)[:, None]
    return (some[:, None] == np.arange(classes)).astype(float)


# The answer
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_in_one_place_it_is_the_formula(classes):
    X, some, _ = blobs(classes)
    x = RNG.standard_normal((20, 3))
    outputs = LapKRRClassifier(**SETTINGS).fit(X, some).decision_function(x).reshape(20, -1)
    np.testing.assert_allclose(outputs, printed(X, signs(some, classes), x, **SETTINGS), atol=1e-10)


@pytest.mark.parametrize("classes", [2, 3])
def test_over_a_network_it_is_the_same_to_1e_8(graph, classes):
    X, some, y = blobs(classes)
    x = RNG.standard_normal((20, 3))
    central = LapKRRClassifier(**SETTINGS).fit(X, some)
    model = LapKRRClassifier(**SETTINGS, network=SimulatedNetwork(graph), random_state=0).fit(
        X, some
    )
    np.testing.assert_allclose(model.decision_function(x), central.decision_function(x), atol=1e-8)
    np.testing.assert_array_equal(
        model.agent_scores(X, y), np.full(len(graph), central.score(X, y))
    )
    assert model.report_.converged
    assert model.report_.sent.bytes > 0


def test_without_a_manifold_it_is_kernel_ridge_of_the_labelled_rows():
    X, some, _ = blobs(2)
    x, labels = RNG.standard_normal((20, 3)), some >= 0
    ridge = KernelRidge(alpha=0.1, kernel="rbf", gamma=1 / (2 * 0.8**2)).fit(
        X[labels], 2.0 * some[labels] - 1
    )
    model = LapKRRClassifier(
        0.8, gamma_A=0.1, gamma_I=0.0, network=SimulatedNetwork(graphs.ring(4)), random_state=0
    )
    np.testing.assert_allclose(model.fit(X, some).decision_function(x), ridge.predict(x), atol=1e-9)


def test_unlabelled_rows_help(g50c):
    y = (g50c.y > 0).astype(int)
    some = np.where(np.arange(550) < 50, y, -1)
    for network in (None, SimulatedNetwork(graphs.ring(5))):
        model = LapKRRClassifier(1.5, 50, 1e-3, 1e-2, 5, network=network, random_state=0)
        assert model.fit(g50c.X, some).score(g50c.X, y) > 0.92
        assert model.set_params(gamma_I=0.0).fit(g50c.X, some).score(g50c.X, y) < 0.9


def test_the_baseline_of_each_agent_alone():
    X, some, y = blobs(2, 40)
    shares = partition.stratified(X, some, 4, seed=1)
    model = LapKRRClassifier(
        **SETTINGS, distances="local", network=SimulatedNetwork(graphs.ring(4)), random_state=0
    )
    model.fit(shares)
    expected = [
        np.where(printed(X_k, signs(y_k, 2), X, **SETTINGS)[:, 0] > 0, 1, 0) for X_k, y_k in shares
    ]
    np.testing.assert_array_equal(
        model.agent_scores(X, y), [np.mean(labels == y) for labels in expected]
    )
    alone = LapKRRClassifier(**SETTINGS).fit(*shares[2])
    np.testing.assert_allclose(model.coefficients_[2], alone.coefficients_[0], atol=1e-12)


def test_agents_alone_with_fewer_rows_than_neighbors():
    X, some, _ = blobs(2, 40)
    shares = [(X[:1], some[:1]), (X[1:4], some[1:4]), (X[4:], some[4:])]
    model = LapKRRClassifier(
        **SETTINGS, distances="local", network=SimulatedNetwork(graphs.ring(3)), random_state=0
    )
    one, three, _ = model.fit(shares).agent_outputs(X)
    few = SETTINGS | {"n_neighbors": 2}  # all that there are
    np.testing.assert_allclose(three, printed(X[1:4], signs(some[1:4], 2), X, **few), atol=1e-12)
    kernel = np.exp(-(np.linalg.norm(X - X[0], axis=1) ** 2) / (2 * 0.8**2))
    np.testing.assert_allclose(
        one[:, 0], kernel * signs(some[:1], 2)[0, 0] / (1 + 1e-2), atol=1e-12
    )


# Other ways to know distances
# ----------------------------------------------------------------------------------------

MUCH = Exchange(patterns=0.3, entries=0.3, pattern_rounds=20, entry_rounds=10)


@pytest.mark.parametrize(
    "completion", [DiffusionCompletion(), BlockCompletion()], ids=["diffusion", "block"]
)
def test_exchange_and_completion_come_close(completion):
    X, some, _ = blobs(2, 40)
    network = SimulatedNetwork(graphs.erdos_renyi(5, 0.7, seed=0))
    model = LapKRRClassifier(
        **SETTINGS, distances=MUCH, completion=completion, network=network, random_state=0
    )
    central = LapKRRClassifier(**SETTINGS).fit(X, some)
    np.testing.assert_allclose(
        model.fit(X, some).decision_function(X), central.decision_function(X), atol=1e-3
    )
    assert "completed by" in model.report_.note


@pytest.mark.parametrize("privacy", [RandomProjection(2), TanhTransform(4, 50)], ids=str)
def test_privacy_is_a_transform_that_all_agents_draw_alike(privacy):
    X, some, _ = blobs(2)
    central = LapKRRClassifier(**SETTINGS, privacy=privacy, random_state=0).fit(X, some)
    model = LapKRRClassifier(
        **SETTINGS, privacy=privacy, network=SimulatedNetwork(graphs.ring(4)), random_state=0
    )
    model.fit(X, some)
    assert model.patterns_[0].shape[1] == privacy.m
    np.testing.assert_allclose(model.decision_function(X), central.decision_function(X), atol=1e-8)


# Agents that live apart
# ----------------------------------------------------------------------------------------------


def shares_of_colors():
    """Agent 1 has no labelled row, agent 2 no other, agent 3 one row."""
    X, _, y = blobs(3, 31)
    colors = np.array(["blue", "green", "red"], dtype=object)[y]
    colors[[0, 1, 2, *range(10, 20)]] = -1
    cuts = [slice(0, 10), slice(10, 20), slice(20, 30), slice(30, 31)]
    return [(X[own], colors[own]) for own in cuts]


@pytest.mark.parametrize(
    "distances", ["landmarks", MUCH, "local"], ids=["landmarks", "exchange", "local"]
)
def test_agents_apart_have_the_numbers_of_simulation(distances):
    shares, x = shares_of_colors(), RNG.standard_normal((7, 3))

    def work(network, own):
        model = LapKRRClassifier(
            **SETTINGS, distances=distances, network=network, random_state=0
        ).fit(own)
        return model.agent_outputs(x)

    together = work(SimulatedNetwork(graphs.ring(4)), shares)
    apart = run_apart(graphs.ring(4), lambda network, k: work(network, [shares[k]])[0])
    np.testing.assert_allclose(apart, together, atol=1e-10)


def test_agents_must_predict_the_same_rows():
    shares = shares_of_colors()

    def work(network, k):
        return (
            LapKRRClassifier(network=network, random_state=0)
            .fit([shares[k]])
            .predict(np.full((2, 3), float(k)))
        )

    with pytest.raises(InputError, match="agents disagree on the rows to predict"):
        run_apart(graphs.ring(4), work)


@pytest.mark.parametrize(
    ("settings", "columns", "what"),
    [
        ({"privacy": RandomProjection(2)}, 3, "privacy: give"),
        ({"distances": MUCH}, 3, "distances: give"),
        ({"width": 2.0}, 3, "width: give"),
        ({"random_state": 1}, 3, "the seed of what agents share, from"),
        ({}, 2, "the number of columns of X, from 2 to 3: give"),
    ],
)
def test_agents_must_have_the_same_settings(settings, columns, what):
    shares = shares_of_colors()

    def work(network, k):
        own = {"random_state": 0, **(settings if k == 1 else {})}
        X, y = shares[k]
        return LapKRRClassifier(network=network, **own).fit([(X[:, :columns] if k == 1 else X, y)])

    with pytest.raises(InputError, match=f"agents disagree on {what}"):
        run_apart(graphs.ring(4), work)


def test_settings_that_mean_the_same_are_the_same():
    shares = shares_of_colors()

    def work(network, k):
        same = (
            {"distances": "landmarks", "gamma_I": 1}
            if k == 1
            else {"distances": Landmarks(), "gamma_I": 1.0}
        )
        return (
            LapKRRClassifier(network=network, random_state=0, **same)
            .fit([shares[k]])
            .report_.converged
        )

    assert run_apart(graphs.ring(4), work) == [True] * 4


# What is given
# --------------------------------------------------------------------------------------------------


def test_labels_of_any_kind_and_tables_of_pandas():
    X, some, y = blobs(3)
    expected = LapKRRClassifier(**SETTINGS).fit(X, some)
    names = np.array(["blue", "green", "red", "-1"], dtype=object)
    for labels in (names[some], names[some].astype(str), pd.Series(names[some])):
        model = LapKRRClassifier(**SETTINGS).fit(pd.DataFrame(X, columns=list("abc")), labels)
        assert model.classes_.tolist() == ["blue", "green", "red"]
        assert model.score(
            pd.DataFrame(X, columns=list("abc")), names[y].astype(str)
        ) == expected.score(X, y)


def test_an_agent_without_labelled_rows_one_without_others_and_one_with_one_row_are_welcome():
    shares = shares_of_colors()
    model = LapKRRClassifier(
        **SETTINGS, network=SimulatedNetwork(graphs.star(4)), random_state=0
    ).fit(shares)
    X, y = np.vstack([X for X, _ in shares]), np.concatenate([y for _, y in shares])
    central = LapKRRClassifier(**SETTINGS).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), central.decision_function(X), atol=1e-8)


def test_labels_are_needed_of_two_classes_somewhere():
    X, _, y = blobs(2)
    network = SimulatedNetwork(graphs.ring(4))
    with pytest.raises(DataError, match="no row of the whole network has a label"):
        LapKRRClassifier(network=network, random_state=0).fit(X, np.full(len(X), -1))
    with pytest.raises(
        DataError, match=r"all labelled rows of the whole network are of one class, 1: .* such as 0"
    ):
        LapKRRClassifier(network=network, random_state=0).fit(X, np.where(y == 1, 1, -1))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"distances": None}, "distances=None means that all rows are in one place"),
        ({"distances": "landmark"}, "did you mean 'landmarks'.*or 'local', for each agent alone"),
        ({"completion": "diffused"}, "did you mean 'diffusion'"),
        ({"privacy": "projection"}, "privacy 'projection' is not known"),
        ({"privacy": RandomProjection(4)}, "RandomProjection to 4 columns of rows that have 3"),
        (
            {"n_neighbors": 60},
            r"n_neighbors=60 is too many for n_samples=60 rows of the whole network: set it to 59",
        ),
        (
            {"distances": MUCH, "completion": DiffusionCompletion(rank=60)},
            "rank is 60, but .* 60 rows need 59 at most",
        ),
        (
            {"distances": MUCH, "completion": BlockCompletion(rank=61)},
            "rank is 61, but .* 60 rows need 60 at most",
        ),
        ({"gamma_A": 0}, "gamma_A is 0: give a number"),
        ({"gamma_I": np.inf}, "gamma_I is inf: give a number from 0"),
        ({"gamma_I": np.nan}, "gamma_I is nan: give a number from 0"),
        ({"width": 0.0}, "width is 0.0: give a number from"),
        ({"power": 0}, "power == 0, must be >= 1"),
        (
            {"power": 10_000, "n_neighbors": 1},
            "do not determine a model .* raise gamma_A, or lower power",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, sentence):
    X, some, _ = blobs(2)
    model = LapKRRClassifier(network=SimulatedNetwork(graphs.ring(4)), random_state=0)
    with pytest.raises(ValueError, match=sentence):
        model.set_params(**settings).fit(X, some)
    assert not hasattr(model, "classes_")


def test_nobody_can_predict_alone():
    X, some, _ = blobs(2)
    model = LapKRRClassifier(
        **SETTINGS, network=SimulatedNetwork(graphs.ring(4)), random_state=0
    ).fit(X, some)
    with pytest.raises(
        InputError, match="each agent has rows of its own, so that nobody can predict alone"
    ):
        model.set_params(network=None).predict(X)


# What it must not depend on
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_rows_as_near_as_each_other(seed):
    """Which of them comes first, and the last digit of a distance, decide nothing."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (80, 8)).astype(float)
    some, x = np.where(np.arange(80) < 20, np.arange(80) % 2, -1), rng.random((10, 8))
    central = LapKRRClassifier(**SETTINGS).fit(X, some).decision_function(x)
    order = rng.permutation(80)
    shuffled = LapKRRClassifier(**SETTINGS).fit(X[order], some[order]).decision_function(x)
    network = LapKRRClassifier(**SETTINGS, network=SimulatedNetwork(graphs.ring(5)), random_state=0)
    np.testing.assert_allclose(shuffled, central, atol=1e-8)
    np.testing.assert_allclose(network.fit(X, some).decision_function(x), central, atol=1e-8)


def test_a_row_far_away_says_nothing_of_the_others():
    X, some, _ = blobs(2)
    model = LapKRRClassifier(**SETTINGS).fit(X, some)
    np.testing.assert_allclose(
        model.decision_function(np.vstack([X, np.full(3, 1e10)]))[:-1],
        model.decision_function(X),
        atol=1e-12,
    )
    with pytest.raises(DataError, match=r"values up to 1\.0e\+200"):
        model.predict(np.vstack([X, np.full(3, 1e200)]))
    far = LapKRRClassifier(**SETTINGS).fit(np.vstack([X, np.full(3, 1e9)]), np.append(some, -1))
    np.testing.assert_allclose(far.decision_function(X), model.decision_function(X), atol=0.2)


def test_a_fitted_model_keeps_its_own_numbers():
    X, some, _ = blobs(2)
    model = LapKRRClassifier(**SETTINGS, privacy=RandomProjection(2), random_state=0).fit(X, some)
    before = model.decision_function(X)
    np.testing.assert_array_equal(
        model.set_params(privacy=None, width=9.0).decision_function(X), before
    )
    given = X.copy()
    model = LapKRRClassifier(**SETTINGS).fit(given, some)
    before = model.decision_function(X)
    given[:] = 0.0
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_many_rows_to_predict_are_taken_in_pieces(monkeypatch):
    X, some, _ = blobs(3)
    model = LapKRRClassifier(**SETTINGS).fit(X, some)
    whole = model.decision_function(X)
    monkeypatch.setattr("peerlearn.models.lapkrr.AT_ONCE", 7 * len(X))
    np.testing.assert_allclose(model.decision_function(X), whole, atol=1e-12)


def test_what_one_agent_refuses_it_refuses_before_it_speaks():
    X, some, _ = blobs(2)
    network = SimulatedNetwork(graphs.ring(4))
    shares = partition.stratified(X, some, 4)
    shares[1] = (shares[1][0] * 9e99, shares[1][1])
    with pytest.raises(DataError, match="agent 1"):
        LapKRRClassifier(privacy=RandomProjection(2), network=network, random_state=0).fit(shares)
    assert network.ledger.messages == 0


def test_more_rows_than_distances_can_be_held_of():
    with pytest.raises(DataError, match="or use AnchorLapClassifier"):
        LapKRRClassifier().fit(np.zeros((30_000, 1)), np.arange(30_000) % 2)


# The graph of the data
# -----------------------------------------------------------------------------------------------


def test_rows_that_are_all_the_same_and_one_far_away_give_numbers():
    same = laplacian(np.zeros((5, 5)), 2).toarray()
    assert np.isfinite(same).all()
    x = np.append(np.linspace(0, 1, 200), 1e6)[:, None]
    far = laplacian((x - x.T) ** 2, 2).toarray()
    np.testing.assert_array_equal(far[-1], 0.0)
    np.testing.assert_allclose(np.linalg.eigvalsh(far).min(), 0.0, atol=1e-12)


class TestDefaults:
    """Nothing needs to be tuned: the width follows the rows."""

    @pytest.mark.parametrize("distances", ["landmarks", "exchange"])
    def test_the_width_is_half_the_median_distance(self, distances):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((60, 4))
        y = np.where(np.arange(60) < 20, np.arange(60) % 2, -1)
        network = SimulatedNetwork(graphs.ring(4))

        def widths(unit):
            model = LapKRRClassifier(distances=distances, network=network, random_state=0)
            return model.fit(unit * X, y).widths_

        apart = [np.linalg.norm(X[i] - X[j]) for i in range(60) for j in range(i)]
        near = 1e-9 if distances == "landmarks" else 0.2
        np.testing.assert_allclose(widths(1.0), np.median(apart) / 2, rtol=near)
        np.testing.assert_allclose(widths(7.0), 7 * widths(1.0), rtol=near)
        assert len(set(widths(1.0))) == 1

    def test_each_agent_alone_has_its_own(self):
        X = np.random.default_rng(0).standard_normal((8, 2))
        y = np.array([0, 1] * 4)
        model = LapKRRClassifier(distances="local", network=SimulatedNetwork(graphs.ring(3)))
        model.fit([(X, y), (3 * X, y), (X[:1], y[:1])])
        assert model.widths_[1] == pytest.approx(3 * model.widths_[0])
        assert model.widths_[2] == 1.0

    def test_columns_of_any_unit_are_classified(self):
        errors = []
        for seed in range(3):
            g50c = data.load("g50c", seed=seed)
            y = (g50c.y > 0).astype(int)
            some = np.where(np.arange(len(y)) < 50, y, -1)
            model = LapKRRClassifier(network=SimulatedNetwork(graphs.ring(5)), random_state=0)
            errors.append(1 - model.fit(100 * g50c.X, some).score(100 * g50c.X, y))
        assert np.mean(errors) < 0.13  # a width of 1, with powers of 1: 0.29
