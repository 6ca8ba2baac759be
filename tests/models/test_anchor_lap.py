"""Laplacian ridge regression on anchors: the formula with all its matrices, the same anchors
everywhere, bad input.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris

from peerlearn import Faults, SimulatedNetwork, data, graphs
from peerlearn.algorithms import anchors as agreed
from peerlearn.algorithms.anchors import centres
from peerlearn.errors import DataError, InputError, NetworkError, WireError
from peerlearn.local import anchor_graph
from peerlearn.models import anchor_lap
from peerlearn.models.anchor_lap import AnchorLapClassifier
from peerlearn.testing import model_data
from peerlearn.testing.cases.models import cases
from tests.support.conformance import SEVEN
from tests.support.split_network import run_apart

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (120, 4))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
SOME = np.where(np.arange(120) % 3 == 0, Y, -1)


def ring(agents=4):
    return SimulatedNetwork(graphs.ring(agents))


def printed(model, X, targets, labelled, gamma_I, s, r):
    """f at all rows by the formula as it is written, with the Laplacian of all rows; no code of the
    package.
    """
    A, w = model.anchors_, model.width_
    D = ((X[:, None] - A) ** 2).sum(axis=2)
    S, U = np.linalg.eigh(np.exp(-((A[:, None] - A) ** 2).sum(axis=2) / (2 * w**2)))
    Phi = np.exp(-D / (2 * w**2)) @ U[:, -r:] / np.sqrt(S[-r:])
    Z = np.zeros_like(D)
    for z, d in zip(Z, D, strict=True):
        near = np.argsort(d)[:s]
        z[near] = np.exp(-d[near] / d[near].max())
        z /= z.sum()
    L = np.eye(len(X)) - Z @ np.diag(1 / Z.sum(axis=0)) @ Z.T
    penalty = (
        model.gamma_A * np.eye(r) + gamma_I * Phi.T @ np.linalg.matrix_power(L, model.power) @ Phi
    )
    own = Phi[labelled]
    return Phi @ np.linalg.solve(own.T @ own + penalty, own.T @ targets[labelled])


@pytest.mark.parametrize("power", [1, 2, 5])
def test_the_formula_with_all_its_matrices(graph, power):
    network = SimulatedNetwork(graph)
    model = AnchorLapClassifier(
        0.8, 0.05, 0.4, power, n_anchors=14, n_nearest=3, rank=9, network=network, random_state=1
    )
    model.fit(X, SOME)
    assert model.anchors_.shape == (14, 4)
    assert model.coefficients_.shape == (len(graph), 9, 1)
    expected = printed(model, X, 2.0 * Y - 1, SOME >= 0, 0.4, 3, 9)
    np.testing.assert_allclose(
        model.decision_function(X), expected, rtol=0, atol=1e-8 * np.abs(expected).max()
    )
    for own in model.coefficients_:
        np.testing.assert_array_equal(own, model.coefficients_[0])


def test_many_classes_and_no_gamma_I():
    iris = load_iris()
    some = np.where(np.arange(150) % 5 == 0, iris.target, -1)
    model = AnchorLapClassifier(network=ring(), n_anchors=20, rank=10, random_state=0).fit(
        iris.data, some
    )
    assert model.coefficients_.shape == (4, 10, 3)
    expected = printed(model, iris.data, np.eye(3)[iris.target], some >= 0, 2.0, 5, 10)
    np.testing.assert_allclose(model.decision_function(iris.data), expected, atol=1e-8)
    assert model.score(iris.data, iris.target) > 0.9


def test_rows_in_pieces_are_rows_at_once(monkeypatch):
    def outputs():
        return AnchorLapClassifier(network=ring(), random_state=0).fit(X, SOME).decision_function(X)

    expected = outputs()
    monkeypatch.setattr(anchor_graph, "ROWS", 7)
    np.testing.assert_allclose(outputs(), expected, atol=1e-9)


def test_unlabelled_rows_help():
    """Two moons with few labels: against the same model on the labelled rows alone, and on all
    without the graph.
    """
    errors = {"ours": [], "labelled rows": [], "no graph": []}
    for seed in range(8):
        moons = data.load("two-moons", seed=seed)
        y = (moons.y > 0).astype(int)
        some = np.where(np.arange(400) < 14, y, -1)
        fixed = {"width": 0.2, "gamma_I": 0.07, "power": 2, "n_nearest": 10, "rank": 60}
        alone = {"width": 0.2, "gamma_I": 0.0, "random_state": seed}
        for name, model, rows, known in (
            (
                "ours",
                AnchorLapClassifier(**fixed, network=ring(5), random_state=seed),
                moons.X,
                some,
            ),
            ("labelled rows", AnchorLapClassifier(**alone), moons.X[:14], y[:14]),
            ("no graph", AnchorLapClassifier(**alone, network=ring(5)), moons.X, some),
        ):
            errors[name].append(1 - model.fit(rows, known).score(moons.X, y))
    ours = np.mean(errors.pop("ours"))
    assert ours < 0.05
    assert all(np.mean(others) > ours + 0.02 for others in errors.values())


class TestAgreement:
    def test_only_the_agent_in_the_middle_searches_for_anchors(self, monkeypatch):
        """On machines of another kind, others might find other ones."""
        calls = []

        def counted(A, width, rank):
            calls.append(1)
            return anchor_graph.projection(A, width, rank)

        monkeypatch.setattr(agreed, "projection", counted)
        run_apart(SEVEN, lambda network, k: cases()["AnchorLapClassifier"](network))
        assert calls == [1]

    def test_settings_that_differ(self):
        def fit(network, k):
            AnchorLapClassifier(rank=3 + (k == 1), network=network, random_state=0).fit(X, SOME)

        with pytest.raises(
            InputError, match="agents disagree on rank, from 3 to 4: give all of them the same"
        ):
            run_apart(graphs.ring(3), fit)

    def test_what_is_sent_does_not_grow_with_the_rows(self):
        def sent(times):
            network = ring()
            model = AnchorLapClassifier(
                n_anchors=20, n_local=10, rank=8, network=network, random_state=0
            )
            model.fit(
                np.tile(X, (times, 1)) + 1e-3 * RNG.standard_normal((120 * times, 4)),
                np.tile(SOME, times),
            )
            assert model.report_.sent == network.ledger.since()
            return model.report_.sent

        assert sent(10) == sent(20)

    def test_a_mean_counts_for_the_rows_behind_it(self):
        shares = [(X[:3], SOME[:3]), (X[3:20], SOME[3:20]), (X[20:], SOME[20:])]
        model = AnchorLapClassifier(n_anchors=1, n_local=4, network=ring(3), random_state=0).fit(
            shares
        )
        np.testing.assert_allclose(model.anchors_, [X.mean(axis=0)], atol=1e-15)

    def test_random_state_alone_decides(self):
        def fit(seed):
            return AnchorLapClassifier(network=ring(), random_state=seed).fit(X, SOME).anchors_

        np.testing.assert_array_equal(fit(1), fit(1))
        assert not np.array_equal(fit(1), fit(2))

    def test_the_report(self):
        model = AnchorLapClassifier(n_anchors=20, rank=8, network=ring(), random_state=0).fit(
            X, SOME
        )
        assert "20 anchors, 8 features" in str(model.report_)


class TestCentres:
    def test_clouds_are_found(self):
        places = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])
        rows = np.repeat(places, [5, 10, 20, 40], axis=0) + 0.1 * RNG.standard_normal((75, 2))
        C, n = centres(rows, np.ones(75), 4, np.random.default_rng(0))
        assert sorted(n.tolist()) == [5, 10, 20, 40]
        assert all(np.linalg.norm(places - own, axis=1).min() < 0.2 for own in C)

    def test_a_weight_is_so_many_rows(self):
        weights = RNG.integers(1, 5, 30).astype(float)
        C, n = centres(X[:30], weights, 6, np.random.default_rng(0))
        assert n.sum() == weights.sum()
        np.testing.assert_allclose(n @ C, weights @ X[:30])  # every centre is the mean of its rows

    def test_rows_that_are_all_the_same(self):
        C, n = centres(np.ones((9, 3)), np.ones(9), 4, np.random.default_rng(0))
        np.testing.assert_array_equal(C, np.ones((4, 3)))
        assert sorted(n.tolist()) == [0, 0, 0, 9]


class TestGiven:
    def test_text_labels_that_few_agents_have(self):
        """Agents without a labelled row, one without any other, and one with a single row: all of
        them allowed.
        """
        shares = [(model_data.rows(agent), model_data.few_labels(agent, 3)) for agent in range(7)]
        model = AnchorLapClassifier(network=SimulatedNetwork(SEVEN), random_state=0).fit(shares)
        assert model.classes_.tolist() == ["iron", "lead", "tin"]
        assert model.agent_scores(model_data.rows(2), model_data.few_labels(2, 3)).shape == (7,)

    def test_pandas(self):
        frame = pd.DataFrame(X, columns=list("abcd"))
        names = pd.Series(np.where(Y, "yes", "no").astype(object)).where(SOME >= 0, -1)
        model = AnchorLapClassifier(network=ring(), random_state=0).fit(frame, names)
        assert model.classes_.tolist() == ["no", "yes"]
        assert set(model.predict(frame)) == {"no", "yes"}
        assert list(model.feature_names_in_) == list("abcd")

    def test_all_rows_labelled(self):
        assert AnchorLapClassifier(network=ring(), random_state=0).fit(X, Y).score(X, Y) > 0.8

    def test_few_rows_and_rows_alike(self):
        assert len(AnchorLapClassifier(random_state=0).fit(X[:6], Y[:6]).anchors_) == 3
        alike = AnchorLapClassifier(network=ring(2), random_state=0).fit(
            np.ones((6, 2)), [0, 1, 1, -1, -1, 1]
        )
        assert alike.anchors_.tolist() == [[1.0, 1.0]]
        assert (alike.predict(np.ones((2, 2))) == 1).all()

    def test_shares_and_one_agent_with_one_row(self):
        shares = [(X[:1], SOME[:1]), (X[1:60], SOME[1:60]), (X[60:], SOME[60:])]
        model = AnchorLapClassifier(n_local=17, network=ring(3), random_state=0).fit(shares)
        assert 3 <= len(model.anchors_) <= 35  # 1 and 17 and 17 at most
        assert [row in model.anchors_.tolist() for row in X.tolist()] == [True] + [
            False
        ] * 119  # that one alone

    @pytest.mark.parametrize("rows", [2, 3, 24, 120])
    def test_centres_are_those_of_two_rows_at_least(self, rows):
        table = agreed.Anchoring(1.0)._find_centres(X[:rows], 3, (0, 0), 100)
        C, n, e = table[:, :-2], table[:, -2], table[:, -1]
        assert np.array_equal(n, np.rint(n))
        assert n.min() >= 2
        assert n.sum() == rows
        np.testing.assert_allclose(n @ C, X[:rows].sum(axis=0), atol=1e-12)
        nearest = np.linalg.norm(X[:rows, None] - C[None], axis=2).min(axis=1)
        np.testing.assert_allclose(e.sum(), (nearest**2).sum(), atol=1e-12)

    def test_the_width_follows_the_unit_of_the_columns_and_not_how_many_rows_there_are(self):
        def width(rows, unit):
            rng = np.random.default_rng(0)
            some = np.where(np.arange(rows) < 10, np.arange(rows) % 2, -1)
            model = AnchorLapClassifier(network=ring(), random_state=0)
            return model.fit(unit * rng.standard_normal((rows, 20)), some).width_

        assert width(200, 7.0) == pytest.approx(7 * width(200, 1.0))
        assert width(20_000, 1.0) == pytest.approx(width(200, 1.0), rel=0.2)
        assert width(200, 1.0) == pytest.approx(
            np.sqrt(2 * 20), rel=0.2
        )  # how far two rows are from each other


class TestBadInput:
    def test_no_labels_anywhere_and_no_labels_of_a_second_class(self):
        with pytest.raises(DataError, match="no row of the whole network has a label, all are -1"):
            AnchorLapClassifier(network=ring(), random_state=0).fit(X, np.full(120, -1))
        with pytest.raises(
            DataError, match="all labelled rows of the whole network are of one class, 1: "
        ):
            AnchorLapClassifier(network=ring(), random_state=0).fit(X, np.where(SOME == 1, 1, -1))

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            (
                {"rank": 61},
                (
                    r"rank=61 is too large for the data: their (\d+) anchors span \1 "
                    r"directions at width=\d"
                ),
            ),
            (
                {"rank": 30, "width": 50.0},
                r"rank=30 is too large for the data: their \d+ anchors span \d+ directions at",
            ),
            (
                {"n_anchors": 61},
                (
                    r"n_anchors=61 is too large for the data: agents sent \d+ different "
                    r"centres, at most half"
                ),
            ),
            (
                {"n_nearest": 61},
                r"n_nearest=61 is more than the (\d+) anchors that there are: set it to \1 or less",
            ),
        ],
    )
    def test_more_than_the_data_have(self, options, sentence):
        with pytest.raises(DataError, match=sentence):
            AnchorLapClassifier(network=ring(), random_state=0, **options).fit(X, SOME)

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            (
                {"rank": 9, "n_anchors": 8},
                "rank=9 is more than n_anchors=8 allow: set rank to 8 or less, or n_anchors",
            ),
            ({"n_nearest": 9, "n_anchors": 8}, "n_nearest=9 is more than n_anchors=8 allow"),
            ({"rank": 0}, "rank == 0, must be >= 1"),
            ({"n_local": 0}, "n_local == 0, must be >= 1"),
            ({"n_anchors": 0}, "n_anchors == 0, must be >= 1"),
            ({"width": 0.0}, "width is 0.0: give a number from 1e-100 to 1e\\+100"),
            ({"width": np.inf}, "width is inf: give a number"),
            ({"gamma_A": 0.0}, "gamma_A is 0.0: give a number"),
            ({"gamma_I": -1.0}, "gamma_I is -1.0: give a number from 0"),
            ({"gamma_I": np.nan}, "gamma_I is nan: give a number"),
            ({"power": 0}, "power == 0, must be >= 1"),
            ({"network": 5}, "network must be a peerlearn Network such as SimulatedNetwork"),
        ],
    )
    def test_settings(self, options, sentence):
        with pytest.raises(ValueError, match=sentence):
            AnchorLapClassifier(**options).fit(X, SOME)

    def test_nothing_is_sent_before_rows_and_settings_are_checked(self):
        network, broken = ring(2), X.copy()
        broken[7, 1] = np.nan
        for given, options in ((broken, {}), (X, {"rank": 9, "n_anchors": 8})):
            with pytest.raises(ValueError):
                AnchorLapClassifier(network=network, **options).fit(given, SOME)
        with pytest.raises(
            DataError, match=r"the share of agent 1: X has NaN or inf .* the first is row 7"
        ):
            AnchorLapClassifier(network=network).fit([(X, SOME), (broken, SOME)])
        assert network.ledger.rounds == 0

    def test_a_failed_fit_leaves_the_model_as_it_was(self):
        model = AnchorLapClassifier(network=ring(), random_state=0).fit(X, SOME)
        before, model.rank = model.predict(X), 100
        with pytest.raises(DataError, match="rank=100 is too large"):
            model.fit(X[:40, :2], np.where(SOME < 0, -1, 1 - SOME)[:40])
        np.testing.assert_array_equal(model.predict(X), before)

    def test_a_network_that_loses_messages(self):
        network = SimulatedNetwork(graphs.ring(4), faults=Faults(0.1))
        with pytest.raises(NetworkError, match="cannot tell silence from a lost message"):
            AnchorLapClassifier(network=network, random_state=0).fit(X, SOME)

    def test_what_other_agents_send_is_looked_at(self, monkeypatch):
        model = AnchorLapClassifier(network=ring(), random_state=0)

        strange = {
            "no rows": lambda own: own * [1, 1, 1, 1, 0, 1],
            "part of a row": lambda own: own + np.array([0, 0, 0, 0, 0.25, 0]),
            "rows beyond number": lambda own: own + np.array([0, 0, 0, 0, 1e300, 0]),
            "far away": lambda own: own + np.array([1e200, 0, 0, 0, 0, 0]),
            "less than no spread": lambda own: own - np.array([0, 0, 0, 0, 0, 1e9]),
            "too many": lambda own: np.tile(own, (100, 1)),
        }
        for change in strange.values():
            with monkeypatch.context() as patch:

                def changed(network, tables, width, change=change):
                    return [change(own) if k == 2 else own for k, own in enumerate(tables)]

                patch.setattr(agreed, "all_gather", changed)
                with pytest.raises(
                    WireError, match=r"agent 2 sent an unexpected message .expected centres of rows"
                ):
                    model.fit(X, SOME)
        with monkeypatch.context() as patch:
            patch.setattr(
                agreed, "broadcast_from_center", lambda network, x: np.full_like(x, np.inf)
            )
            with pytest.raises(
                WireError, match=r"agent \d sent an unexpected message .expected \d+ anchors"
            ):
                model.fit(X, SOME)
        with monkeypatch.context() as patch:
            for sums, said in ((np.nan, "nan labels on nan rows"), (0.0, "0 labels on 0 rows")):
                patch.setattr(
                    anchor_lap, "total", lambda network, x, sums=sums: np.full_like(x, sums)
                )
                with pytest.raises(
                    WireError,
                    match=f"the sums of all agents, with {said}, cannot be right: one of them",
                ):
                    model.fit(X, SOME)


class TestDefaults:
    """Numbers of anchors and features follow the rows, and X may be sparse."""

    @pytest.mark.parametrize(("rows", "anchors"), [(60, 15), (120, 30), (2000, 300)])
    def test_a_quarter_of_the_rows(self, rows, anchors):
        rng = np.random.default_rng(0)
        some = np.where(np.arange(rows) < 10, np.arange(rows) % 2, -1)
        model = AnchorLapClassifier(network=ring(), random_state=0)
        model.fit(rng.standard_normal((rows, 5)), some)
        assert len(model.anchors_) == anchors
        assert model.coefficients_.shape[1] == anchors  # as many features

    def test_digits_need_more_than_a_hundred(self):
        digits = load_digits()
        rows = digits.data / 16
        rng = np.random.default_rng(0)
        some = np.full(len(rows), -1)
        for label in range(10):
            own = rng.permutation(np.flatnonzero(digits.target == label))[:10]
            some[own] = label
        errors = {}
        for name, settings in (("now", {}), ("fixed", {"n_anchors": 100, "rank": 60})):
            model = AnchorLapClassifier(**settings, network=ring(), random_state=0)
            errors[name] = 1 - model.fit(rows, some).score(rows, digits.target)
        assert errors["now"] < 0.07
        assert errors["now"] < 0.8 * errors["fixed"]

    @pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, sp.csc_array])
    def test_sparse_rows(self, form):
        rows = np.where(np.abs(X) < 0.3, 0.0, X)
        dense = AnchorLapClassifier(network=ring(), random_state=0).fit(rows, SOME)
        sparse = AnchorLapClassifier(network=ring(), random_state=0).fit(form(rows), SOME)
        np.testing.assert_allclose(sparse.anchors_, dense.anchors_, atol=1e-12)
        assert sparse.width_ == pytest.approx(dense.width_)
        np.testing.assert_allclose(
            sparse.decision_function(form(rows)), dense.decision_function(rows), atol=1e-6
        )

    def test_sparse_rows_that_some_agents_have(self):
        shares = [(X[:0], SOME[:0]), (X[:70], SOME[:70]), (X[70:], np.full(50, -1))]
        given = [(sp.csr_array(rows), own) for rows, own in shares]
        model = AnchorLapClassifier(network=ring(3), random_state=0).fit(given)
        dense = AnchorLapClassifier(network=ring(3), random_state=0).fit(shares)
        np.testing.assert_allclose(
            model.agent_outputs(sp.csr_array(X)), dense.agent_outputs(X), atol=1e-6
        )
