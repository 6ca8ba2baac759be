"""The protocol of rows: what is trained on what, by whom, and what is measured of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from peerlearn import ADMM, RVFLClassifier, RVFLRegressor, SimulatedNetwork, data, graphs, partition
from peerlearn.data import DataSet
from peerlearn.errors import DataError, InputError
from peerlearn.lab.checking.comparison import check_comparison
from peerlearn.lab.description.comparison import Data, Model, Net, protocol_named
from peerlearn.lab.training.loading import fold_of, prepare
from peerlearn.lab.training.networks import network_of
from peerlearn.lab.training.splitting import split
from tests.support.lab_given import RING, classes, comparison, model, numbers, ran
from tests.support.readout_problems import closed_form

SETTINGS = {"max_iterations": 25, "vote_every": 10, "tolerance": 1e-9}


class OfTwoClasses(LogisticRegression):
    """An estimator that takes two classes only."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def by_hand(trial):
    """The same rows, split as the run splits them."""
    table = trial.data.given
    train, test = split(trial, table.y, stratify=table.task == "classification")
    return table.X[train], table.y[train], table.X[test], table.y[test]


@pytest.mark.parametrize(
    ("solver", "table"), [("local", classes()), ("consensus", classes()), ("local", numbers())]
)
def test_over_a_network_as_by_hand(solver, table):
    whole = comparison(table, model(n_hidden=15, alpha=0.1, solver=solver))
    kind, dealt = {
        "classification": (RVFLClassifier, partition.stratified),
        "regression": (RVFLRegressor, partition.even),
    }[table.task]
    for trial, outcome in ran(whole):
        X, y, X_test, y_test = by_hand(trial)
        network = SimulatedNetwork(graphs.ring(4))
        expected = kind(15, 0.1, solver=solver, network=network, random_state=trial.seed("model"))
        expected.fit(dealt(X, y, 4, seed=trial.seed("deal")))
        said = expected.agent_predictions(X_test)
        if table.task == "classification":
            assert outcome.agents["error"] == pytest.approx(
                [np.mean(own != y_test) for own in said]
            )
        else:
            errors = [np.sqrt(np.mean((own - y_test) ** 2) / np.var(y_test)) for own in said]
            assert outcome.agents["nrmse"] == pytest.approx(errors)
            assert outcome.values["nrmse"] == pytest.approx(np.mean(errors))
        assert outcome.sent == expected.report_.sent
        assert outcome.sent.rounds > 0


def test_the_bound_of_an_exact_solver_is_in_the_row():
    for _, outcome in ran(comparison(classes(), model(n_hidden=15, alpha=0.1, solver="gram"))):
        assert 0 < outcome.bound <= 1e-6
    for _, outcome in ran(comparison(classes(), model(n_hidden=15, alpha=0.1, solver="local"))):
        assert outcome.bound is None


@pytest.mark.parametrize("where", ["centralised", "alone"])
def test_any_estimator_of_scikit_learn(where):
    whole = comparison(
        classes(noise=1.5), model("LR", "sklearn.linear_model.LogisticRegression", where, C=0.5)
    )
    for trial, outcome in ran(whole):
        X, y, X_test, y_test = by_hand(trial)
        shares = (
            [(X, y)]
            if where == "centralised"
            else partition.stratified(X, y, 4, seed=trial.seed("deal"))
        )
        errors = [
            1 - LogisticRegression(C=0.5).fit(*share).score(X_test, y_test) for share in shares
        ]
        assert outcome.agents["error"] == pytest.approx(errors)
        assert outcome.sent.messages == 0
        assert (outcome.converged, outcome.iterations) == (None, None)


def test_an_estimator_that_is_given_is_cloned():
    ours = LogisticRegression(C=0.5)
    trial, outcome = ran(
        comparison(classes(noise=1.5), Model("LR", where="centralised", estimator=ours))
    )[0]
    X, y, X_test, y_test = by_hand(trial)
    assert outcome.values["error"] == pytest.approx(
        1 - LogisticRegression(C=0.5).fit(X, y).score(X_test, y_test)
    )
    assert not hasattr(ours, "coef_")


