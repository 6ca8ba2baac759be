"""Comparisons made in Python are held to the rules of files; sentences then name the object."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC

from peerlearn import RVFLClassifier, SimulatedNetwork, data, graphs
from peerlearn.errors import InputError
from peerlearn.lab import (
    Comparison,
    Data,
    Expectation,
    FigureSpec,
    Layout,
    Model,
    Net,
    Search,
    StatisticsSpec,
    TableSpec,
    protocol_named,
    run,
)
from peerlearn.lab.checking.comparison import check_comparison
from peerlearn.lab.protocols.columns import Columns
from peerlearn.lab.protocols.signals import Signals
from peerlearn.lab.report.defaults import tables_to_show

G50C = (Data("g50c"),)
RIVAL = (Model("SVC", estimator=SVC(), where="centralised"),)
RING = (Net("ring", fixed=graphs.ring(5)),)


def test_plain_objects_will_do():
    given = Data("mine", given=data.load("iris"))
    ours = Model(
        "ours",
        estimator=RVFLClassifier(
            20, network=SimulatedNetwork(graphs.ring(3)), alpha=1.0, activation="sigmoid"
        ),
    )
    comparison = Comparison((given,), (*RIVAL, ours), RING, folds=2)
    assert check_comparison(comparison) == comparison


def test_swept_entries_share_a_name():
    models = tuple(
        Model("m", "RVFL", "centralised", {"alpha": a}, swept={"alpha": a}) for a in (1.0, 2.0)
    )
    assert len(list(check_comparison(Comparison(G50C, models)).trials())) == 2
    with pytest.raises(
        InputError, match=r"^models\['m'\].name in the comparison stands twice: give each"
    ):
        check_comparison(Comparison(G50C, (models[0], models[0])))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"data": ()},
            "data in the comparison is empty, which leaves nothing to run: give one Data or more",
        ),
        ({"data": Data("g50c")}, "data in the comparison is Data(name='g50c'"),
        ({"models": (SVC(),)}, "models in the comparison is (SVC(),): give a list of Model"),
        ({"folds": True}, "folds in the comparison is True: give a whole number of 1 or more"),
        (
            {"repetitions": 0},
            "repetitions in the comparison is 0: give a whole number of 1 or more",
        ),
        (
            {"seed": 2**40},
            "seed in the comparison is 1099511627776: give a whole number from 0 to 4294967295",
        ),
        (
            {"test_fraction": 0},
            "test_fraction in the comparison is 0: give a number between 0 and 1",
        ),
        (
            {"metrics": ("eror",)},
            "metrics in the comparison has 'eror', which is not known: did you mean error?",
        ),
        (
            {"models": (Model("m", where="centralised"),)},
            (
                "models['m'].kind in the comparison is missing: give kind='RVFL' or another "
                "model of peerlearn, kind="
            ),
        ),
        (
            {"models": (Model("m", estimator=SVC, where="centralised"),)},
            "models['m'].estimator in the comparison is the class SVC: give an object, SVC()",
        ),
        (
            {"models": (Model("m", estimator=SVC(), where="centralised", settings={"D": 1}),)},
            "models['m'].D in the comparison is no parameter of SVC: there are C, break_ties",
        ),
        (
            {"models": (Model("m", estimator=SVC(C=-1), where="centralised"),)},
            "models['m'] in the comparison cannot be used: The 'C' parameter of SVC must be",
        ),
        (
            {
                "models": (
                    Model("m", estimator=RVFLClassifier(0, alpha=1.0, activation="sigmoid")),
                ),
                "networks": RING,
            },
            "models['m'] in the comparison cannot be used: n_hidden == 0, must be >= 1",
        ),
        (
            {"models": (Model("m", estimator=RVFLClassifier(alpha=1.0, activation="sigmoid")),)},
            (
                "networks in the comparison is missing, but models['m'] is trained by agents: "
                "give [[networks]]"
            ),
        ),
        (
            {"networks": (Net("two", fixed=graphs.nx.Graph([(0, 1), (2, 3)])),)},
            "networks['two'].graph in the comparison cannot be used: the graph is not connected",
        ),
        (
            {"networks": (Net("ring", fixed=graphs.ring(5), weights="metro"),)},
            (
                "networks['ring'].weights in the comparison is 'metro', which is not known: "
                "did you mean metropolis?"
            ),
        ),
        (
            {"search": Search({"C": [1.0]}, model="SVM")},
            (
                "search.model in the comparison is 'SVM', which is no name in [[models]]: did "
                "you mean SVC?"
            ),
        ),
        (
            {"models": (Model("m", "sklearn.svm.SVC", swept={"seed": 1}),)},
            "models['m'].seed in the comparison is a list, but results have a column seed already",
        ),
        (
            {"models": (Model("m", "sklearn.svm.SVC", swept={"distance": 1}),)},
            "models['m'].distance in the comparison is a list, but results have a column distance",
        ),
        (
            {"models": (Model("m"),)},
            (
                "models['m'].kind in the comparison is missing: give kind='RVFL' or another "
                "model of peerlearn, kind="
            ),
        ),
        (
            {"networks": (Net("r", "ring", agents=[4, 5]),)},
            "networks['r'].agents in the comparison is [4, 5]: give one Net per "
            "value, all of the same name, each with "
            "swept={'agents': 4}",
        ),
        (
            {"networks": (Net("r", "ring", agents="5"),)},
            "networks['r'].agents in the comparison is '5': give a whole number of 1 or more",
        ),
        (
            {"networks": (Net(3, "ring", agents=5),)},
            "networks[3].name in the comparison is 3: give a text in quotes",
        ),
        (
            {"layout": Layout(figures=(FigureSpec("f", "zzz", "error"),))},
            (
                "figures['f'].kind in the comparison is 'zzz', which is not known: there are "
                "bars, boxes, curves, lines"
            ),
        ),
        (
            {"layout": Layout(figures=(TableSpec("t", "error"),))},
            "layout.figures in the comparison is (TableSpec(",
        ),
        (
            {"layout": Layout(statistics=(StatisticsSpec("error", tests="friedman"),))},
            (
                "statistics[1].tests in the comparison is 'friedman': give a list of which "
                "each is a text in quotes"
            ),
        ),
        (
            {
                "layout": Layout(
                    expectations=(Expectation("error", {}, "table 1", 1.0, relation="under"),)
                )
            },
            (
                "expect['table 1'].relation in the comparison is 'under': give one of below, "
                "above, equal"
            ),
        ),
        (
            {"repetitions": 100_001},
            (
                "the comparison makes 100,001 runs, and 100,000 are the most: give shorter "
                "lists, or fewer folds or rep"
            ),
        ),
        (
            {"layout": Layout(tables=(TableSpec("t", "errors"),))},
            (
                "tables['t'].metric in the comparison is 'errors', which is not known: did you "
                "mean error?"
            ),
        ),
    ],
)
def test_mistakes_name_the_object(given, said):
    with pytest.raises(InputError) as refused:
        check_comparison(Comparison(**{"data": G50C, "models": RIVAL, **given}))
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("rows", "given", "said"),
    [
        (
            10,
            {"folds": 11},
            "folds in the comparison is 11, but mine has 10 rows: give fewer folds",
        ),
        (
            3,
            {"test_fraction": 0.9},
            "test_fraction in the comparison is 0.9, which leaves 0 of the 3 rows of mine",
        ),
        (
            10,
            {"folds": 5, "networks": (Net("ring", "ring", 9),)},
            (
                "networks['ring'].agents in the comparison is 9, but mine has 8 rows to train "
                "on: give fewer agents"
            ),
        ),
        (
            10,
            {"folds": 5, "search": Search({"C": [1.0]}, folds=9)},
            "search.folds in the comparison is 9, but mine has",
        ),
    ],
)
def test_enough_rows_for_folds_and_agents(rows, given, said):
    table = data.load("diabetes")
    few = data.DataSet("few", table.X[:rows], table.y[:rows], "regression", "made up", None)
    with pytest.raises(InputError) as refused:
        check_comparison(Comparison((Data("mine", given=few),), RIVAL, **given))
    assert str(refused.value).startswith(said)


def test_classes_with_one_row():
    table = data.load("iris")
    lonely = data.DataSet("few", table.X[:51], table.y[:51], "classification", "made up", None)
    with pytest.raises(
        InputError,
        match=r"^data\['mine'\] in the comparison has a class with one row, which cannot",
    ):
        check_comparison(Comparison((Data("mine", given=lonely),), RIVAL))


@pytest.mark.parametrize(
    ("folds", "said"),
    [
        (
            1,
            (
                "data['mine'] in the comparison has a class with one row, which cannot be both "
                "trained and tested on: "
            ),
        ),
        (2, "folds in the comparison is 2, but mine has a class with one row: give fewer folds"),
    ],
)
def test_whole_numbers_that_may_be_amounts(folds, said):
    X, way_out = (
        data.load("iris").X[:60],
        "; or, if its 30 classes are amounts, give it task = 'regression'",
    )
    amounts = [*np.arange(29).repeat(2).tolist(), 28, 99]

    def refused(y):
        with pytest.raises(InputError) as error:
            check_comparison(Comparison((Data("mine", given=(X, y)),), RIVAL, folds=folds))
        return str(error.value)

    assert refused(amounts).startswith(said)
    assert refused(amounts).endswith(way_out)
    assert "regression" not in refused([f"class {each}" for each in amounts])
    assert "regression" not in refused([0] * 59 + [1])
    forest = (Model("m", "sklearn.linear_model.Ridge"),)
    check_comparison(
        Comparison((Data("mine", given=(X, amounts), task="regression"),), forest, folds=folds)
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("my.toml", "a comparison is needed, and 'my.toml' is a text: give read('my.toml')"),
        (
            {"data": "iris"},
            (
                "a comparison is needed, and this is a dict: give Comparison(data=..., "
                "models=...) of peer"
            ),
        ),
    ],
)
def test_what_is_no_comparison(given, said, tmp_path):
    with pytest.raises(InputError) as refused:
        run(given, tmp_path)
    assert str(refused.value).startswith(said)


def test_very_many_runs_are_said_before_they_are_checked(caplog):
    check_comparison(Comparison(G50C, RIVAL, repetitions=5_001))
    assert caplog.messages == [
        "the comparison makes 5,001 runs, and it takes a while to check them"
    ]


def test_runs_are_counted_without_making_them():
    models = (*RIVAL, Model("m", "RVFL"), Model("n", "RVFL", "alone"))
    whole = Comparison(
        (*G50C, Data("iris")), models, (*RING, Net("r", "ring", 3)), folds=3, repetitions=2
    )
    assert whole.runs == len(list(whole.trials())) == 2 * 3 * 2 * 5


def test_a_model_that_cannot_do_a_task_is_no_mistake():
    comparison = Comparison((Data("diabetes"), *G50C), RIVAL, folds=2)
    assert [bool(comparison.protocol.refuses(entry, RIVAL[0])) for entry in comparison.data] == [
        True,
        False,
    ]
    check_comparison(comparison)


def test_settings_that_only_go_together_may_come_from_both():
    entry = Data("signals", source="wiener", options={"samples": 9000}, settings={"update": "rls"})
    model = Model("m", "LMSFilter", settings={"forgetting": 0.9})
    comparison = Comparison((entry,), (model,), RING, protocol=Signals())
    assert not comparison.protocol.refuses(entry, model)
    assert check_comparison(comparison) == comparison
    with pytest.raises(
        InputError, match=r"^models\['m'\] in the comparison cannot be used: update='lms' has no"
    ):
        check_comparison(replace(comparison, data=(replace(entry, settings={}),)))


def test_settings_of_what_is_not_run_are_not_looked_at():
    model = Model("m", "LMSFilter", settings={"forgetting": 0.9})
    comparison = Comparison(G50C, (model,), RING)
    assert comparison.protocol.refuses(G50C[0], model)
    assert check_comparison(comparison) == comparison


def test_settings_are_seen_over_the_network_that_they_are_for():
    model = Model("m", "VerticalRVFL", settings={"n_hidden": [3, 4]})
    pair = (Net("pair", "ring", 2),)
    assert check_comparison(Comparison(G50C, (model,), pair, protocol=Columns()))
    with pytest.raises(
        InputError, match=r"^models\['m'\] in the comparison cannot be used: n_hidden has 2 "
    ):
        check_comparison(Comparison(G50C, (model,), (*pair, *RING), protocol=Columns()))


def test_nothing_is_run_or_written_of_what_cannot_be_run(tmp_path):
    with pytest.raises(InputError, match="folds in the comparison is 0"):
        run(Comparison(G50C, RIVAL, folds=0), tmp_path / "results")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["averaging", "convergence"])
def test_a_protocol_that_does_not_search(name):
    ours = Model("m", "RVFL", settings={"solver": "consensus"})
    whole = Comparison(
        G50C, (ours,), RING, protocol_named(name), search=Search({"alpha": [0.1, 1.0]})
    )
    with pytest.raises(
        InputError,
        match=f"^search in the comparison is not for the protocol {name}: leave it out, or",
    ):
        check_comparison(whole)


def test_a_setting_that_a_protocol_lacks():
    with pytest.raises(
        InputError, match=r"chunks is no setting of the protocol stream: did you mean chunk\?"
    ):
        protocol_named("stream", chunks=3)


def test_what_is_always_measured_may_be_asked_for(tmp_path):
    asked = ("error", "bytes", "seconds")
    whole = Comparison(
        (Data("iris"),), (Model("m", "RVFL", settings={"n_hidden": 5}),), RING, metrics=asked
    )
    results = run(whole, tmp_path, jobs=1)
    assert [spec.metric for spec in tables_to_show(results)] == list(asked)


def test_agents_need_sequences_too():
    data = Data("s", "narma10", {"sequences": 10, "length": 50})
    net, search = Net("ring", "ring", 5), Search({"alpha": [1.0]}, where="network", folds=2)
    whole = Comparison((data,), (Model("m", "ESN"),), (net,), protocol_named("sequences"), folds=2)
    check_comparison(whole)
    with pytest.raises(
        InputError,
        match="is 5, but s has 2 sequences to train on in a fold of the search: give fewer",
    ):
        check_comparison(replace(whole, search=search))
    with pytest.raises(
        InputError, match="is 6, but s has 5 sequences to train on: give fewer agents"
    ):
        check_comparison(replace(whole, networks=(replace(net, agents=6),)))


def test_agents_need_rows_in_every_fold_of_a_search_over_the_network():
    search = Search({"alpha": [1.0]}, where="network", folds=2)
    for agents in (206, 207):  # half of 412 training rows
        whole = Comparison(
            G50C, (Model("m", "RVFL"),), (Net("ring", "ring", agents),), search=search
        )
        if agents == 206:
            check_comparison(whole)
        else:
            with pytest.raises(
                InputError,
                match="is 207, but g50c has 206 rows to train on in a fold of the search",
            ):
                check_comparison(whole)
