"""S3VM: the centralised stationary point, the share of positives, every kind of rows and labels,
and bad input.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from peerlearn import SimulatedNetwork, data, graphs, partition
from peerlearn.algorithms.threshold import threshold
from peerlearn.errors import DataError, InputError, WireError
from peerlearn.models import s3vm
from peerlearn.models.s3vm import S3VMClassifier
from tests.support.split_network import run_apart


@pytest.fixture(scope="module")
def partly():
    """g50c with classes 0 and 1, and its labels of which 40 are known."""
    return partly_labelled(data.load("g50c"))


def partly_labelled(dataset, known=40):
    truth = (dataset.y > 0).astype(int)
    y = np.full(len(truth), -1)
    y[:known] = truth[:known]
    return dataset.X, y, truth


def objective(w, X, y, r, C1=1.0, C2=1.0, s=5.0):
    """As in the thesis, with all rows in one place; y is 0, 1, or -1 without a label."""
    m = X[y == -1].mean(axis=0) if (y == -1).any() else X.mean(axis=0)
    f = (X - m) @ w + 2 * r - 1
    short = np.maximum(0, 1 - (2 * y - 1) * f)[y >= 0]
    bells = np.exp(-s * f[y == -1] ** 2)
    unlabelled = C2 / 2 * bells.mean() if len(bells) else 0.0
    return C1 / 2 * (short**2).mean() + unlabelled + w @ w / 2


def slope(w, *problem, step=1e-5, **settings):
    """The gradient by central differences."""
    ways = step * np.eye(len(w))
    return np.array(
        [
            objective(w + e, *problem, **settings) - objective(w - e, *problem, **settings)
            for e in ways
        ]
    ) / (2 * step)


def ring(agents=4):
    return SimulatedNetwork(graphs.ring(agents))


@pytest.mark.parametrize("solver", ["next", "tracking"])
def test_agents_reach_a_stationary_point_of_the_whole(graph, partly, solver):
    X, y, _ = partly
    model = S3VMClassifier(
        positive_share=0.5, solver=solver, network=SimulatedNetwork(graph), random_state=0
    ).fit(X, y)
    start = np.linalg.norm(slope(np.zeros(50), X, y, 0.5))
    assert len(model.coefficients_) == len(graph)
    for w in model.coefficients_:
        assert np.linalg.norm(slope(w, X, y, 0.5)) < 1e-4 * start
    alone = S3VMClassifier(positive_share=0.5).fit(X, y)
    assert objective(model.coefficients_[-1], X, y, 0.5) == pytest.approx(
        objective(alone.coefficients_[0], X, y, 0.5), rel=1e-6
    )


def test_settings_reach_the_objective(partly):
    X, y, _ = partly
    model = S3VMClassifier(
        3.0, 2.0, s=4.0, positive_share=0.45, network=ring(), random_state=1
    ).fit(X, y)
    settings = {"C1": 3.0, "C2": 2.0, "s": 4.0}
    start = np.linalg.norm(slope(np.zeros(50), X, y, 0.45, **settings))
    assert np.linalg.norm(slope(model.coefficients_[2], X, y, 0.45, **settings)) < 1e-4 * start


def test_all_rows_are_translated_by_the_unlabelled_mean(partly):
    X, y, _ = partly
    model = S3VMClassifier(network=ring(), random_state=0).fit(X, y)
    moved = S3VMClassifier(network=ring(), random_state=0).fit(X + 7.0, y)
    np.testing.assert_allclose(model.mean_[3], X[y == -1].mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(
        moved.decision_function(X + 7.0), model.decision_function(X), atol=1e-5
    )


def test_half_of_the_errors_of_a_machine_that_knows_the_labelled_rows_alone():
    """Thesis, table 8.3, on generated data: 13.8 % by the linear SVM, 6.4 % by the semi-supervised
    one.
    """
    errors = {"linear": [], "together": []}
    for seed in range(5):
        X, y, truth = partly_labelled(data.load("g50c", seed=seed))
        rest = slice(40, None)
        errors["linear"].append(
            1 - SVC(kernel="linear").fit(X[:40], y[:40]).score(X[rest], truth[rest])
        )
        model = S3VMClassifier(positive_share=0.5, network=ring(), random_state=seed).fit(X, y)
        errors["together"].append(1 - model.agent_scores(X[rest], truth[rest]).mean())
    assert np.mean(errors["linear"]) > 0.1
    assert np.mean(errors["together"]) < 0.075


@pytest.mark.parametrize("r", [0.2, 0.3, 0.7])
def test_the_share_of_positives_is_the_one_given(partly, r):
    X, y, _ = partly
    model = S3VMClassifier(positive_share=r, network=ring(), random_state=0).fit(X, y)
    assert model.positive_share_ == r
    predicted = model.predict(X) == 1
    assert (predicted == (model.decision_function(X) > 0)).all()
    assert predicted.sum() == np.sum(y == 1) + round(r * 510)  # those that have a label count by it
    assert predicted[y == -1].mean() == pytest.approx(r, abs=0.02)


def test_the_share_is_estimated_where_it_is_not_given(partly):
    """As many labels of each class, but 22 % of the rows are positive."""
    X, _, truth = partly
    rows = np.flatnonzero((truth == 0) | (np.arange(len(truth)) % 7 < 2))
    X, truth = X[rows], truth[rows]
    y = np.full(len(truth), -1)
    for label in (0, 1):
        own = np.flatnonzero(truth == label)[:10]
        y[own] = label
    model = S3VMClassifier(network=ring(), random_state=0).fit(X, y)
    share = np.mean(truth[y == -1])
    assert share < 0.25
    assert model.positive_share_ < 0.35  # half of the labels are positive
    known = S3VMClassifier(positive_share=0.5, network=ring(), random_state=0).fit(X, y)
    assert model.score(X, truth) > known.score(X, truth) + 0.1
    one_place = S3VMClassifier().fit(X, y)
    assert model.positive_share_ == pytest.approx(one_place.positive_share_, abs=1e-12)


def test_labels_by_class_do_no_harm():
    """Breast cancer, 10 labels of each class: half of the labels, but 63 % of the rows."""
    cancer = load_breast_cancer()
    X = StandardScaler().fit_transform(cancer.data)
    errors = {"labelled": [], "ours": []}
    for seed in range(5):
        y = few_of_each(cancer.target, 10, seed)
        known, rest = y >= 0, y < 0
        alone = LogisticRegression().fit(X[known], y[known])
        model = S3VMClassifier(network=ring(), random_state=0).fit(X, y)
        errors["labelled"].append(1 - alone.score(X[rest], cancer.target[rest]))
        errors["ours"].append(1 - model.score(X[rest], cancer.target[rest]))
    assert np.mean(errors["ours"]) < np.mean(errors["labelled"])
    assert np.mean(errors["ours"]) < 0.08


def few_of_each(truth, count, seed):
    """The labels of `count` rows of each class, drawn at random, and -1 for all others."""
    rng = np.random.default_rng(seed)
    y = np.full(len(truth), -1)
    for label in np.unique(truth):
        own = rng.permutation(np.flatnonzero(truth == label))[:count]
        y[own] = label
    return y


def test_all_rows_labelled_the_share_is_counted(partly):
    X, _, truth = partly
    model = S3VMClassifier(network=ring(), random_state=0).fit(X, truth)
    assert model.positive_share_ == truth.mean()


@pytest.fixture(scope="module")
def wine():
    """Wine with 3 classes, 8 labels of each."""
    wine = load_wine()
    X = StandardScaler().fit_transform(wine.data)
    return X, few_of_each(wine.target, 8, 0), wine.target


class TestManyClasses:
    @pytest.mark.parametrize("solver", ["lbfgs", "next"])
    def test_agents_find_what_one_place_finds(self, graph, wine, solver):
        X, y, truth = wine
        together = S3VMClassifier(solver=solver, network=SimulatedNetwork(graph), random_state=0)
        together.fit(X, y)
        alone = S3VMClassifier().fit(X, y)
        assert together.coefficients_.shape == (len(graph), 3, 13)
        assert together.intercept_.shape == (len(graph), 3)
        assert together.score(X, truth) > 0.9
        for own in together.coefficients_:
            np.testing.assert_allclose(own, alone.coefficients_[0], atol=1e-3)
        assert together.positive_share_ is None
        outputs = together.agent_outputs(X)
        assert outputs.shape == (len(graph), 178, 3)
        np.testing.assert_array_equal(together.predict(X), outputs[0].argmax(axis=1))

    def test_the_coefficients_are_stationary(self, wine):
        X, y, _ = wine
        model = S3VMClassifier(network=ring(), random_state=0).fit(X, y)
        Z = np.column_stack([X - X[y == -1].mean(axis=0), np.ones(len(X))])
        w = np.column_stack([model.coefficients_[0], model.intercept_[0]])
        f = Z @ w.T
        pull = w.copy()
        for z, own, label in zip(Z, f, y, strict=True):
            if label < 0:
                p = np.exp(5 * own) / np.exp(5 * own).sum()
                slope = -6 * 5 * p * (p - p @ p) / np.sum(y == -1)
            else:
                slope = np.maximum(0, 1 - own[label] + own)
                slope[label] -= slope.sum()
                slope *= 10 / np.sum(y >= 0)
            pull += np.outer(slope, z)
        assert np.linalg.norm(pull) < 1e-4

    def test_labels_by_class_do_no_harm(self):
        """Iris: the class in the middle is between two others."""
        iris = load_iris()
        X = StandardScaler().fit_transform(iris.data)
        right = []
        for seed in range(5):
            y = few_of_each(iris.target, 10, seed)
            known, rest = y >= 0, y < 0
            alone = LogisticRegression().fit(X[known], y[known])
            model = S3VMClassifier(network=ring(), random_state=0).fit(X, y)
            scores = [each.score(X[rest], iris.target[rest]) for each in (alone, model)]
            right.append(scores)
        labelled, ours = np.mean(right, axis=0)
        assert ours > labelled - 0.02

    def test_sparse_rows_and_agents_with_none(self, wine):
        X, y, truth = wine
        shares = [(X[:0], y[:0]), (X[y >= 0], y[y >= 0]), (X[y == -1], y[y == -1])]
        dense = S3VMClassifier(network=ring(3)).fit(shares)
        sparse = S3VMClassifier(network=ring(3)).fit([(sp.csr_array(x), own) for x, own in shares])
        np.testing.assert_allclose(
            sparse.decision_function(sp.csr_array(X)), dense.decision_function(X), atol=1e-6
        )
        assert dense.score(X, truth) > 0.9

    def test_the_objective_of_all_classes(self, wine):
        X, y, _ = wine
        model = S3VMClassifier(network=ring(), random_state=0).fit(X, y)
        losses, alpha = model.objective(X, y)
        w = np.column_stack([model.coefficients_[0], model.intercept_[0]]).reshape(1, -1)
        assert np.linalg.norm(losses.gradient(w) + alpha * w) < 1e-4

    def test_a_share_of_one_class_is_refused(self, wine):
        X, y, _ = wine
        with pytest.raises(DataError, match=r"have 3, 0, 1, 2: set positive_share to None"):
            S3VMClassifier(positive_share=0.5, network=ring()).fit(X, y)


def test_dense_and_sparse_are_the_same(partly):
    X, y, _ = partly
    X = np.where(np.abs(X) < 0.3, 0.0, X)
    dense = S3VMClassifier(network=ring(), random_state=0).fit(X, y)
    for form in (sp.csr_matrix, sp.csr_array, sp.csc_matrix):
        sparse = S3VMClassifier(network=ring(), random_state=0).fit(form(X), y)
        np.testing.assert_allclose(sparse.coefficients_, dense.coefficients_, atol=1e-10)
        np.testing.assert_allclose(
            sparse.decision_function(form(X)), dense.decision_function(X), atol=1e-9
        )
    pairs = [(sp.csr_array(own), labels) for own, labels in partition.even(X, y, 4, seed=0)]
    by_shares = S3VMClassifier(network=ring()).fit(pairs)
    np.testing.assert_allclose(by_shares.coefficients_[0], dense.coefficients_[0], atol=1e-4)


def test_pandas_in(partly):
    X, y, truth = partly
    frame, labels = pd.DataFrame(X, columns=[f"x{i}" for i in range(50)]), pd.Series(y)
    model = S3VMClassifier(positive_share=0.5, network=ring(), random_state=0).fit(frame, labels)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert model.score(frame, pd.Series(truth)) > 0.9
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])


def test_labels_of_every_kind(partly):
    X, y, truth = partly
    numbers = S3VMClassifier(network=ring(), random_state=0).fit(X, y)
    names = np.array(["ham", "spam"])
    texts = np.where(y == -1, "-1", names[y])
    for labels in (
        texts,
        np.where(y == -1, -1, texts.astype(object)),
        pd.Series(texts, dtype=object),
    ):
        model = S3VMClassifier(network=ring(), random_state=0).fit(X, labels)
        assert model.classes_.tolist() == ["ham", "spam"]
        np.testing.assert_allclose(
            model.decision_function(X), numbers.decision_function(X), atol=1e-5
        )
        assert model.score(X, names[truth]) == pytest.approx(numbers.score(X, truth), abs=0.01)
    real = S3VMClassifier(network=ring(), random_state=0).fit(X, np.where(y == 1, 2.0, y))
    assert real.classes_.tolist() == [0.0, 2.0]


def test_agents_without_labels_without_others_and_with_one_row(partly):
    X, y, truth = partly
    shares = [(X[:40], y[:40]), (X[40:41], y[40:41]), (X[41:300], y[41:300]), (X[300:], y[300:])]
    model = S3VMClassifier(positive_share=0.5, network=ring()).fit(shares)
    assert np.linalg.norm(slope(model.coefficients_[1], X, y, 0.5)) < 1e-4
    assert model.agent_scores(X, truth).min() > 0.9


def test_all_rows_labelled_and_all_but_two(partly):
    X, _, truth = partly
    model = S3VMClassifier(network=ring(), random_state=0).fit(X, truth)
    start = np.linalg.norm(slope(np.zeros(50), X, truth, model.positive_share_))
    assert (
        np.linalg.norm(slope(model.coefficients_[0], X, truth, model.positive_share_))
        < 1e-4 * start
    )
    assert model.score(X, truth) > 0.93
    y = np.full(len(truth), -1)
    y[[np.argmax(truth), np.argmin(truth)]] = 1, 0
    assert set(S3VMClassifier(network=ring(), random_state=0).fit(X, y).predict(X)) == {0, 1}


def test_the_report_holds_all_that_the_fit_sent(partly):
    X, y, _ = partly
    network = ring(5)
    models = [
        S3VMClassifier(network=network, random_state=0, solver=name).fit(X, y)
        for name in ("next", "tracking")
    ]
    assert sum(model.report_.sent.bytes for model in models) == network.ledger.bytes
    assert sum(model.report_.sent.rounds for model in models) == network.ledger.rounds
    assert all(model.report_.converged for model in models)


def test_works_inside_scikit_learn(partly):
    X, y, _ = partly
    network = ring(3)
    search = GridSearchCV(S3VMClassifier(network=network, random_state=0), {"C2": [0.0, 1.0]}, cv=2)
    assert search.fit(X, np.where(y == -1, 0, y)).best_params_["C2"] in (0.0, 1.0)
    assert clone(search.best_estimator_).network is network


class TestThreshold:
    @pytest.mark.parametrize("below", [1, 30, 99.6, 199])
    def test_is_in_the_middle_of_its_gap(self, below):
        values = np.random.default_rng(0).standard_normal(200) ** 3
        shares = [values[:0], values[:1], values[1:120], values[120:]]
        t, ordered = threshold(ring(), shares, below, 200), np.sort(values)
        assert t == pytest.approx(
            (ordered[round(below) - 1] + ordered[round(below)]) / 2, abs=1e-12
        )

    def test_leaves_a_row_on_both_sides(self):
        shares = [np.array([1.0]), np.array([2.0]), np.array([4.0]), np.zeros(0)]
        assert threshold(ring(), shares, 0.0, 3) == 1.5
        assert threshold(ring(), shares, 3.0, 3) == 3.0

    def test_of_values_that_are_the_same(self):
        assert threshold(ring(2), [np.ones(3), np.ones(2)], 2.0, 5) == 1.0

    @pytest.mark.parametrize(
        ("below", "t"), [(1, 0.5), (20, 0.5), (27, 0.5), (28, 1.5), (35, 1.5), (39, 1.5)]
    )
    def test_of_many_values_that_are_the_same_the_nearest_gap_counts(self, below, t):
        values = np.repeat([0.0, 1.0, 2.0], [20, 15, 5])  # 20 below 0.5, 35 below 1.5
        assert (
            threshold(ring(), [values[0::4], values[1::4], values[2::4], values[3::4]], below, 40)
            == t
        )

    def test_of_values_far_apart(self):
        values = np.append(np.random.default_rng(0).standard_normal(1000), [1e8, -1e30])
        t = threshold(ring(), [values[0::4], values[1::4], values[2::4], values[3::4]], 501, 1002)
        assert np.count_nonzero(values < t) == 501


class TestBadInput:
    X = np.random.default_rng(0).standard_normal((20, 3))
    y = np.tile([0, 1, -1, -1], 5)

    def test_no_label_anywhere(self):
        for network in (None, ring()):
            with pytest.raises(
                DataError, match="no row of the whole network has a label, all are -1"
            ):
                S3VMClassifier(network=network).fit(self.X, np.full(20, -1))

    def test_no_label_of_some_class(self):
        y = np.where(self.y == 0, -1, self.y)
        for network in (None, ring()):
            with pytest.raises(
                DataError, match="all labelled rows of the whole network are of one class, 1"
            ):
                S3VMClassifier(network=network).fit(self.X, y)

    def test_one_row_in_all_and_fewer_rows_than_agents(self):
        with pytest.raises(DataError, match="of one class, 1"):
            S3VMClassifier().fit(self.X[:1], [1])
        with pytest.raises(DataError, match="n_samples=20 rows cannot be dealt to 25 agents"):
            S3VMClassifier(network=ring(25)).fit(self.X, self.y)

    def test_rows_that_are_not_numbers(self):
        X = self.X.copy()
        X[7, 1] = np.nan
        for form in (np.asarray, sp.csr_array):
            with pytest.raises(
                DataError, match=r"X has NaN or inf \(infinite\) values in 1 of 20 rows, .* row 7"
            ):
                S3VMClassifier(network=ring()).fit(form(X), self.y)

    @pytest.mark.parametrize(
        ("settings", "sentence"),
        [
            ({"C1": 0.0}, "C1 is 0.0: give a number above 0"),
            ({"C2": -1.0}, "C2 is -1.0: give a number of 0 or more"),
            ({"s": np.inf}, "s is inf: give a number above 0"),
            ({"C1": "1"}, "C1 is '1': give a number above 0"),
            ({"C2": np.nan}, "C2 is nan: give"),
            ({"positive_share": 1.0}, "positive_share is 1.0: give a number between 0 and 1"),
            ({"positive_share": np.nan}, "positive_share is nan: give a number between 0 and 1"),
            ({"solver": "magic"}, "'magic' is not known"),
            ({"network": 5}, "network must be a peerlearn Network such as SimulatedNetwork"),
        ],
    )
    def test_settings(self, settings, sentence):
        network = ring()
        with pytest.raises(InputError, match=sentence):
            S3VMClassifier(**{"network": network, **settings}).fit(self.X, self.y)
        assert network.ledger.rounds == 0

    @pytest.mark.parametrize(
        ("settings", "sentence"),
        [
            ({"C1": 2.0}, "agents disagree on C1, from 1 to 2"),
            ({"C2": 0.0}, "agents disagree on C2, from 0 to 1"),
            ({"s": 4.0}, "agents disagree on s, from 4 to 5"),
            (
                {"positive_share": 0.5},
                "agents disagree on positive_share: give all of them the same",
            ),
            ({"solver": "tracking"}, "agents disagree on solver"),
            ({"columns": 2}, "agents disagree on the number of columns of X, from 2 to 3"),
        ],
    )
    def test_agents_with_different_settings(self, settings, sentence):
        def work(network, agent):
            own = dict(settings) if agent == 2 else {}
            columns = own.pop("columns", 3)
            return S3VMClassifier(network=network, **own).fit(self.X[:, :columns], self.y)

        with pytest.raises(InputError, match=sentence):
            run_apart(graphs.ring(4), work)

    def test_counts_that_cannot_be(self, monkeypatch):
        for told in (np.nan, -1e9, 1e-9):
            monkeypatch.setattr(s3vm, "sum_alike", lambda network, x, *about, told=told: x * told)
            with pytest.raises(
                WireError,
                match=r"all agents together count .* one of them probably runs another version",
            ):
                S3VMClassifier(network=ring()).fit(self.X, self.y)

    def test_a_failed_fit_leaves_the_model_as_it_was(self):
        model = S3VMClassifier(network=ring(), random_state=0).fit(self.X, self.y)
        before = model.predict(self.X)
        for y in (np.ones(20, dtype=int), np.full(20, -1)):
            with pytest.raises(DataError):
                model.fit(self.X[:, :2], y)
            assert model.classes_.tolist() == [0, 1]
            assert (model.predict(self.X) == before).all()