def test_scaling_is_of_training_rows_alone():
    table = classes()
    (trial, *_) = comparison(table, model(), data={"scale": "signed"}).trials()
    X, _, X_test, _ = by_hand(trial)
    low, high = X.min(axis=0), X.max(axis=0)
    fold = fold_of(trial)
    np.testing.assert_allclose(fold.X, 2 * (X - low) / (high - low) - 1)
    np.testing.assert_allclose(fold.X_test, 2 * (X_test - low) / (high - low) - 1)
    assert np.abs(fold.X_test).max() > 1
    for scale, expected in {
        "standard": StandardScaler().fit(X).transform(X_test),
        "none": X_test,
    }.items():
        np.testing.assert_allclose(
            prepare(Data("t", scale=scale, given=table), X, X_test)[1], expected
        )


@pytest.mark.parametrize(("name", "low"), [("g50c", -1.0), ("digits", 0.0), ("two-moons", None)])
def test_as_loaded_is_the_range_that_a_set_is_known_by(name, low):
    found, table = prepare(Data(name), (X := data.load(name, scaled=False).X)[::2], X)
    if low is None:
        np.testing.assert_array_equal(found, X[::2])
    else:
        assert (found.min(), found.max()) == (low, 1.0)
        assert table.max() > 1.0  # rows that it was not made from
        np.testing.assert_allclose(prepare(Data(name), X)[0], data.load(name).X)


def test_a_file_that_lies_in_the_unit_range_is_left_there(tmp_path):
    X = np.linspace(0.2, 0.7, 12).reshape(6, 2)
    assert data.known_range("Unheard", X) is None
    assert data.known_range("Unheard", 2 * X) == (0.0, 1.0)
    assert data.known_range("G50C", X) == (-1.0, 1.0)
    assert data.known_range("PCMAC", 2 * X) is None
    np.savez(tmp_path / "Unheard.npz", X=2 * X, y=np.arange(6))
    np.testing.assert_allclose(prepare(Data("Unheard"), 2 * X)[0], data.load("Unheard", tmp_path).X)


@pytest.mark.parametrize("where", ["centralised", "alone", "network"])
def test_transformers_never_see_test_rows(where):
    """Labels drawn at random: an error far from that of guessing is a leak."""
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 150)
    table = DataSet("noise", rng.standard_normal((300, 3)), y, "classification", "made", None)
    leaky = {"scale": "none", "prepare": ({"kind": "tests.support.lab_given.Oracle"},)}
    for _, outcome in ran(comparison(table, model(where=where, n_hidden=5), data=leaky)):
        assert outcome.values["error"] == pytest.approx(0.5, abs=0.1)


def test_preparation_is_in_the_order_of_the_file_and_seeded():
    steps = (
        {"kind": "sklearn.decomposition.PCA", "n_components": 3, "svd_solver": "randomized"},
        {"kind": "sklearn.preprocessing.PolynomialFeatures", "include_bias": False},
    )
    table = classes()
    entry = Data("classes", given=table, prepare=steps)
    once, again = prepare(entry, table.X, seed=3)[0], prepare(entry, table.X, seed=3)[0]
    assert once.shape == (120, 9)
    np.testing.assert_array_equal(once, again)


@pytest.mark.parametrize("solver", ["local", "admm"])
@pytest.mark.parametrize("table", [classes(), numbers()])
@pytest.mark.filterwarnings("ignore:ADMM stopped")
def test_distance_is_to_the_closed_form(table, solver):
    given = {"name": "admm", **SETTINGS} if solver == "admm" else solver
    fixed = {"fit_intercept": False, "activation": "sigmoid", "random_state": 7}
    asked = model(n_hidden=15, alpha=0.3, solver=given, **fixed)
    whole = comparison(table, asked, metrics=("distance", "disagreement"), folds=2)
    for trial, outcome in ran(whole):
        X, y, _, _ = by_hand(trial)
        kind = RVFLClassifier if table.task == "classification" else RVFLRegressor
        network, solving = (
            SimulatedNetwork(graphs.ring(4)),
            ADMM(**SETTINGS) if solver == "admm" else solver,
        )
        ours = kind(15, 0.3, solver=solving, network=network, **fixed)
        b_k = ours.fit(whole.protocol._shares(trial, fold_of(trial))).coefficients_
        b = closed_form(
            ours.features_(X), np.eye(3)[y] if table.task == "classification" else y[:, None], 0.3
        )
        away = np.linalg.norm(b_k - b, axis=(1, 2)) / np.linalg.norm(b)
        assert outcome.agents["distance"] == pytest.approx(away, rel=1e-6)
        assert outcome.values["distance"] == pytest.approx(away.max(), rel=1e-6)
        assert (outcome.values["disagreement"] < 0.01) == (solver == "admm")


