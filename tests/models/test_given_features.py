"""RVFL models with features that are given: functions, fitted transformers, columns."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from peerlearn import (
    ConjugateGradient,
    RVFLClassifier,
    RVFLRegressor,
    SimulatedNetwork,
    data,
    graphs,
    partition,
)
from peerlearn.errors import DataError, InputError, Mismatch
from peerlearn.local import features as blocks
from peerlearn.models import archive
from peerlearn.models.stream_archive import resume_stream, save_stream
from tests.support.split_network import run_apart

IRIS = data.load("iris")
X = IRIS.X
y = IRIS.y
W = np.random.default_rng(0).standard_normal((4, 30))


def squashed(rows):
    return np.tanh(rows @ W / 5)


def ring(agents=5):
    return SimulatedNetwork(graphs.ring(agents))


def one_hot(labels):
    return np.eye(3)[np.searchsorted([0, 1, 2], labels)]


class TestAnswer:
    @pytest.mark.parametrize("network", [None, ring()])
    @pytest.mark.parametrize("solver", ["auto", "gram", "cg"])
    def test_it_is_the_ridge_of_these_features(self, network, solver):
        model = RVFLClassifier(
            alpha=0.3, features=squashed, network=network, random_state=0, solver=solver
        ).fit(X, y)
        pooled = Ridge(0.3).fit(squashed(X), one_hot(y))
        np.testing.assert_allclose(model.coefficients_[0], pooled.coef_.T, atol=1e-5)
        np.testing.assert_allclose(model.decision_function(X), pooled.predict(squashed(X)), 0, 1e-5)

    def test_columns_are_features(self):
        model = RVFLClassifier(alpha=2.0, features="columns", network=ring(), random_state=0)
        pooled = RidgeClassifier(2.0).fit(X, y)
        np.testing.assert_array_equal(model.fit(X, y).predict(X), pooled.predict(X))
        assert model.coefficients_.shape == (5, 4, 3)

    def test_a_fitted_transformer(self):
        squares = PolynomialFeatures(2).fit(X)
        model = RVFLRegressor(alpha=1.0, features=squares, network=ring(), random_state=0)
        pooled = Ridge(1.0).fit(squares.transform(X), y)
        np.testing.assert_allclose(model.fit(X, y).predict(X), pooled.predict(squares.transform(X)))

    def test_sparse_rows_and_sparse_features(self):
        rows = sp.csr_array(X * (X > 0))
        model = RVFLRegressor(alpha=1.0, features=lambda x: x[:, [0, 2]], network=ring())
        dense = RVFLRegressor(alpha=1.0, features=lambda x: x[:, [0, 2]], network=ring())
        outputs = model.fit(rows, y).predict(rows)
        np.testing.assert_allclose(outputs, dense.fit(rows.toarray(), y).predict(rows.toarray()))

    def test_alpha_is_chosen_by_sums(self):
        alone = RVFLClassifier(features=squashed, random_state=0).fit(X, y)
        model = RVFLClassifier(features=squashed, network=ring(), random_state=0).fit(X, y)
        np.testing.assert_allclose(model.alpha_, alone.alpha_[0], rtol=1e-9)
        assert "alpha" in model.report_.note
        assert "features and" not in model.report_.note

    def test_agents_without_rows(self):
        shares = [(X[:0], y[:0]), (X[:70], y[:70]), (X[70:], y[70:])]
        model = RVFLClassifier(alpha=0.3, features=squashed, network=ring(3), random_state=0)
        pooled = RVFLClassifier(alpha=0.3, features=squashed).fit(X, y)
        model.fit(shares)
        np.testing.assert_allclose(model.coefficients_[0], pooled.coefficients_[0], atol=1e-8)

    def test_rows_come_in_batches_and_are_not_changed(self, monkeypatch):
        monkeypatch.setattr("peerlearn.local.frozen_features.BLOCK", 16)
        assert blocks.BLOCK > 16
        sizes = []

        def in_place(rows):
            sizes.append(len(rows))
            rows *= 2
            return rows

        before = X.copy()
        model = RVFLClassifier(alpha=1.0, features=in_place).fit(X, y)
        np.testing.assert_array_equal(X, before)
        model.predict(X)
        assert max(sizes) == 16

    def test_clones_keep_functions_and_frozen_transformers(self):
        frozen = FrozenEstimator(StandardScaler().fit(X))
        for features in (squashed, frozen):
            model = clone(RVFLClassifier(features=features, alpha=1.0))
            assert model.fit(X, y).score(X, y) > 0.8


class TestRefusals:
    def fit(self, features, **settings):
        RVFLClassifier(alpha=1.0, features=features, **settings).fit(X, y)

    @pytest.mark.parametrize(
        ("features", "sentence"),
        [
            (lambda rows: rows[:2], r"returned shape \(2, 4\) for 4 rows"),
            (lambda rows: rows[:, 0], r"returned shape \(4,\) for 4 rows"),
            (lambda rows: rows[:, :0], "returned no features"),
            (lambda rows: [["a"]] * len(rows), "must return a table of numbers"),
            (lambda rows: np.where(rows > 0.99, np.nan, rows), "NaN, infinite or huge .* for row"),
            (lambda rows: rows * 1e200, "NaN, infinite or huge"),
            (lambda rows: rows[:, : 1 + len(rows)], "must depend on the row|returned shape"),
            (lambda rows: rows - rows.mean(axis=0), "row alone than"),
        ],
    )
    def test_what_a_function_returns(self, features, sentence):
        with pytest.raises((DataError, InputError), match=sentence):
            self.fit(features)

    def test_a_width_that_changes_later(self):
        with pytest.raises(DataError, match=r"returned shape \(150, 3\) for 150 rows"):
            self.fit(lambda rows: rows if len(rows) < 5 else rows[:, :3])

    def test_a_function_that_fails(self):
        with pytest.raises(InputError, match=r"fails on the 4 rows .*IndexError"):
            self.fit(lambda rows: rows[:, [99]])

    def test_random_features_of_torch_in_training(self):
        rng = np.random.default_rng(0)
        with pytest.raises(InputError, match="call eval"):
            self.fit(lambda rows: rows * rng.integers(0, 2, rows.shape))

    @pytest.mark.parametrize("features", ["all", 3, None, StandardScaler])
    def test_what_is_no_function(self, features):
        with pytest.raises(InputError, match="give 'auto', 'fixed', 'columns', a function"):
            self.fit(features)

    def test_a_transformer_that_is_not_fitted(self):
        with pytest.raises(InputError, match="FrozenEstimator"):
            self.fit(StandardScaler())

    @pytest.mark.parametrize(
        "settings", [{"n_hidden": 9}, {"activation": "tanh"}, {"direct_links": True}]
    )
    @pytest.mark.parametrize("features", ["columns", squashed])
    def test_settings_of_hidden_units(self, settings, features):
        with pytest.raises(InputError, match="there are no hidden units"):
            self.fit(features, **settings)

    def test_the_synthetic_preconditioner(self):
        with pytest.raises(InputError, match="use preconditioner='local'"):
            self.fit(
                squashed,
                network=ring(),
                solver=ConjugateGradient(preconditioner="synthetic"),
                random_state=0,
            )


@pytest.mark.parametrize("second", [lambda rows: squashed(rows)[:, ::-1], lambda rows: rows])
def test_agents_with_other_features_are_refused(second):
    shares = partition.stratified(X, y, 2, seed=0)

    def work(network, agent):
        features = squashed if agent == 0 else second
        model = RVFLClassifier(alpha=1.0, features=features, network=network, random_state=0)
        with pytest.raises((Mismatch, InputError), match=r"agents disagree on .*features"):
            model.fit(*shares[agent])

    run_apart(graphs.complete(2), work)


def test_single_precision_and_other_names_are_the_same():
    shares = partition.stratified(X, y, 2, seed=0)

    def work(network, agent):
        features = squashed
        if agent == 0:
            features = lambda rows: squashed(rows).astype(np.float32)  # noqa: E731
        model = RVFLClassifier(alpha=1.0, features=features, network=network, random_state=0)
        return model.fit(*shares[agent]).coefficients_[0]

    one, other = run_apart(graphs.complete(2), work)
    np.testing.assert_array_equal(one, other)


class TestFiles:
    def test_features_are_given_again(self, tmp_path):
        model = RVFLClassifier(alpha=1.0, features=squashed, network=ring(), random_state=0)
        archive.save(model.fit(X, y), tmp_path / "model.npz")
        saved = archive.load(tmp_path / "model.npz", features=squashed)
        np.testing.assert_array_equal(saved.predict(X), model.predict(X))
        archive.save(saved.model, tmp_path / "again.npz")

    def test_without_them_or_with_others_it_is_refused(self, tmp_path):
        model = RVFLClassifier(alpha=1.0, features=squashed).fit(X, y)
        archive.save(model, tmp_path / "model.npz")
        with pytest.raises(DataError, match="computed by squashed, which no file"):
            archive.load(tmp_path / "model.npz")
        for other in (lambda rows: squashed(rows) + 0.01, lambda rows: rows):
            with pytest.raises(DataError, match="not those that the model was trained with"):
                archive.load(tmp_path / "model.npz", features=other)

    def test_features_for_a_model_that_has_its_own(self, tmp_path):
        model = RVFLClassifier(5, alpha=1.0, activation="tanh").fit(X, y)
        archive.save(model, tmp_path / "model.npz")
        with pytest.raises(InputError, match="has features of its own"):
            archive.load(tmp_path / "model.npz", features=squashed)

    @pytest.mark.parametrize("features", ["columns", "auto"])
    def test_models_without_hidden_units(self, features, tmp_path):
        line = X @ [1.0, 2.0, 3.0, 4.0]
        model = RVFLRegressor(features=features, random_state=0).fit(X, line)
        assert model.features_.W.shape == (4, 0)
        archive.save(model, tmp_path / "model.npz")
        saved = archive.load(tmp_path / "model.npz")
        np.testing.assert_array_equal(saved.model.predict(X), model.predict(X))


class TestNewClasses:
    def stream(self, **settings):
        options = {"alpha": 0.5, "stream": "exact", "random_state": 0, "network": ring()}
        return RVFLClassifier(**{**options, **settings})

    def in_one_place(self, labels, parts, **settings):
        rows = np.concatenate(parts)
        targets = labels[rows]
        return RVFLClassifier(alpha=0.5, random_state=0, **settings).fit(X[rows], targets)

    @pytest.mark.parametrize("labels", [y, np.array(["b", "c", "a"])[y]], ids=["numbers", "texts"])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_one_after_the_other(self, labels, intercept):
        parts = [np.flatnonzero(y == label) for label in range(3)]
        settings = {"features": squashed, "fit_intercept": intercept}
        model = self.stream(**settings)
        for number, part in enumerate(parts):
            model.partial_fit(X[part], labels[part])
            known = np.unique(labels[np.concatenate(parts[: number + 1])])
            np.testing.assert_array_equal(model.classes_, known)
            model.predict(X)
            if number:
                pooled = self.in_one_place(labels, parts[: number + 1], **settings)
                assert model.coefficients_.shape[1:] == pooled.coefficients_.shape[1:]
                np.testing.assert_allclose(
                    model.decision_function(X), pooled.decision_function(X), atol=1e-8
                )
        assert model.report_.bound < 1e-6

    def test_a_class_at_one_agent_only(self):
        model = self.stream(features="columns", network=ring(3))
        none = (X[:0], y[:0])
        model.partial_fit([none, (X[:80], y[:80]), none])
        model.partial_fit([(X[100:], y[100:]), none, (X[80:100], y[80:100])])
        pooled = self.in_one_place(y, [np.arange(150)], features="columns")
        np.testing.assert_allclose(model.coefficients_[2], pooled.coefficients_[0], atol=1e-9)

    def test_a_chunk_that_fails_changes_nothing(self):
        model = self.stream()
        model.partial_fit(X[:100], y[:100])
        before = model.decision_function(X)
        with pytest.raises(DataError, match="labels like 'x'"):
            model.partial_fit(X[100:], np.full(50, "x"))
        with pytest.raises(DataError):
            model.partial_fit(np.full((50, 4), np.nan), y[100:])
        np.testing.assert_array_equal(model.decision_function(X), before)
        assert len(model.classes_) == 2
        assert len(model.partial_fit(X[100:], y[100:]).classes_) == 3

    def test_nothing_to_begin_with(self):
        with pytest.raises(DataError, match="no agent of the network has a row"):
            self.stream().partial_fit(X[:0], y[:0])

    def test_streams_are_saved_and_resumed(self, tmp_path):
        network = ring()
        model = self.stream(features=squashed, network=network)
        for part in (slice(0, 70), slice(70, 120), slice(120, 150)):
            model.partial_fit(X[part], y[part])
            save_stream(model, tmp_path / "stream.npz")
            with pytest.raises(DataError, match="computed by squashed"):
                resume_stream(tmp_path / "stream.npz", network)
            model = resume_stream(tmp_path / "stream.npz", network, features=squashed)
        pooled = self.in_one_place(y, [np.arange(150)], features=squashed)
        np.testing.assert_allclose(model.decision_function(X), pooled.decision_function(X), 0, 1e-8)

    def test_other_learners_ask_for_classes(self):
        with pytest.raises(DataError, match="or use stream='exact'"):
            self.stream(stream="rls").partial_fit(X, y)

    def test_closed_streams_stay_closed(self):
        model = self.stream().partial_fit(X[:100], y[:100], classes=[0, 1])
        with pytest.raises(DataError, match="not among the classes"):
            model.partial_fit(X[100:], y[100:])
