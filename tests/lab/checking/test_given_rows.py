"""Rows, estimators and graphs of one's own, as objects or as files beside the comparison."""

from __future__ import annotations

import re

import networkx as nx
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from peerlearn import RVFLClassifier, graphs
from peerlearn.data import DataSet
from peerlearn.errors import InputError
from peerlearn.lab import Comparison, Data, Model, Net, Search, read
from peerlearn.lab.checking.comparison import check_comparison
from peerlearn.lab.runs.attempt import attempt
from tests.support.lab_given import Column, Guess, classes, numbers

TABLE = classes()
RIVAL = Model("SVC", estimator=SVC())


def given(X, y, task="classification", **more):
    rows = DataSet("mine", X, y, task, "made", None)
    return check_comparison(Comparison((Data("mine", given=rows, **more),), (RIVAL,), folds=2))


class Frame:
    """What pandas gives: it becomes an array when asked."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)


def test_rows_in_other_forms_are_the_same_rows():
    X, y = TABLE.X, TABLE.y
    expected = given(X, y)
    assert expected.data[0].given.X is X
    keys = {next(expected.trials()).key}
    for other in (
        given(Frame(X), y),
        given(X, list(y)),
        given(X, y[:, None]),
        given(X.tolist(), y.astype(np.int8)),
    ):
        keys |= {next(other.trials()).key}
    pair = check_comparison(Comparison((Data("mine", given=(X, y)),), (RIVAL,), folds=2))
    assert len(keys | {next(pair.trials()).key}) == 1
    texts = given(X, np.array(["abc"[k] for k in y], dtype=object)).data[0].given.y
    assert texts.dtype.kind == "U"


def test_the_task_can_be_said():
    whole = TABLE.y.astype(float)
    pair = Comparison(
        (Data("mine", given=(TABLE.X, whole), task="classification"),), (RIVAL,), folds=2
    )
    assert check_comparison(pair).data[0].given.y.dtype == np.int64
    assert (
        given(TABLE.X, TABLE.y, task="classification", scale="unit").data[0].given.task
        == "classification"
    )


@pytest.mark.parametrize(
    ("X", "y", "task", "said"),
    [
        (
            np.where(TABLE.X > 2, np.nan, TABLE.X),
            TABLE.y,
            "classification",
            "X has missing or infinite values",
        ),
        (
            TABLE.X,
            TABLE.y[:9],
            "classification",
            r"X has 120 rows, and y has shape \(9,\): give one target per row",
        ),
        (TABLE.X[:, 0], TABLE.y, "classification", r"X has shape \(120,\): give rows by columns"),
        (TABLE.X, TABLE.y, "classify", "its task is 'classify': give classification or regression"),
        (
            TABLE.X,
            TABLE.X[:, 0],
            "classification",
            "y is measured, and classes are whole numbers or texts",
        ),
        (
            TABLE.X,
            TABLE.y.astype(str),
            "regression",
            "y has type <U21, and regression needs numbers",
        ),
        ([["a"]] * 120, TABLE.y, "classification", "X is not all numbers"),
        (TABLE.X, np.array([None] * 120), "classification", "y has missing values"),
    ],
)
def test_rows_that_cannot_be_used(X, y, task, said):
    with pytest.raises(
        InputError, match=rf"data\['mine'\].given in the comparison cannot be used: {said}"
    ):
        given(X, y, task)


def test_one_class_is_not_enough():
    with pytest.raises(InputError, match="has one class only: give rows of two classes at least"):
        given(TABLE.X, np.zeros(120, int))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"protocol": "rows"},
            r"protocol in the comparison is 'rows': give protocol_named\('rows'\)",
        ),
        ({"search": {"C": [1]}}, "search in the comparison is"),
        ({"layout": None}, "layout in the comparison is None: give Layout"),
        ({"metrics": "error"}, "metrics in the comparison is 'error': give a list of names"),
        (
            {"data": (Data("g50c", scale="std"),)},
            r"data\['g50c'\].scale in the comparison is 'std'",
        ),
        ({"data": (Data("g50c", given=3),)}, "it is a int: give a DataSet, or a pair"),
        (
            {"data": (Data("g50c", task="both"),)},
            "task is 'both': give classification or regression",
        ),
        (
            {"models": (Model("m", "RVFL", estimator=SVC()),)},
            "beside an estimator that is given: leave out one",
        ),
        (
            {"models": (Model("m", estimator=SVC(), where="central"),)},
            "where in the comparison is 'central'",
        ),
        (
            {"models": (Model("m", "RVFL"),), "networks": (Net("g", graphs.ring(4)),)},
            r"given as Net\(name, fixed=graph",
        ),
        (
            {"models": (Model("m", "tests.support.lab_given.Broken"),)},
            r"Broken cannot be made \(KeyError: 1\)",
        ),
    ],
)
def test_objects_of_the_wrong_kind(more, said):
    with pytest.raises(InputError, match=said):
        check_comparison(Comparison(**{"data": (Data("g50c"),), "models": (RIVAL,), **more}))


def test_numbers_of_numpy_will_do():
    whole = check_comparison(
        Comparison((Data("g50c"),), (RIVAL,), seed=np.int64(3), folds=np.int32(2))
    )
    assert [next(whole.trials()).key, type(whole.folds)] == [
        next(Comparison((Data("g50c"),), (RIVAL,), seed=3, folds=2).trials()).key,
        int,
    ]


def test_rivals_are_centralised_unless_told_otherwise():
    assert [Model("m", estimator=SVC()).where, Model("m", "sklearn.svm.SVC").where] == [
        "centralised"
    ] * 2
    assert [
        Model("m", estimator=RVFLClassifier(alpha=1.0, activation="sigmoid")).where,
        Model("m", "RVFL").where,
    ] == ["network"] * 2


def test_an_estimator_of_ones_own_needs_no_constraints():
    whole = check_comparison(
        Comparison((Data("mine", given=TABLE),), (Model("m", estimator=Guess()),))
    )
    assert attempt(next(whole.trials()))["status"] == "done"


def test_predictions_as_a_table_of_one_column():
    rows = numbers()
    models = (Model("one", estimator=Column()), Model("two", estimator=Column(2)))
    one, two = (
        attempt(trial)
        for trial in check_comparison(Comparison((Data("n", given=rows),), models)).trials()
    )
    assert one["nrmse"] == pytest.approx(
        1.0, abs=0.1
    )  # of a constant, and not of every row with every other
    assert two["failure"].startswith(
        "the predictions of two have shape (30, 2), but 30 test rows have targets of"
    )


def test_parameters_of_estimators_within():
    pipe = make_pipeline(StandardScaler(), SVC())
    data, settings = (Data("mine", given=TABLE),), {"svc__C": 3.0}
    whole = check_comparison(Comparison(data, (Model("p", estimator=pipe, settings=settings),)))
    assert attempt(next(whole.trials()))["status"] == "done"
    search = Search({"svc__gamma": [0.1, 1.0]}, folds=2)
    row = attempt(
        next(
            check_comparison(
                Comparison(data, (Model("p", estimator=pipe),), search=search)
            ).trials()
        )
    )
    assert row["best.svc__gamma"] in (0.1, 1.0)
    with pytest.raises(
        InputError, match=r"models\['p'\].svc__D in the comparison is no parameter of Pipeline"
    ):
        check_comparison(Comparison(data, (Model("p", estimator=pipe, settings={"svc__D": 1}),)))


FILE = """
title = "Mine"
folds = 2
[[data]]
name = "houses"
file = "houses.csv"
target = "price"
task = "classification"
[[models]]
name = "pipe"
kind = "sklearn.pipeline.Pipeline"
steps = [[
    ["scale", { kind = "sklearn.preprocessing.StandardScaler" }],
    ["svc", { kind = "sklearn.svm.SVC" }],
]]
svc__C = 2.0
[[models]]
name = "ours"
kind = "RVFL"
n_hidden = 5
[[networks]]
name = "cables"
file = "cables.graphml"
"""


@pytest.fixture
def folder(tmp_path):
    lines = "".join(f"{k % 7},{k % 5},{k % 2}.0\n" for k in range(60))
    (tmp_path / "houses.csv").write_text("rooms,floors,price\n" + lines)
    nx.write_graphml(nx.path_graph(3), tmp_path / "cables.graphml")
    (tmp_path / "mine.toml").write_text(FILE)
    return tmp_path


def test_files_beside_the_comparison(folder):
    whole = read(folder / "mine.toml")
    rows, net = whole.data[0].given, whole.networks[0]
    assert (rows.X.shape, rows.task, rows.y[:3].tolist()) == ((60, 2), "classification", [0, 1, 0])
    assert (net.agents, sorted(net.fixed.edges)) == (3, [(0, 1), (1, 2)])
    assert {attempt(trial)["status"] for trial in whole.trials()} == {"done"}


def test_the_same_rows_in_another_kind_of_file(folder):
    csv = read(folder / "mine.toml").data[0].given
    named = {"rooms": csv.X[:, 0], "floors": csv.X[:, 1], "price": csv.y}
    pyarrow.parquet.write_table(pyarrow.table(named), folder / "houses.parquet")
    np.savez(folder / "houses.npz", X=csv.X, y=csv.y)
    for file, target in {"houses.parquet": "price", "houses.npz": "y"}.items():
        text = FILE.replace("houses.csv", file).replace('target = "price"', f'target = "{target}"')
        (folder / "mine.toml").write_text(text)
        other = read(folder / "mine.toml").data[0].given
        assert np.array_equal(other.X, csv.X)
        assert np.array_equal(other.y, csv.y)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            '"houses.csv"',
            '"house.csv"',
            r"data\['houses'\].file in FILE cannot be used: there is no file",
        ),
        ('target = "price"', 'target = "prize"', "has no column 'prize', the nearest is 'price'"),
        (
            'target = "price"',
            "",
            r"data\['houses'\].target in FILE is missing: give the name of the column",
        ),
        (
            'target = "price"',
            'target = "price"\nsource = "iris"',
            "source in FILE stands beside a file",
        ),
        ('"classification"', '"classes"', "task in FILE is 'classes', which is not known"),
        (
            "cables.graphml",
            "cable.graphml",
            r"networks\['cables'\].file in FILE cannot be used: there is no graph file",
        ),
        (
            '"cables.graphml"',
            '"cables.graphml"\nagents = 3',
            r"networks\['cables'\].agents in FILE is not a key here",
        ),
        (
            "svc__C",
            "svm__C",
            r"models\['pipe'\].svm__C in FILE is no parameter of Pipeline: did you mean svc__C",
        ),
    ],
)
def test_files_that_cannot_be_used(old, new, said, folder):
    file = folder / "mine.toml"
    assert FILE.count(old) == 1
    file.write_text(FILE.replace(old, new))
    with pytest.raises(InputError) as refused:
        read(file)
    assert re.search(said, str(refused.value).replace(str(file), "FILE"))