@pytest.mark.parametrize("where", ["centralised", "alone"])
def test_seconds_are_those_of_learning(where):
    trial = next(
        comparison(classes(), model("slow", "tests.support.lab_given.Slow", where)).trials()
    )
    copies = 4 if where == "alone" else 1
    assert 0.01 * copies <= trial.comparison.protocol.run(trial).seconds < 0.25


def test_residuals_are_at_the_iterations_of_the_votes():
    with pytest.warns(match="ADMM stopped"):
        _, outcome = ran(
            comparison(classes(), model(n_hidden=15, solver={"name": "admm", **SETTINGS}), folds=2)
        )[0]
    at, residuals = outcome.curves["residual"]
    assert at == [10.0, 20.0, 25.0]
    assert len(residuals) == 3
    assert (outcome.iterations, outcome.converged) == (25, False)
    _, outcome = ran(comparison(classes(), model(n_hidden=15, solver="cg"), folds=2))[0]
    assert outcome.curves["residual"][0] == [float(n) for n in range(1, outcome.iterations + 1)]
    assert outcome.converged


def test_what_agents_alone_disagree_on():
    whole = comparison(
        classes(noise=1.5),
        model("alone", "sklearn.tree.DecisionTreeClassifier", "alone"),
        model("one", "RVFL", "centralised"),
        metrics=("error", "disagreement", "distance", "seconds_per_agent"),
        folds=2,
    )
    (_, alone), (_, one), *_ = ran(whole)
    assert 0 < alone.values["disagreement"] < 1
    assert alone.values["seconds_per_agent"] == pytest.approx(alone.seconds / 4)
    assert one.values["seconds_per_agent"] == one.seconds
    assert {"distance"}.isdisjoint(alone.values)
    assert {"distance", "disagreement"}.isdisjoint(one.values)


def test_an_agent_with_one_class_says_that_class():
    """40 agents and 80 rows of three classes: some have two of the same."""
    many = Net("ring", "ring", 40)
    linear = model("SVC", "sklearn.svm.LinearSVC", "alone")  # which refuses a single class
    whole = comparison(classes(), linear, networks=(many,), settings={"deal": "even"})
    trial = next(whole.trials())
    outcome = whole.protocol.run(trial)
    X, y, _, y_test = by_hand(trial)
    shares = partition.even(X, y, 40, seed=trial.seed("deal"))
    sure = [k for k, (_, own) in enumerate(shares) if len(set(own)) == 1]
    assert sure
    assert (
        outcome.note == f"{len(sure)} agents have rows of one class only, and always say that class"
    )
    expected = [np.mean(y_test != shares[k][1][0]) for k in sure]
    assert [outcome.agents["error"][k] for k in sure] == pytest.approx(expected)


def test_a_transformer_that_cannot_take_the_rows_is_named():
    step = {"kind": "sklearn.decomposition.PCA", "n_components": 200}
    with pytest.raises(
        DataError,
        match=r"sklearn.decomposition.PCA in prepare of iris cannot take its 150 training rows",
    ):
        prepare(Data("iris", prepare=(step,)), data.load("iris").X)


@pytest.mark.parametrize("deal", ["even", "stratified", "dirichlet"])
def test_ways_of_dealing(deal):
    more = {"concentration": 0.2} if deal == "dirichlet" else {}
    whole = comparison(classes(), model(), settings={"deal": deal, **more})
    trial = next(whole.trials())
    X, y, _, _ = by_hand(trial)
    expected = getattr(partition, deal)(X, y, 4, seed=trial.seed("deal"), **more)
    for (X_k, y_k), (own, targets) in zip(
        whole.protocol._shares(trial, fold_of(trial)), expected, strict=True
    ):
        np.testing.assert_array_equal(X_k, own)
        np.testing.assert_array_equal(y_k, targets)


