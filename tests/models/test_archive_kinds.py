"""Saved models that learned from few labels: the same predictions to the last bit, and nothing
taken on trust.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from peerlearn import AnchorLapClassifier, RVFLClassifier, SimulatedNetwork, graphs
from peerlearn.algorithms.smooth import NEXT
from peerlearn.cli.predictions import predict
from peerlearn.errors import DataError, InputError
from peerlearn.models import archive
from peerlearn.models.lapkrr import LapKRRClassifier
from peerlearn.models.s3vm import S3VMClassifier
from tests.support.archives import arrays_in, changed, tampered, usable_or_refused

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4)) + np.repeat([[2.0], [-2.0]], 30, axis=0)
NEW = 2 * RNG.standard_normal((33, 4))
HALVES, THIRDS = np.repeat([0, 1], 30), np.repeat([0, 1, 2], 20)
HIDDEN = np.arange(60) % 3 > 0
MODELS = {
    "S3VMClassifier": S3VMClassifier(random_state=0),
    "AnchorLapClassifier": AnchorLapClassifier(random_state=0),
}
LABELS = {
    "whole": np.where(HIDDEN, -1, HALVES),
    "real": np.where(HIDDEN, -1.0, 3.0 * HALVES),
    "text": np.where(HIDDEN, "-1", np.array(["low", "höher"])[HALVES]),
    "objects": np.where(HIDDEN, -1, np.array(["low", "high"], dtype=object)[HALVES]),
    "truths": HALVES > 0,
}


def fitted(kind, y="whole", **options):
    return clone(MODELS[kind]).set_params(**options).fit(X, LABELS[y])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A good archive of each kind; tests must not change them."""
    folder = tmp_path_factory.mktemp("models")
    for kind in MODELS:
        archive.save(
            fitted(kind),
            folder / f"{kind}.npz",
            columns=list("abcd"),
            center=np.ones(4),
            scale=np.full(4, 2.0),
        )
    return folder


@pytest.fixture(params=list(MODELS), scope="module")
def file(request, files):
    return files / f"{request.param}.npz"


def again(model, folder):
    archive.save(model, folder / "m.npz")
    return archive.load(folder / "m.npz").model


def must_be_the_same(loaded, model):
    assert type(loaded) is type(model)
    assert loaded.classes_.dtype == model.classes_.dtype
    for rows in (NEW, NEW[:1], X):
        assert np.array_equal(loaded.predict(rows), model.predict(rows))
        assert np.array_equal(loaded.decision_function(rows), model.decision_function(rows))


@pytest.mark.parametrize("kind", list(MODELS))
@pytest.mark.parametrize("y", list(LABELS))
def test_the_same_predictions_to_the_last_bit(tmp_path, kind, y):
    model = fitted(kind, y)
    loaded = again(model, tmp_path)
    must_be_the_same(loaded, model)
    assert np.array_equal(
        loaded.agent_scores(X[~HIDDEN], LABELS[y][~HIDDEN]),
        model.agent_scores(X[~HIDDEN], LABELS[y][~HIDDEN]),
    )


@pytest.mark.parametrize(
    ("classes", "options"), [(3, {}), (3, {"n_anchors": 7, "rank": 1}), (2, {"width": 3})]
)
def test_anchors_of_many_classes_and_sizes(tmp_path, classes, options):
    y = np.where(HIDDEN, -1, THIRDS if classes == 3 else HALVES)
    model = AnchorLapClassifier(random_state=0, **options).fit(X, y)
    loaded = again(model, tmp_path)
    must_be_the_same(loaded, model)
    assert np.array_equal(loaded.anchors_, model.anchors_)
    assert loaded._graph.nearest == model._graph.nearest


def test_s3vm_of_three_classes(tmp_path):
    model = S3VMClassifier(random_state=0).fit(X, np.where(HIDDEN, -1, THIRDS))
    loaded = again(model, tmp_path)
    must_be_the_same(loaded, model)
    assert loaded.coefficients_.shape == (1, 3, X.shape[1])
    assert loaded.positive_share_ is None
    path = changed(tmp_path / "m.npz", tmp_path / "other.npz", about={"outputs": 2})
    with pytest.raises(DataError, match=r"coefficients has shape \(3, 4\), which is not \(2, 4\)"):
        archive.load(path)


def test_rows_with_many_zeros(tmp_path):
    model = S3VMClassifier(random_state=0).fit(sparse.csr_array(X), LABELS["whole"])
    loaded = again(model, tmp_path)
    must_be_the_same(loaded, model)
    assert np.array_equal(loaded.predict(sparse.csr_array(NEW)), model.predict(NEW))
    assert loaded.positive_share_ == model.positive_share_


