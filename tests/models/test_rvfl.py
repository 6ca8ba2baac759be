"""The models: scikit-learn's contract, the centralised answer, and bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from peerlearn import (
    ADMM,
    ConjugateGradient,
    Consensus,
    RVFLClassifier,
    RVFLRegressor,
    SimulatedNetwork,
    data,
    graphs,
    partition,
)
from peerlearn.errors import DataError, InputError
from tests.support.readout_problems import closed_form


def test_centralised_is_the_closed_form_and_scikit_learns_ridge(g50c):
    model = RVFLRegressor(
        60, alpha=3.0, fit_intercept=False, random_state=1, activation="sigmoid"
    ).fit(g50c.X, g50c.y)
    H = model.features_(g50c.X)
    np.testing.assert_allclose(
        model.coefficients_[0], closed_form(H, g50c.y[:, None], 3.0), atol=1e-10
    )
    rival = SklearnRidge(alpha=3.0, fit_intercept=False).fit(H, g50c.y)
    np.testing.assert_allclose(model.predict(g50c.X), rival.predict(H), atol=1e-9)


@pytest.mark.parametrize("solver", ["auto", "gram", "cg", ADMM(1e-6)])
def test_a_network_learns_what_one_place_would(graph, g50c, solver):
    alone = RVFLClassifier(50, alpha=2.0, random_state=0, activation="sigmoid").fit(g50c.X, g50c.y)
    together = RVFLClassifier(
        50,
        alpha=2.0,
        random_state=0,
        solver=solver,
        network=SimulatedNetwork(graph),
        activation="sigmoid",
    )
    together.fit(g50c.X, g50c.y)
    assert together.coefficients_.shape == (len(graph), 50, 1)
    for own in together.coefficients_:
        assert np.linalg.norm(own - alone.coefficients_[0]) <= 2e-6 * np.linalg.norm(
            alone.coefficients_
        )
    assert (together.predict(g50c.X) == alone.predict(g50c.X)).all()


def test_many_classes_and_many_outputs():
    digits = data.load("digits")
    network = SimulatedNetwork(graphs.ring(6))
    alone = RVFLClassifier(
        80, random_state=0, direct_links=True, alpha=1.0, activation="sigmoid"
    ).fit(digits.X, digits.y)
    together = RVFLClassifier(
        80, random_state=0, direct_links=True, network=network, alpha=1.0, activation="sigmoid"
    ).fit(digits.X, digits.y)
    assert together.coefficients_.shape == (6, 80 + 64, 10)
    np.testing.assert_allclose(
        together.decision_function(digits.X), alone.decision_function(digits.X), atol=1e-5
    )
    Y = np.column_stack([digits.X @ np.arange(64), digits.X[:, 3]])
    regressor = RVFLRegressor(
        80, random_state=0, network=network, alpha=1.0, activation="sigmoid"
    ).fit(digits.X, Y)
    assert regressor.predict(digits.X).shape == Y.shape
    centralised = (
        RVFLRegressor(80, random_state=0, alpha=1.0, activation="sigmoid")
        .fit(digits.X, Y)
        .predict(digits.X)
    )
    np.testing.assert_allclose(
        regressor.predict(digits.X), centralised, atol=1e-4 * np.abs(centralised).max()
    )


def test_shares_of_any_size_and_skew(g50c):
    shares = partition.dirichlet(g50c.X, g50c.y, 7, concentration=0.1, seed=3)
    assert len({len(y) for _, y in shares}) > 1
    assert any(len(np.unique(y)) == 1 for _, y in shares)  # agents that lack a class
    model = RVFLClassifier(
        40,
        random_state=0,
        network=SimulatedNetwork(graphs.ring(7)),
        alpha=1.0,
        activation="sigmoid",
    ).fit(shares)
    alone = RVFLClassifier(40, random_state=0, alpha=1.0, activation="sigmoid").fit(g50c.X, g50c.y)
    np.testing.assert_allclose(model.coefficients_[3], alone.coefficients_[0], atol=1e-5)
    assert model.classes_.tolist() == [-1, 1]


def test_labels_of_text_meet_over_the_network():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    names = [
        np.array(["a", "bb"] * 5),
        np.array(["bb", "ccccc"] * 5),
        np.array(["a"] * 10),
        np.array(["ccccc"] * 10),
    ]
    shares = [(X[10 * k : 10 * k + 10], names[k]) for k in range(4)]
    model = RVFLClassifier(
        10,
        random_state=0,
        network=SimulatedNetwork(graphs.linear(4)),
        alpha=1.0,
        activation="sigmoid",
    ).fit(shares)
    assert model.classes_.tolist() == ["a", "bb", "ccccc"]
    assert set(model.predict(X)) <= {"a", "bb", "ccccc"}


def test_pandas_in(g50c):
    frame = pd.DataFrame(g50c.X, columns=[f"x{i}" for i in range(50)])
    labels = pd.Series(np.where(g50c.y > 0, "yes", "no"))
    network = SimulatedNetwork(graphs.ring(4))
    model = RVFLClassifier(
        40, random_state=0, network=network, alpha=1.0, activation="sigmoid"
    ).fit(frame, labels)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert set(model.predict(frame)) == {"yes", "no"}
    shares = partition.stratified(frame, labels, 4)
    assert (
        RVFLClassifier(40, random_state=0, network=network, alpha=1.0, activation="sigmoid")
        .fit(shares)
        .score(frame, labels)
        > 0.9
    )
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])


def test_random_state_alone_decides(g50c):
    def fit(seed):
        network = SimulatedNetwork(graphs.ring(3))
        return (
            RVFLClassifier(20, random_state=seed, network=network, alpha=1.0, activation="sigmoid")
            .fit(g50c.X, g50c.y)
            .coefficients_
        )

    np.testing.assert_array_equal(fit(1), fit(1))
    assert not np.array_equal(fit(1), fit(2))


def test_works_inside_scikit_learn(g50c):
    network = SimulatedNetwork(graphs.ring(3))
    model = make_pipeline(
        MinMaxScaler((-1, 1)),
        RVFLClassifier(60, random_state=0, network=network, alpha=1.0, activation="sigmoid"),
    )
    assert cross_val_score(model, g50c.X, g50c.y, cv=3).mean() > 0.85
    search = GridSearchCV(
        RVFLClassifier(40, random_state=0, network=network, alpha=1.0, activation="sigmoid"),
        {"alpha": [0.1, 8.0]},
        cv=3,
    )
    assert search.fit(g50c.X, g50c.y).best_params_["alpha"] in (0.1, 8.0)
    assert clone(model[-1]).network is network


def test_report_and_scores(g50c):
    network = SimulatedNetwork(graphs.erdos_renyi(8, 0.3))
    model = RVFLClassifier(
        40, random_state=0, network=network, solver="local", alpha=1.0, activation="sigmoid"
    ).fit(g50c.X, g50c.y)
    scores = model.agent_scores(g50c.X, g50c.y)
    assert scores.shape == (8,)
    assert scores[0] == pytest.approx(model.score(g50c.X, g50c.y))
    assert len(set(scores)) > 1
    model.set_params(solver="cg").fit(g50c.X, g50c.y)
    assert np.ptp(model.agent_scores(g50c.X, g50c.y)) == 0
    assert "solver        ConjugateGradient" in str(model.report_)
    regressor = RVFLRegressor(
        40, random_state=0, network=network, alpha=1.0, activation="sigmoid"
    ).fit(g50c.X, g50c.y)
    assert regressor.agent_scores(g50c.X, g50c.y)[2] == pytest.approx(
        regressor.score(g50c.X, g50c.y), abs=1e-4
    )


def test_the_report_holds_all_that_the_fit_sent(g50c):
    network = SimulatedNetwork(graphs.ring(5))
    first = (
        RVFLClassifier(20, random_state=0, network=network, alpha=1.0, activation="sigmoid")
        .fit(g50c.X, g50c.y)
        .report_.sent
    )
    second = (
        RVFLClassifier(
            20, random_state=0, network=network, solver="admm", alpha=1.0, activation="sigmoid"
        )
        .fit(g50c.X, g50c.y)
        .report_.sent
    )
    assert first.bytes + second.bytes == network.ledger.bytes
    assert first.rounds + second.rounds == network.ledger.rounds


def test_g50c_error_rates():
    """Thesis, section 4.4.1, on generated data: centralised near the Bayes error, CONS with it,
    local far off.
    """
    errors = {"centralised": [], "cons": [], "local": []}
    for seed in range(6):
        train, test = data.load("g50c", seed=seed), data.load("g50c", seed=100 + seed, scaled=False)
        X = train.scaling.apply(test.X)
        network = SimulatedNetwork(graphs.erdos_renyi(8, 0.3, seed))
        for name, options in (
            ("centralised", {}),
            ("cons", {"network": network, "solver": Consensus()}),
            ("local", {"network": network, "solver": "local"}),
        ):
            model = RVFLClassifier(
                500, alpha=8.0, activation="sigmoid", random_state=seed, **options
            ).fit(train.X, train.y)
            errors[name].append(1 - model.agent_scores(X, test.y).mean())
    mean = {name: np.mean(values) for name, values in errors.items()}
    assert 0.045 < mean["centralised"] < 0.08
    assert abs(mean["cons"] - mean["centralised"]) < 0.01
    assert mean["local"] > mean["centralised"] + 0.03


class TestBadInput:
    X = np.random.default_rng(0).standard_normal((20, 3))
    y = np.tile([0, 1], 10)

    def network(self, agents=4):
        return SimulatedNetwork(graphs.ring(agents))

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_rows_that_are_not_numbers(self, value):
        X = self.X.copy()
        X[7, 1] = value
        with pytest.raises(
            DataError,
            match=r"X has NaN or inf \(infinite\) values in 1 of 20 rows, the first is row 7",
        ):
            RVFLClassifier(network=self.network(), alpha=1.0, activation="sigmoid").fit(X, self.y)
        shares = [
            (X[:5], self.y[:5]),
            (X[5:10], self.y[5:10]),
            (X[10:15], self.y[10:15]),
            (X[15:], self.y[15:]),
        ]
        with pytest.raises(
            DataError, match=r"the share of agent 1: X has NaN or inf .* the first is row 2: remove"
        ):
            RVFLClassifier(network=self.network(), alpha=1.0, activation="sigmoid").fit(shares)

    @pytest.mark.parametrize("network", [None, SimulatedNetwork(graphs.ring(4))])
    def test_targets_that_are_not_numbers(self, network):
        y = self.y.astype(float)
        for missing, kind in (
            (np.nan, float),
            (np.nan, object),
            (np.inf, float),
            (None, object),
            ("nan", object),
        ):
            broken = y.astype(kind)
            broken[3] = missing
            with pytest.raises(
                DataError,
                match=r"y has NaN, inf .* in 1 of 20 rows, the first is row 3: remove those",
            ):
                RVFLRegressor(network=network, alpha=1.0, activation="sigmoid").fit(self.X, broken)
        with pytest.raises(DataError, match=r"y must hold numbers .*: for labels use a classifier"):
            RVFLRegressor(network=network, alpha=1.0, activation="sigmoid").fit(
                self.X, np.where(self.y, "a", "b")
            )

    @pytest.mark.parametrize("network", [None, SimulatedNetwork(graphs.ring(4))])
    def test_missing_labels(self, network):
        text = pd.Series(np.where(self.y, "a", "b"), dtype=object)
        text[5] = None
        real = self.y.astype(float)
        real[5] = np.nan
        for y in (text, text.to_numpy(), real):
            with pytest.raises(
                DataError, match=r"missing values in 1 of 20 rows, the first is row 5"
            ):
                RVFLClassifier(network=network, alpha=1.0, activation="sigmoid").fit(self.X, y)

    def test_shares_as_lists_and_shares_with_targets(self):
        shares = [[self.X[:10], self.y[:10]], [self.X[10:], self.y[10:]]]
        model = RVFLClassifier(
            10, network=self.network(2), random_state=0, alpha=1.0, activation="sigmoid"
        )
        assert model.fit(shares).score(self.X, self.y) >= 0.5
        with pytest.raises(DataError, match="shares bring their own targets"):
            model.fit(shares, self.y)

    def test_settings_are_checked_before_anything_is_sent(self):
        network = self.network()
        for options in ({"activation": "step"}, {"solver": "magic"}, {"alpha": -1.0}):
            with pytest.raises(InputError):
                RVFLClassifier(network=network, **options).fit(self.X, self.y)
        assert network.ledger.rounds == 0

    def test_one_class_only(self):
        for network in (None, self.network()):
            with pytest.raises(
                DataError,
                match=r"only one class in the whole network, .*1.*: a classifier needs rows of",
            ):
                RVFLClassifier(network=network, alpha=1.0, activation="sigmoid").fit(
                    self.X, np.ones(20, dtype=int)
                )

    def test_fewer_rows_than_agents(self):
        with pytest.raises(
            DataError,
            match=(
                "n_samples=20 rows cannot be dealt to 25 agents, one each at least: give more rows"
            ),
        ):
            RVFLClassifier(network=self.network(25), alpha=1.0, activation="sigmoid").fit(
                self.X, self.y
            )

    def test_shares_for_a_network_of_another_size(self):
        with pytest.raises(DataError, match="2 shares were given, but this process hosts 4 agents"):
            RVFLClassifier(network=self.network(), alpha=1.0, activation="sigmoid").fit(
                [(self.X, self.y), (self.X, self.y)]
            )

    def test_no_rows_in_one_place(self):
        with pytest.raises(DataError, match="0 sample"):
            RVFLClassifier(alpha=1.0, activation="sigmoid").fit(self.X[:0], self.y[:0])

    def test_shares_of_different_width(self):
        shares = [(self.X, self.y), (self.X[:, :2], self.y)]
        with pytest.raises(
            DataError,
            match="the share of agent 1: X has 2 features, but RVFLClassifier is expecting 3",
        ):
            RVFLClassifier(network=self.network(2), alpha=1.0, activation="sigmoid").fit(shares)

    def test_outputs_of_different_width(self):
        shares = [(self.X, self.X[:, :1]), (self.X, self.X[:, :2])]
        with pytest.raises(DataError, match="same number of outputs"):
            RVFLRegressor(network=self.network(2), alpha=1.0, activation="sigmoid").fit(shares)

    def test_labels_of_different_kinds(self):
        shares = [(self.X, self.y), (self.X, self.y.astype(str))]
        with pytest.raises(
            DataError,
            match="labels must be of one kind at all agents, but there are numbers and text",
        ):
            RVFLClassifier(network=self.network(2), alpha=1.0, activation="sigmoid").fit(shares)

    def test_no_penalty_and_too_few_rows(self):
        for network in (None, self.network()):
            with pytest.raises(
                DataError, match=r"the 20 rows .* do not determine 51 coefficients when alpha is 0"
            ):
                RVFLClassifier(50, alpha=0.0, network=network, activation="sigmoid").fit(
                    self.X, self.y
                )

    def test_no_penalty_and_dependent_rows(self):
        X = np.tile(self.X[:2], (30, 1))
        for solver in ("gram", "auto"):
            with pytest.raises(DataError, match="linearly dependent, so that alpha=0 leaves"):
                RVFLRegressor(
                    10, alpha=0.0, solver=solver, network=self.network(), activation="sigmoid"
                ).fit(X, X[:, 0])

    def test_no_random_state_where_agents_draw_apart(self, monkeypatch):
        monkeypatch.setattr(SimulatedNetwork, "hosted", property(lambda self: (0, 1)))
        with pytest.raises(
            InputError, match="random_state must be a whole number, the same at every agent"
        ):
            RVFLClassifier(network=self.network(), alpha=1.0, activation="sigmoid").fit(
                self.X, self.y
            )
        with pytest.raises(InputError, match=r"hosts 2 of 4 agents: call fit\(shares\)"):
            RVFLClassifier(
                network=self.network(), random_state=0, alpha=1.0, activation="sigmoid"
            ).fit(self.X, self.y)

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"n_hidden": 0}, "n_hidden == 0, must be >= 1"),
            ({"alpha": -1.0}, "alpha, the weight of the penalty, must be"),
            ({"solver": "magic"}, "solver 'magic' is not known"),
            ({"network": 5}, "network must be a peerlearn Network such as SimulatedNetwork"),
            ({"activation": "step"}, "activation 'step' is not known"),
        ],
    )
    def test_settings(self, options, sentence):
        with pytest.raises(ValueError, match=sentence):
            RVFLClassifier(**options).fit(self.X, self.y)

    def test_a_failed_fit_does_not_touch_the_network(self):
        network = self.network()
        with pytest.raises(ValueError):
            RVFLClassifier(
                solver=ConjugateGradient(), network=network, alpha=1.0, activation="sigmoid"
            ).fit(self.X * np.nan, self.y)
        assert network.ledger.rounds == 0


@pytest.mark.parametrize("solver", ["cg", "admm"])
def test_what_a_solver_does_not_take_is_said_before_the_first_message(solver):
    network = SimulatedNetwork(graphs.ring(3))
    with pytest.raises(
        InputError, match="when alpha is 0: set alpha above 0, or use solver='gram'"
    ):
        RVFLClassifier(10, alpha=0, solver=solver, network=network, activation="sigmoid").fit(
            np.eye(12), np.arange(12) % 2
        )
    assert network.ledger.rounds == 0