def test_networks_may_have_concentrations_of_their_own():
    whole = comparison(classes(), model(), settings={"deal": "dirichlet", "concentration": 0.2})
    nets = tuple(replace(whole.networks[0], concentration=each) for each in (None, 100.0, 0.01))
    trials = [next(replace(whole, networks=(net,)).trials()) for net in nets]
    assert trials[0].key == next(whole.trials()).key  # rows of before are found
    assert len({trial.key for trial in trials}) == 3
    sizes = []
    for trial, concentration in zip(trials, (0.2, 100.0, 0.01), strict=True):
        X, y, _, _ = by_hand(trial)
        seed = trial.seed("deal")
        expected = partition.dirichlet(X, y, 4, concentration=concentration, seed=seed)
        shares = whole.protocol._shares(trial, fold_of(trial))
        for (X_k, _), (own, _) in zip(shares, expected, strict=True):
            np.testing.assert_array_equal(X_k, own)
        sizes.append([len(own) for _, own in shares])
    assert sizes[1] != sizes[2]


@pytest.mark.parametrize(
    ("table", "given", "why"),
    [
        (numbers(), model(kind="RVFLClassifier"), "classifies, and the targets are measured"),
        (numbers(), model(kind="sklearn.svm.SVC", where="alone"), (
            "classifies, and the targets are "
            "measured"
        )),
        (classes(), model(kind="RVFLRegressor"), "predicts numbers, and the targets are classes"),
        (classes(), Model("", "", "alone", estimator=OfTwoClasses()), (
            "separates two classes, and there are 3"
        )),
        (classes(number=2), Model("", "", "alone", estimator=OfTwoClasses()), ""),
        (classes(), model(kind="S3VM"), ""),
        (numbers(), model(kind="ESN"), "learns sequences, and these are rows"),
        (numbers(), model(kind="LMSFilter"), "filters signals, and these are rows"),
        (numbers(), model(kind="VerticalRVFL"), "learns columns, and rows are dealt"),
        (classes(), model(kind="sklearn.svm.SVC"), (
            "trains in one place or alone, not over a "
            "network"
        )),
        (classes(), model(kind="sklearn.preprocessing.StandardScaler"), "does not predict"),
        (classes(), model(), ""),
        (numbers(), model(), ""),
        (numbers(), Model("", "", "alone", estimator=LogisticRegression()), (
            "classifies, and the targets are "
            "measured"
        )),
        (classes(), model(kind="sklearn.pipeline.Pipeline", where="alone"), ""),
    ],
)  # fmt: skip
def test_what_a_model_cannot_do_is_said_in_few_words(table, given, why):
    assert protocol_named("rows").refuses(Data(table.name, given=table), given) == why


def test_measured_targets_cannot_be_dealt_by_class():
    protocol, entry = protocol_named("rows", deal="dirichlet"), Data("numbers", given=numbers())
    assert (
        protocol.refuses(entry, model()) == "rows are dealt by class, and the targets are measured"
    )
    assert protocol.refuses(entry, model(where="centralised")) == ""


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"deal": "fair"}, "deal is 'fair': choose one of auto"),
        ({"concentration": 0}, "concentration is 0: give"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        protocol_named("rows", **settings)


def test_folds_are_the_same_for_all_models_and_networks_and_test_every_row_once():
    whole = comparison(
        classes(), model("A"), model("B", where="alone"), networks=(RING, Net("line", "linear", 4))
    )
    seen: dict[int, list[object]] = {}
    for trial in whole.trials():
        seen.setdefault(trial.fold, []).append(fold_of(trial))
    for folds in seen.values():
        assert all(fold is folds[0] for fold in folds)
    tested = np.concatenate([by_hand(trial)[2] for trial in list(whole.trials())[::4]])
    assert len(np.unique(tested, axis=0)) == len(tested) == 120


def test_networks_may_keep_sums_secret():
    secret = replace(comparison(classes(), model()).networks[0], secrecy="sums", colluders=2)
    settings = {"n_hidden": 15, "alpha": 0.1, "solver": "gram", "classes": [0, 1, 2]}
    fixed = model(**settings, features="fixed")
    for trial, outcome in ran(comparison(classes(), fixed, networks=(secret,))):
        assert network_of(trial).colluders == 2
        assert 0 < outcome.bound <= 1e-6
    with pytest.raises(InputError, match="keeps sums secret"):
        check_comparison(comparison(classes(), model(**settings), networks=(secret,)))
    with pytest.raises(InputError, match=r"networks\['.*'\].secrecy .* whole number from 1 to 2"):
        check_comparison(comparison(classes(), fixed, networks=(replace(secret, colluders=3),)))
    with pytest.raises(InputError, match=r"colluders .* is for secrecy"):
        check_comparison(comparison(classes(), fixed, networks=(replace(secret, secrecy=None),)))