@pytest.mark.parametrize("kind", list(MODELS))
def test_of_many_agents_the_first_is_saved(tmp_path, kind):
    model = fitted(kind, network=SimulatedNetwork(graphs.ring(4)))
    archive.save(model, tmp_path / "m.npz")
    saved = archive.load(tmp_path / "m.npz")
    assert np.array_equal(saved.model.coefficients_, model.coefficients_[:1])
    assert np.array_equal(saved.predict(NEW), model.predict(NEW))
    assert saved.about["report"]["sent"]["rounds"] == model.report_.sent.rounds


def test_parameters_that_are_plain_come_back_and_others_do_not(tmp_path):
    network = SimulatedNetwork(graphs.ring(3))
    loaded = again(
        fitted(
            "S3VMClassifier", C1=np.float64(2.0), s=3, solver=NEXT(tolerance=1e-3), network=network
        ),
        tmp_path,
    )
    assert (loaded.C1, loaded.s, loaded.positive_share, loaded.solver, loaded.network) == (
        2.0,
        3,
        None,
        "lbfgs",
        None,
    )
    loaded = again(
        fitted("AnchorLapClassifier", n_anchors=5, gamma_A=0.5, network=network), tmp_path
    )
    assert (loaded.n_anchors, loaded.gamma_A, loaded.gamma_I, loaded.network) == (
        5,
        0.5,
        None,
        None,
    )
    assert loaded.fit(X, LABELS["whole"]).score(X, HALVES) > 0.9


def test_a_loaded_model_can_be_saved_again(file, tmp_path):
    saved = archive.load(file)
    must_be_the_same(again(saved.model, tmp_path), saved.model)
    assert np.array_equal(saved.predict(NEW), saved.model.predict((NEW - 1) / 2))
    assert np.array_equal(saved.predict(sparse.csr_array(NEW)), saved.predict(NEW))


def test_what_nobody_can_use_alone_is_not_saved(tmp_path):
    with pytest.raises(
        InputError, match="a LapKRRClassifier cannot be saved: give a fitted AnchorLapClassifier, "
    ):
        archive.save(LapKRRClassifier(random_state=0), tmp_path / "m.npz")


OF_S3VM = [
    (
        {"drop": ["mean"]},
        "it has no array 'mean', only about, center, classes, coefficients, intercept, scale",
    ),
    ({"drop": ["intercept"]}, "it has no array 'intercept'"),
    ({"drop": ["coefficients"]}, "it has no array 'coefficients'"),
    ({"coefficients": np.zeros(3)}, r"coefficients has shape \(3,\), which is not \(4\)"),
    ({"coefficients": np.zeros((4, 1))}, r"coefficients has shape \(4, 1\), which is not \(4\)"),
    ({"coefficients": np.full(4, np.nan)}, "coefficients has NaN or infinite values"),
    (
        {"coefficients": np.full(4, -1e200)},
        r"coefficients has values up to 1\.0e\+200, where no training goes beyond",
    ),
    ({"mean": np.zeros(5)}, r"mean has shape \(5,\), which is not \(4\)"),
    ({"mean": np.zeros(4, dtype=int)}, "mean has type int64, which is not float64"),
    ({"mean": np.full(4, 1e300)}, r"mean has values up to 1\.0e\+300"),
    ({"intercept": np.zeros(1)}, r"intercept has shape \(1,\), which is not \(\)"),
    ({"intercept": np.array(np.inf)}, "intercept has NaN or infinite values"),
    ({"classes": np.array([0, 1, 2])}, "it has 3 classes, but coefficients for 1 outputs"),
    ({"classes": np.array([1, 0])}, "classes are not different labels in ascending order"),
    ({"classes": np.array([-1, 1])}, "-1 is among its classes, which marks rows without a label"),
    (
        {"about": {"positive_share": 1.0}},
        r"its positive_share is 1\.0, which is not between 0 and 1",
    ),
    (
        {"about": {"positive_share": np.nan}},
        "its positive_share is nan, which is not between 0 and 1",
    ),
    ({"about": {"positive_share": "half"}}, "its positive_share is 'half', which is no float"),
    ({"about": {"n_features": 5}}, r"coefficients has shape \(4,\), which is not \(5\)"),
    ({"about": {"parameters": {"C3": 1}}}, "it has the parameter 'C3' with the value 1"),
    ({"about": {"class": "AnchorLapClassifier", "parameters": {}}}, "it has no array 'anchors'"),
]
OF_ANCHORS = [
    ({"drop": ["anchors"]}, "it has no array 'anchors'"),
    ({"drop": ["projection"]}, "it has no array 'projection'"),
    ({"anchors": np.zeros((15, 3))}, r"anchors has shape \(15, 3\), which is not \(any, 4\)"),
    ({"anchors": np.zeros((0, 4))}, r"anchors has shape \(0, 4\), which is not \(any, 4\)"),
    ({"anchors": np.zeros((2, 4))}, r"projection has shape \(\d+, \d+\), which is not \(2, any\)"),
    ({"anchors": np.full((15, 4), np.nan)}, "anchors has NaN or infinite values"),
    ({"anchors": np.full((15, 4), 1e200)}, r"anchors has values up to 1\.0e\+200"),
    ({"projection": np.zeros((2, 2))}, r"projection has shape \(2, 2\), which is not \(\d+, any\)"),
    (
        {"coefficients": np.zeros((1, 1))},
        r"coefficients has shape \(1, 1\), which is not \(\d+, any\)",
    ),
    ({"classes": np.array([0, 1, 2])}, "it has 3 classes, but coefficients for 1 outputs"),
    (
        {"classes": np.array(["-1", "a"])},
        "-1 is among its classes, which marks rows without a label",
    ),
    ({"about": {"width": 0.0}}, r"its width is 0\.0, which is not between 1e-100 and 1e\+100"),
    ({"about": {"width": -1.0}}, r"its width is -1\.0, which is not between"),
    ({"about": {"width": np.inf}}, "its width is inf, which is not between"),
    ({"about": {"width": None}}, "its width is None, which is no float"),
    ({"about": {"nearest": 0}}, r"its nearest is 0, which is not between 1 and its \d+ anchors"),
    ({"about": {"nearest": 10**400}}, "its nearest is 1000.*, which is not between 1 and its"),
    ({"about": {"nearest": 1.5}}, r"its nearest is 1\.5, which is no int"),
    (
        {"about": {"class": "S3VMClassifier", "parameters": {}}},
        r"coefficients has shape \(\d+, 1\), which is not \(4\)",
    ),
    ({"about": {"class": "RVFLClassifier", "parameters": {}}}, "it has no array 'b'"),
]


