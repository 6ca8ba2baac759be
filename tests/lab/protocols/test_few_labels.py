"""Few labels: which rows say their class, who learns from which of them, and what comes out as by
hand.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from peerlearn import (
    NEXT,
    LapKRRClassifier,
    S3VMClassifier,
    SimulatedNetwork,
    StepRule,
    graphs,
    partition,
)
from peerlearn.data import DataSet
from peerlearn.errors import DataError, InputError
from peerlearn.lab.checking.comparison import check_comparison
from peerlearn.lab.description.comparison import Data, Model, protocol_named
from peerlearn.lab.description.search import Search
from peerlearn.lab.runs.attempt import attempt
from peerlearn.lab.training.splitting import split
from peerlearn.models.anchor_lap import AnchorLapClassifier
from tests.support.lab_given import classes, comparison, model, numbers, ran

LAP = {"width": 2.0, "n_neighbors": 4, "gamma_A": 1e-2, "gamma_I": 0.5}


def signed(rows=90, noise=1.5, **more):
    """Two classes that are called -1 and +1, as those of G50C are."""
    table = classes(rows, number=2, noise=noise, **more)
    return replace(table, y=2 * table.y - 1)


def few(table, *models, **settings):
    """A comparison with 20 labels at random, if nothing else is said."""
    of_all = {
        key: settings.pop(key)
        for key in ("metrics", "folds", "repetitions", "data", "search")
        if key in settings
    }
    return comparison(
        table, *models, protocol="few-labels", settings={"labelled": 20, **settings}, **of_all
    )


def first(whole):
    return next(iter(whole.trials()))


def shares(trial, X, y, agents=4):
    """Labelled rows evenly, and the others evenly: laid out one kind after the other, and dealt
    like cards.
    """
    rng = np.random.default_rng(trial.seed("deal"))
    shuffled = rng.permutation(len(y))
    line = np.concatenate([shuffled[y[shuffled] == -1], shuffled[y[shuffled] != -1]])
    rows = [rng.permutation(line[agent::agents]) for agent in range(agents)]
    return [(X[own], y[own]) for own in rows]


# Which rows
# --------------------------------------------------------------------------------------------------


def test_folds_are_those_of_all_protocols_and_most_rows_have_no_label():
    table = signed()
    seen = []
    for trial in few(table, model(kind="S3VMClassifier")).trials():
        fold = trial.comparison.protocol.fold(trial)
        train, test = split(trial, table.y, stratify=True)
        assert np.array_equal(fold.X_test, table.X[test])
        assert np.array_equal(
            fold.y_test, (table.y[test] > 0).astype(int)
        )  # -1 and +1 are called 0 and 1
        rows = [table.X.tolist().index(row) for row in fold.X.tolist()]
        assert sorted(rows) == sorted(train)
        known = fold.y != -1
        assert known.sum() == 20
        assert np.array_equal(2 * fold.y[known] - 1, table.y[rows][known])
        seen.append(tuple(rows[:20]))
    assert len(set(seen)) == 3  # other labels in every fold


def test_labels_are_drawn_at_random_also_where_rows_come_class_by_class():
    table = signed()
    order = np.argsort(table.y, kind="stable")
    by_class = replace(table, X=table.X[order], y=table.y[order])
    whole = few(by_class, model(kind="S3VMClassifier"), labelled=30)
    for trial in whole.trials():
        fold = whole.protocol.fold(trial)
        assert 5 < np.sum(fold.y == 1) < 25  # of 30


def test_every_model_and_network_sees_the_same_rows():
    whole = few(
        signed(),
        model("a", "S3VMClassifier"),
        model("b", "LapKRRClassifier", "centralised"),
        folds=1,
    )
    one, other = (trial.comparison.protocol.draw_fold(trial) for trial in whole.trials())
    assert np.array_equal(one.X, other.X)
    assert np.array_equal(one.y, other.y)


def test_numbers_of_rows_by_data_set():
    table = signed()
    sizes = {
        "labelled": {"classes": 10},
        "unlabelled": {"classes": 30},
        "tested": {"classes": 25, "another": 7},
    }
    whole = few(table, model(kind="S3VMClassifier"), folds=2, repetitions=2, **sizes)
    folds = [trial.comparison.protocol.fold(trial) for trial in whole.trials()]
    for fold in folds:
        assert (len(fold.y), np.sum(fold.y != -1), len(fold.y_test)) == (40, 10, 25)
        everything = np.vstack([fold.X, fold.X_test])
        assert len(np.unique(everything, axis=0)) == 65  # nothing is trained and tested on
    assert len({fold.X_test.tobytes() for fold in folds}) == 4


def test_labels_in_equal_numbers_per_class():
    table = classes(number=3, noise=1.0)
    for labelled, expected in ((12, [4, 4, 4]), (14, [4, 5, 5])):
        whole = few(table, model(kind="LapKRRClassifier"), labelled=labelled, labels="per class")
        fold = whole.protocol.fold(first(whole))
        assert np.bincount(fold.y[fold.y != -1]).tolist() == expected
    whole = few(table, model(kind="LapKRRClassifier"), labelled=12)
    drawn = [
        np.bincount(fold.y[fold.y != -1], minlength=3).tolist()
        for fold in map(whole.protocol.fold, whole.trials())
    ]
    assert drawn != [[4, 4, 4]] * 3


def test_only_some_classes():
    table = classes(number=5, rows=200, noise=1.0)
    whole = few(
        table, model(kind="S3VMClassifier", positive_share=0.5), classes={"classes": [1, 4]}
    )
    trial = first(whole)
    fold = whole.protocol.fold(trial)
    assert len(fold.y) + len(fold.y_test) == 80
    assert set(fold.y) == {-1, 0, 1}
    nearest = np.where(fold.X.mean(axis=1) > 2.5, 1, 0)  # rows of class c lie around c
    known = fold.y != -1
    assert np.mean(nearest[known] == fold.y[known]) == 1
    assert whole.protocol.refuses(trial.data, trial.model) == ""


def test_scaling_is_by_training_rows_with_and_without_a_label():
    table = signed()
    whole = few(table, model(kind="S3VMClassifier"), data={"scale": "signed"})
    trial = first(whole)
    train, test = split(trial, table.y, stratify=True)
    low, high = table.X[train].min(axis=0), table.X[train].max(axis=0)
    np.testing.assert_allclose(
        whole.protocol.fold(trial).X_test, 2 * (table.X[test] - low) / (high - low) - 1
    )


# Who learns from what
# ------------------------------------------------------------------------------------------------


def test_rivals_see_the_labelled_rows_alone():
    whole = few(signed(noise=2.0), model("SVC", "sklearn.svm.SVC", "centralised", C=2.0))
    for trial, outcome in ran(whole):
        fold = whole.protocol.fold(trial)
        known = fold.y != -1
        expected = SVC(C=2.0).fit(fold.X[known], fold.y[known]).score(fold.X_test, fold.y_test)
        assert outcome.values["error"] == pytest.approx(1 - expected)
        assert 0 < outcome.values["error"] < 0.5


def test_semi_supervised_estimators_of_scikit_learn_see_all_rows():
    settings = {"kernel": "rbf", "gamma": 0.5}
    whole = few(
        signed(), model("LS", "sklearn.semi_supervised.LabelSpreading", "centralised", **settings)
    )
    for trial, outcome in ran(whole):
        fold = whole.protocol.fold(trial)
        expected = LabelSpreading(**settings).fit(fold.X, fold.y).score(fold.X_test, fold.y_test)
        assert outcome.values["error"] == pytest.approx(1 - expected)


def test_lapkrr_together_is_as_in_one_place_and_as_by_hand():
    models = (
        model("C", "LapKRRClassifier", "centralised", **LAP),
        model("D", "LapKRRClassifier", **LAP),
    )
    whole = few(signed(noise=2.0), *models, metrics=("error", "disagreement"), folds=2)
    centralised, together = (
        [outcome for trial, outcome in ran(whole) if trial.model.name == name]
        for name in ("C", "D")
    )
    for one, other in zip(centralised, together, strict=True):
        assert one.values["error"] == other.values["error"]
        assert other.agents["error"] == [other.values["error"]] * 4
        assert other.values["disagreement"] == 0
        assert other.sent.messages > 0
    trial = first(whole)
    fold = whole.protocol.fold(trial)
    expected = LapKRRClassifier(**LAP).fit(fold.X, fold.y).score(fold.X_test, fold.y_test)
    assert centralised[0].values["error"] == pytest.approx(1 - expected)


@pytest.mark.filterwarnings("ignore::peerlearn.errors.NotConverged")
def test_s3vm_over_the_network_as_by_hand():
    solver = {
        "name": "next",
        "surrogate": "exact",
        "step": {"alpha0": 0.5, "delta": 0.6},
        "max_iterations": 15,
    }
    settings = {"C1": 2.0, "C2": 0.5, "positive_share": 0.5}
    tuned = {"classes": {"NEXT": {"solver.step": {"alpha0": 0.3, "delta": 0.7}, "C1": 3.0}}}
    for given, step, C1 in (({}, StepRule(0.5, 0.6), 2.0), (tuned, StepRule(0.3, 0.7), 3.0)):
        whole = few(
            signed(noise=2.0),
            model("NEXT", "S3VMClassifier", solver=solver, **settings),
            metrics=("error", "distance", "disagreement"),
            tuned=given,
        )
        trial, outcome = ran(whole)[0]
        fold = whole.protocol.fold(trial)
        expected = S3VMClassifier(
            C1,
            0.5,
            positive_share=0.5,
            solver=NEXT("exact", step, max_iterations=15),
            random_state=0,
        )
        together = SimulatedNetwork(graphs.ring(4))
        w = expected.set_params(network=together).fit(shares(trial, fold.X, fold.y)).coefficients_
        assert outcome.agents["error"] == pytest.approx(
            1 - expected.agent_scores(fold.X_test, fold.y_test)
        )
        assert outcome.sent == expected.report_.sent
        assert outcome.iterations == 15
        assert not outcome.converged
        spread = np.sqrt(np.mean(np.sum((w - w.mean(axis=0)) ** 2, axis=1))) / np.linalg.norm(
            w.mean(axis=0)
        )
        assert outcome.values["disagreement"] == pytest.approx(spread)
        centre = expected.set_params(network=None).fit(fold.X, fold.y).coefficients_[0]
        away = np.linalg.norm(w - centre, axis=1) / np.linalg.norm(centre)
        assert outcome.agents["distance"] == pytest.approx(away)


def test_distances_are_to_what_the_same_labels_give():
    """Comparisons of other numbers of labels may be run in the same process, with the
    same seeds.
    """
    settings = {"solver": "lbfgs", "positive_share": 0.5}
    for labelled in (10, 30):
        whole = few(
            signed(),
            model(kind="S3VMClassifier", **settings),
            metrics=("distance",),
            labelled=labelled,
        )
        for _, outcome in ran(whole):
            assert outcome.values["distance"] < 1e-4


def test_anchors_over_the_network():
    whole = few(
        signed(noise=2.0), model("A", "AnchorLapClassifier", n_anchors=10, n_nearest=3, rank=5)
    )
    trial, outcome = ran(whole)[0]
    fold = whole.protocol.fold(trial)
    expected = AnchorLapClassifier(
        n_anchors=10,
        n_nearest=3,
        rank=5,
        network=SimulatedNetwork(graphs.ring(4)),
        random_state=trial.seed("model"),
    ).fit(shares(trial, fold.X, fold.y))
    assert outcome.agents["error"] == pytest.approx(
        1 - expected.agent_scores(fold.X_test, fold.y_test)
    )


# Alone
# --------------------------------------------------------------------------------------------------


def test_lapkrr_alone_is_every_agent_on_its_own_rows():
    whole = few(signed(noise=2.0), model("L", "LapKRRClassifier", "alone", **LAP))
    trial, outcome = ran(whole)[0]
    fold = whole.protocol.fold(trial)
    expected = LapKRRClassifier(
        **LAP, distances="local", network=SimulatedNetwork(graphs.ring(4)), random_state=0
    )
    expected.fit(shares(trial, fold.X, fold.y))
    assert outcome.agents["error"] == pytest.approx(
        1 - expected.agent_scores(fold.X_test, fold.y_test)
    )
    assert len(set(outcome.agents["error"])) > 1


@pytest.mark.parametrize("kind", ["S3VMClassifier", "sklearn.svm.SVC"])
def test_alone_an_agent_that_knows_one_class_says_that(kind):
    whole = few(signed(), model("alone", kind, "alone"), labelled=8, folds=2)
    one_class = 0
    for trial, outcome in ran(whole):
        fold = whole.protocol.fold(trial)
        for k, (X, y) in enumerate(shares(trial, fold.X, fold.y)):
            known = y != -1
            if len(set(y[known])) == 1:
                one_class += 1
                expected = np.mean(fold.y_test != y[known][0])
            elif kind == "S3VMClassifier":
                own = S3VMClassifier(random_state=trial.seed("model")).fit(X, y)
                expected = 1 - own.score(fold.X_test, fold.y_test)
            else:
                expected = 1 - SVC().fit(X[known], y[known]).score(fold.X_test, fold.y_test)
            assert outcome.agents["error"][k] == pytest.approx(expected)
    assert one_class


def test_alone_an_agent_needs_a_label():
    whole = few(signed(), model("alone", "S3VMClassifier", "alone"), labelled=3, labels="per class")
    with pytest.raises(
        DataError,
        match=r"agent \d has no labelled row of classes, from which alone could learn alone",
    ):
        ran(whole)


# What cannot be
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"labelled": 1}, "labelled is 1: give whole numbers of 2 or more"),
        ({"tested": {"a": 2.5}}, "tested is {'a': 2.5}: give whole numbers of 0 or more"),
        ({"labels": "evenly"}, "labels is 'evenly': choose 'at random' or 'per class'"),
        ({"classes": {"a": [1]}}, r"classes.a is \[1\]: give the labels of two classes or more"),
        (
            {"tuned": {"a": {"M": 3}}},
            "tuned.a is .*: give a table of settings by the name of the model",
        ),
    ],
)
def test_settings_that_are_refused(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        protocol_named("few-labels", **settings)


def test_more_rows_than_there_are():
    table, svm = signed(), Model("S", "S3VMClassifier")
    entry = Data("classes", given=table)
    with pytest.raises(
        InputError, match="data set classes has 90 rows, and the protocol asks for 120"
    ):
        protocol_named("few-labels", labelled=20, tested=100).refuses(entry, svm)
    with pytest.raises(
        InputError, match="labelled of the protocol says nothing of data set classes"
    ):
        protocol_named("few-labels", labelled={"other": 20}).refuses(entry, svm)
    with pytest.raises(DataError, match="has no class 7 to be told apart: it has"):
        protocol_named("few-labels", classes={"classes": [7, 1]}).refuses(entry, svm)
    whole = few(table, svm, labelled=80)
    with pytest.raises(
        DataError, match="has 60 training rows, too few for 80 labels drawn at random"
    ):
        whole.protocol.run(first(whole))


def test_models_that_cannot():
    protocol = protocol_named("few-labels")
    three, measured = Data("a", given=classes(number=3)), Data("b", given=numbers())
    assert protocol.refuses(three, Model("S", "S3VMClassifier")) == ""
    assert protocol.refuses(three, Model("L", "LapKRRClassifier")) == ""
    assert "classifies" in protocol.refuses(measured, Model("L", "LapKRRClassifier"))
    assert "not over a network" in protocol.refuses(
        three, Model("SVC", "sklearn.svm.SVC", "network")
    )


@pytest.mark.parametrize(
    ("tuned", "sentence"),
    [
        (
            {"C3": 1.0},
            (
                "tuned.classes.S of the protocol has C3, which is no parameter of "
                "S3VMClassifier: there are C1, C2"
            ),
        ),
        ({"solver.stop": 1}, "stop is not a setting of NEXT: did you mean step"),
        ({"solver.step": {"alpha0": 0.0}}, "alpha0 of a StepRule is 0.0: give a number above 0"),
    ],
)
def test_settings_for_one_data_set_that_cannot_be(tuned, sentence):
    protocol, entry = (
        protocol_named("few-labels", tuned={"classes": {"S": tuned}}),
        Data("classes", given=signed()),
    )
    with pytest.raises(InputError, match=sentence):
        protocol.refuses(entry, Model("S", "S3VMClassifier", settings={"solver": {"name": "next"}}))
    assert protocol.refuses(entry, Model("other", "S3VMClassifier")) == ""


def test_a_search_is_over_folds_of_the_labelled_rows():
    """By hand: rows without a label stay, held out ones are gone."""
    later, grid = [], {"C1": [1e-5, 1.0, 30.0], "C2": [10.0, 1e-3]}
    found = model(kind="S3VMClassifier", where="centralised", positive_share=0.5)
    whole = few(signed(), found, labelled=24, search=Search(grid, folds=3))
    for trial, outcome in ran(whole):
        fold = whole.protocol.fold(trial)
        known, unknown = np.flatnonzero(fold.y != -1), np.flatnonzero(fold.y == -1)
        dealt = partition.stratified_rows(
            fold.y[known], 3, np.random.default_rng(trial.seed("split"))
        )
        candidates = [{"C1": a, "C2": b} for a in grid["C1"] for b in grid["C2"]]
        errors = np.zeros(len(candidates))
        for n, held in enumerate(dealt):
            test = np.sort(known[held])
            rows = np.sort(np.concatenate([np.setdiff1d(known, test), unknown]))
            seed = replace(trial, fold=n).seed("model")
            for c, each in enumerate(candidates):
                machine = S3VMClassifier(**each, positive_share=0.5, random_state=seed)
                errors[c] += 1 - machine.fit(fold.X[rows], fold.y[rows]).score(
                    fold.X[test], fold.y[test]
                )
        best = candidates[int(errors.argmin())]
        assert {key: outcome.values[f"best.{key}"] for key in grid} == best
        machine = S3VMClassifier(**best, positive_share=0.5, random_state=trial.seed("model"))
        score = machine.fit(fold.X, fold.y).score(fold.X_test, fold.y_test)
        assert outcome.values["error"] == pytest.approx(1 - score)
        later.append(best != candidates[0])
    assert any(later)


def test_a_search_needs_two_labels_of_every_class_and_one_in_every_fold():
    """More folds than rows of a class leave it out of the test of some, and never out of what is
    learned.
    """
    search = Search({"C1": [1.0, 2.0]}, folds=15)
    whole = few(
        signed(),
        model(kind="S3VMClassifier", where="centralised", positive_share=0.5),
        search=search,
    )
    check_comparison(whole)
    for trial in whole.trials():
        outer = whole.protocol.fold(trial)
        inner = [
            whole.protocol.fold(
                replace(
                    trial, comparison=replace(whole, folds=15, search=None), fold=k, within=trial
                )
            )
            for k in range(15)
        ]
        assert sum(len(fold.y_test) for fold in inner) == 20
        assert all(len(np.unique(fold.y[fold.y != -1])) == 2 and len(fold.y_test) for fold in inner)
        assert all(len(fold.y) + len(fold.y_test) == len(outer.y) for fold in inner)
    with pytest.raises(
        InputError,
        match=r"search.folds in the comparison is 21, but classes has 20 labelled rows: give",
    ):
        check_comparison(replace(whole, search=replace(search, folds=21)))
    rare = few(signed(), *whole.models, labelled=2, labels="per class", search=search)
    with pytest.raises(
        InputError,
        match=r"protocol.labelled in the comparison is 2 for classes, and a search needs two",
    ):
        check_comparison(rare)
    with pytest.raises(
        DataError,
        match="a class of classes has one labelled row, which a search cannot both learn and",
    ):
        ran(rare)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"tuned": {"clases": {"S": {"C1": 2.0}}}},
            "protocol.tuned.clases .* is about no data set: did you mean clas",
        ),
        (
            {"tuned": {"classes": {"T": {"C1": 2.0}}}},
            "protocol.tuned.classes.T .* is about no model: there are S",
        ),
        (
            {"classes": {"clases": [-1, 1]}},
            "protocol.classes.clases .* is about no data set: did you mean classes",
        ),
        (
            {"tested": {"clases": 3}},
            "protocol.tested.clases in the comparison is about no data set",
        ),
        (
            {"labelled": 300},
            (
                "protocol in the comparison cannot be used: data set classes has 90 rows, and "
                "the protocol"
            ),
        ),
    ],
)
def test_names_and_numbers_of_the_protocol(changed, said):
    whole = few(signed(), model("S", "S3VMClassifier"), **changed)
    with pytest.raises(InputError, match=said):
        check_comparison(whole)


@pytest.mark.parametrize(
    ("grid", "tuned"),
    [("C1", "C1"), ("solver.max_iterations", "solver"), ("solver", "solver.max_iterations")],
)
def test_what_is_tuned_is_not_searched(grid, tuned):
    values = {
        "C1": 3.0,
        "solver": {"name": "next", "max_iterations": 20},
        "solver.max_iterations": 20,
    }
    search = Search({grid: [2.0] if grid == "C1" else ["next"] if grid == "solver" else [1, 60]})
    whole = few(
        signed(), model("S", "S3VMClassifier", solver={"name": "next"}), labelled=20, search=search
    )
    protocol = replace(whole.protocol, tuned={"classes": {"S": {tuned: values[tuned]}}})
    said = (
        rf"search.grid.{grid} in the comparison and protocol.tuned.classes.S.{tuned} are about "
        r"the same"
    )
    with pytest.raises(InputError, match=said):
        check_comparison(replace(whole, protocol=protocol))
    check_comparison(
        replace(whole, protocol=replace(whole.protocol, tuned={"classes": {"S": {"s": 4.0}}}))
    )


def test_rows_that_are_kept_leave_numpys_generator_as_rows_made_anew_do():
    shaken = {"prepare": ({"kind": "tests.support.lab_given.Shaken"},)}
    rivals = [
        model(name, "tests.support.lab_given.Guess", "centralised") for name in ("first", "second")
    ]
    rows = [
        attempt(trial) for trial in few(signed(), *rivals, data=shaken).trials() if trial.fold == 0
    ]
    assert [row["status"] for row in rows] == ["done", "done"]
    assert rows[0]["error"] == rows[1]["error"]


def test_a_table_with_names_for_classes():
    table = signed()
    named = DataSet(
        "classes", table.X, np.where(table.y > 0, "yes", "no"), "classification", "made", None
    )
    one, other = (
        [
            outcome.values["error"]
            for _, outcome in ran(few(each, model(kind="S3VMClassifier", positive_share=0.5)))
        ]
        for each in (table, named)
    )
    assert one == other
