"""RVFL models with differential privacy: what is refused, and what is released."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import (
    DifferentialPrivacy,
    NetworkSearchCV,
    RVFLClassifier,
    RVFLRegressor,
    SimulatedNetwork,
    data,
    graphs,
)
from peerlearn.algorithms.differential_privacy import GRID
from peerlearn.algorithms.readout import private_gram
from peerlearn.algorithms.readout.private_gram import (
    plan_gram_noise,
    solve_noisy,
    sum_products,
)
from peerlearn.errors import InputError
from peerlearn.local.features import RandomFeatures
from peerlearn.models import archive
from peerlearn.testing.threads import run_in_threads

GRAPH = graphs.erdos_renyi(7, 0.4, seed=1)
SECRET = {"secrecy": "sums", "colluders": 2}
RNG = np.random.default_rng(0)
FEATURES = RandomFeatures.draw(3, 6, seed=0, activation="tanh")
WEAK = DifferentialPrivacy(1000.0, target_bounds=(-3.0, 3.0))
SHARES = [(RNG.standard_normal((n, 3)), RNG.standard_normal(n)) for n in (90, 0, 40, 2, 15, 1, 300)]


def network_of(graph=GRAPH, seed=None):
    network = SimulatedNetwork(graph, **SECRET)
    network.noise_seed = seed
    return network


def model_of(kind, network, **settings):
    usual = {"alpha": 0.01, "features": "fixed", "solver": "gram", "random_state": 0}
    if kind is RVFLClassifier:
        usual["classes"] = [0, 1]
    else:
        usual["differential_privacy"] = WEAK
    return kind(12, network=network, **{**usual, **settings})


def worst_change(changes):
    G, P = changes
    return np.sqrt((G.astype(float) ** 2).sum()), np.sqrt((P.astype(float) ** 2).sum())


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("intercept", [0, 1])
def test_one_row_changes_no_more_than_the_noise_is_made_for(neighbors, intercept):
    """Exactly, in whole numbers, rounding included; and some row changes nearly as much."""
    privacy = DifferentialPrivacy(1.0, neighbors=neighbors)
    network = network_of()
    plan = plan_gram_noise(privacy, network, intercept=bool(intercept))
    honest = network.size - network.colluders
    spread = privacy.noise_multiplier * np.sqrt(2 / honest)
    allowed = np.array(plan.deviations) / spread
    X = RNG.standard_normal((300, 3)) * 10.0 ** RNG.integers(-2, 3, (300, 1))
    Y = RNG.choice([-1.0, 1.0], (300, 1))
    whole = RandomFeatures(np.eye(3), np.zeros(3), "sine", True)
    largest = np.zeros(2)
    for features in (FEATURES, whole):
        sums = [
            sum_products(features, X[n : n + 1], Y[n : n + 1], 0.7, intercept=bool(intercept))
            for n in range(len(X))
        ]
        other = sums[::-1] if neighbors == "replace" else [(0 * G, 0 * P) for G, P in sums]
        for (G, P), (G2, P2) in zip(sums, other, strict=True):
            largest = np.maximum(largest, worst_change((G - G2, P - P2)))
    # What is added to a sum of other rows is the same: sums of whole numbers are exact.
    assert (largest <= allowed).all()
    if neighbors == "add-remove":
        assert (largest >= 0.8 * allowed).all()


def test_sums_of_many_rows_are_exact():
    X = RNG.standard_normal((3000, 3))
    Y = RNG.uniform(-1, 1, (3000, 2)) / 2
    G, P = sum_products(FEATURES, X, Y, 1.0, intercept=True)
    parts = [
        sum_products(FEATURES, X[n : n + 7], Y[n : n + 7], 1.0, intercept=True)
        for n in range(0, 3000, 7)
    ]
    assert (sum(g for g, _ in parts) == G).all()
    assert (sum(p for _, p in parts) == P).all()


def test_features_of_predictions_are_shortened_too():
    model = model_of(RVFLRegressor, network_of(), fit_intercept=False).fit(SHARES)
    H = model.features_(100 * SHARES[0][0])
    np.testing.assert_allclose(np.linalg.norm(H, axis=1), 1.0)
    np.testing.assert_array_equal(model.intercept_, 0.0)


def test_without_noise_it_is_ridge_on_shortened_features(monkeypatch):
    """To the grid's digits.

    Regression with an intercept and two outputs, and C that is not 1.
    """

    def without_noise(plan, key, parts):
        return np.concatenate([part.ravel() for part in parts]).view(np.uint64)[:, None]

    monkeypatch.setattr(private_gram.NoisePlan, "add_noise", without_noise)
    shares = [(X, np.stack([X[:, 0], 4 + X[:, 1] ** 2], axis=1)) for X, _ in SHARES]
    private = DifferentialPrivacy(1000.0, feature_norm=0.8, target_bounds=(-10.0, 20.0))
    network = network_of()
    model = model_of(RVFLRegressor, network, differential_privacy=private).fit(shares)
    X = np.vstack([X for X, _ in shares])
    Y = np.vstack([Y for _, Y in shares])
    H = np.hstack([model.features_(X) / 0.8, np.full((len(X), 1), 0.5)])
    middle = 5.0
    penalty = model.alpha_[0] / 0.8**2
    b = np.linalg.solve(H.T @ H + penalty * np.eye(13), H.T @ (Y - middle))
    np.testing.assert_allclose(model.coefficients_[0], b[:12] / 0.8, rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(model.intercept_[0], 0.5 * b[12] + middle, rtol=1e-3)


def test_the_ridge_outweighs_the_noise():
    rng = np.random.default_rng(0)
    E = np.triu(rng.standard_normal((60, 60)))
    E = E + np.triu(E, 1).T
    most = 2 * np.sqrt(60) + 3.5
    assert np.linalg.eigvalsh(E)[0] > -most
    penalty, b = solve_noisy(E, np.ones((60, 1)), 0.0, 1.0)
    assert penalty == pytest.approx(most)
    assert np.abs(b).max() < 20
    # A Gram matrix that is far above the noise needs no ridge but the one that was given.
    penalty, _ = solve_noisy(E + 100 * np.eye(60), np.ones((60, 1)), 0.25, 1.0)
    assert penalty == 0.25
    # Noise that is larger than its bound does not make the matrix indefinite.
    penalty, _ = solve_noisy(3 * E, np.ones((60, 1)), 0.0, 1.0)
    assert np.linalg.eigvalsh(3 * E)[0] + penalty >= 0.99 * most / 20


def test_a_classifier_learns_at_a_usual_epsilon():
    g50c = data.load("g50c")
    labels = np.unique(g50c.y).tolist()
    private = DifferentialPrivacy(8.0)
    settings = {"classes": labels, "activation": "tanh", "differential_privacy": private}
    model = model_of(RVFLClassifier, network_of(seed=0), **settings)
    model.fit(g50c.X, g50c.y)
    assert model.score(g50c.X, g50c.y) > 0.75
    assert (model.coefficients_ == model.coefficients_[0]).all()


def test_several_classes():
    iris = data.load("iris")
    private = DifferentialPrivacy(100.0)
    settings = {"classes": [0, 1, 2], "differential_privacy": private, "activation": "sine"}
    model = model_of(RVFLClassifier, network_of(seed=0), **settings)
    assert model.fit(iris.X, iris.y).score(iris.X, iris.y) > 0.6


def test_the_report_has_the_promise_and_nothing_of_the_rows():
    private = DifferentialPrivacy(2.0, 1e-5, "replace", target_bounds=(-3, 3))
    model = model_of(RVFLRegressor, network_of(), differential_privacy=private).fit(SHARES)
    said = model.report_.privacy
    assert 1.98 < said.epsilon <= 2.0
    assert (said.delta, said.neighbors, said.colluders, said.agents) == (1e-5, "replace", 2, 7)
    assert said.clipping == "features to length 1, targets to [-3, 3]"
    text = str(model.report_)
    assert "delta 1.0e-05 (replace one row), against 2 of 7 agents" in text
    assert "error bound   none: differential privacy" in text
    assert model.report_.for_json()["privacy"]["epsilon"] == said.epsilon
    assert model.report_.bound == np.inf
    assert model.report_.residuals == ()
    # Other rows, and other numbers of them, send as many messages and bytes.
    fewer = [(X[:1], y[:1]) for X, y in SHARES]
    again = model_of(RVFLRegressor, network_of(), differential_privacy=private).fit(fewer)
    assert again.report_.sent == model.report_.sent


def test_a_network_without_any_row_trains_all_the_same():
    """Whether there are rows is not told either."""
    none = [(X[:0], y[:0]) for X, y in SHARES]
    model = model_of(RVFLRegressor, network_of()).fit(none)
    assert np.isfinite(model.coefficients_).all()


def test_agents_that_share_only_messages_have_the_bits_of_a_simulation():
    def work(network):
        network.keep_secrets("sums", 2)
        network.noise_seed = 3
        model = model_of(RVFLRegressor, network).fit([SHARES[network.hosted[0]]])
        return np.append(model.coefficients_[0], model.intercept_)

    model = model_of(RVFLRegressor, network_of(seed=3)).fit(SHARES)
    expected = np.append(model.coefficients_[0], model.intercept_[0])
    for found in run_in_threads(GRAPH, work):
        np.testing.assert_array_equal(found, expected)


def test_noise_is_new_in_every_training():
    first = model_of(RVFLRegressor, network_of()).fit(SHARES)
    second = model_of(RVFLRegressor, network_of()).fit(SHARES)
    assert (first.coefficients_[0] != second.coefficients_[0]).all()


@pytest.mark.parametrize("features", ["fixed", "columns", np.sin])
def test_a_saved_model_predicts_the_same(tmp_path, features):
    settings = {"features": features}
    model = model_of(RVFLRegressor, network_of(), **settings)
    if features != "fixed":
        model.set_params(n_hidden=None)
    model.fit(SHARES)
    path = tmp_path / "model.npz"
    archive.save(model, path)
    saved = archive.load(path, features=features if features is np.sin else None)
    X = 5 * SHARES[0][0]
    np.testing.assert_array_equal(saved.predict(X), model.predict(X))
    assert saved.about["feature_norm"] == 1.0
    assert saved.about["report"]["privacy"]["epsilon"] <= 1000


@pytest.mark.parametrize("norm", [0.0, -1.0, float("inf")])
def test_a_damaged_norm_in_a_file_is_refused(tmp_path, norm):
    model = model_of(RVFLRegressor, network_of()).fit(SHARES)
    model.features_ = type(model.features_)(
        model.features_.W, model.features_.b, "sigmoid", False, norm=norm
    )
    with pytest.raises(InputError, match="its feature_norm is"):
        archive.save(model, tmp_path / "model.npz")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"alpha": "auto"}, "a number as alpha"),
        ({"features": "auto"}, "features='fixed'"),
        ({"classes": None}, "give all classes"),
        ({"class_weight": "balanced"}, "no class_weight"),
        ({"probability": True}, "no probability=True"),
        ({"solver": "admm"}, "solver='gram'"),
        ({"differential_privacy": 1.0}, r"give DifferentialPrivacy\(epsilon=..\)"),
        ({"differential_privacy": WEAK}, "classes have no bounds"),
    ],
)
def test_what_would_show_more_is_refused_before_anything_is_sent(settings, said):
    network = network_of()
    usual = {"differential_privacy": DifferentialPrivacy(1.0)}
    model = model_of(RVFLClassifier, network, **{**usual, **settings})
    X = RNG.standard_normal((30, 3))
    with pytest.raises(InputError, match=said):
        model.fit(X, np.arange(30) % 2)
    assert network.ledger.messages == 0


def test_more_that_is_refused():
    network = network_of()
    model = model_of(RVFLRegressor, network)
    X = RNG.standard_normal((30, 3))
    y = X[:, 0]
    with pytest.raises(InputError, match="a network made with secrecy='sums'"):
        model_of(RVFLRegressor, SimulatedNetwork(GRAPH)).fit(X, y)
    with pytest.raises(InputError, match="a network made with secrecy='sums'"):
        model_of(RVFLRegressor, None).fit(X, y)
    with pytest.raises(InputError, match="sample_weight"):
        model.fit(X, y, np.ones(30))
    with pytest.raises(InputError, match="needs target_bounds"):
        model_of(RVFLRegressor, network, differential_privacy=DifferentialPrivacy(1.0)).fit(X, y)
    with pytest.raises(InputError):
        model.partial_fit(X, y)
    with pytest.raises(InputError):
        NetworkSearchCV(model, {"alpha": [0.1, 1.0]}, random_state=0).fit(X, y)
    assert network.ledger.messages == 0
    streams = model_of(RVFLRegressor, SimulatedNetwork(GRAPH))
    with pytest.raises(InputError):
        streams.partial_fit(X, y)


def test_units_of_the_total():
    G, P = private_gram.split_total(np.arange(1, 6, dtype=np.int64) * GRID**2, 2, 1)
    assert G.tolist() == [[1.0, 2.0], [2.0, 3.0]]
    assert P.tolist() == [[4.0], [5.0]]