@pytest.mark.parametrize(
    ("kind", "change", "sentence"),
    [("S3VMClassifier", *case) for case in OF_S3VM]
    + [("AnchorLapClassifier", *case) for case in OF_ANCHORS],
)
def test_archives_whose_parts_do_not_fit(files, tmp_path, kind, change, sentence):
    path = changed(files / f"{kind}.npz", tmp_path / "m.npz", **change)
    with pytest.raises(
        DataError,
        match=rf"m\.npz holds no model that can be used, because .*{sentence}.*: copy it again",
    ):
        archive.load(path)


@settings(deadline=None)
@given(data=st.data())
def test_other_arrays_and_entries_are_refused_or_usable(file, data):
    usable_or_refused(tampered(file, data))


def test_machines_of_another_byte_order(file, tmp_path):
    other = {k: v.astype(">f8") for k, v in arrays_in(file).items() if v.dtype == "f8"}
    path = changed(file, tmp_path / "m.npz", **other)
    assert np.array_equal(archive.load(path).predict(NEW), archive.load(file).predict(NEW))


def test_files_of_before_there_were_other_kinds_are_read(tmp_path):
    model = RVFLClassifier(
        5, fit_intercept=False, random_state=0, alpha=1.0, activation="sigmoid"
    ).fit(X, HALVES)
    about = {
        "version": 1,
        "class": "RVFLClassifier",
        "parameters": {"n_hidden": 5, "alpha": 1.0, "solver": "auto", "random_state": 0},
        "solver": "'auto'",
        "n_features": 4,
        "activation": "sigmoid",
        "direct_links": False,
        "single_output": False,
        "columns": [],
        "target": None,
        "report": {},
    }
    arrays = {
        "W": model.features_.W,
        "b": model.features_.b,
        "coefficients": model.coefficients_[0],
    }
    np.savez(
        tmp_path / "old.npz", **arrays, classes=model.classes_, about=np.array(json.dumps(about))
    )
    must_be_the_same(archive.load(tmp_path / "old.npz").model, model)
    archive.save(model, tmp_path / "new.npz")
    assert {*arrays, "classes", "about"} == set(arrays_in(tmp_path / "new.npz"))


@pytest.mark.parametrize(
    ("cells", "score"),
    [
        ("01234", None),
        (["-1", "", "0", "nan", "-1"], "accuracy 1.0000 on 1 rows"),
        ([""] * 5, "no score: column 'grade' has no label in any row"),
        (
            ["low", "", "high", "-1", "low"],
            "no score: column 'grade' has text of shape (3,), where the model predicts",
        ),
    ],
)
def test_rows_without_a_label_do_not_count_in_the_score(tmp_path, cells, score):
    model = fitted("S3VMClassifier")
    archive.save(model, tmp_path / "m.npz", columns=list("abcd"), target="grade")
    lines = [",".join([*map(str, row), cell]) for row, cell in zip(X, cells, strict=False)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,c,d,grade", *lines]))
    found = predict(tmp_path / "m.npz", tmp_path / "rows.csv")
    assert found.rows == 5
    assert found.text.splitlines() == ["grade", *map(str, model.predict(X[:5]).tolist())]
    assert (found.score or "").startswith(score or "accuracy 0.2")
