"""Saved models: the same predictions to the last bit, nothing unpickled, and nothing in a file
taken on trust.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from peerlearn import ADMM, RVFLClassifier, RVFLRegressor, SimulatedNetwork, graphs
from peerlearn.errors import DataError, InputError
from peerlearn.models import archive
from tests.support.archives import arrays_in, changed, tampered, usable_or_refused

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4))
NEW = RNG.standard_normal((33, 4))
THIRDS = np.digitize(X[:, 0], [-0.4, 0.4])
LABELS = {
    "whole": THIRDS,
    "two": np.where(X[:, 0] > 0, 7, -7),
    "real": THIRDS.astype(float),
    "truths": X[:, 0] > 0,
    "text": np.array(["low", "mid", "höher"])[THIRDS],
}


def classifier(y="whole", **options):
    return RVFLClassifier(
        20, **{"random_state": 0, "alpha": 1.0, "activation": "sigmoid", **options}
    ).fit(X, LABELS[y])


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A good archive; tests must not change it."""
    path = tmp_path_factory.mktemp("models") / "model.npz"
    archive.save(
        classifier(),
        path,
        columns=list("abcd"),
        center=np.ones(4),
        scale=np.full(4, 2.0),
        target="y",
    )
    return path


@pytest.mark.parametrize("y", list(LABELS))
def test_classifiers_predict_the_same_to_the_last_bit(tmp_path, y):
    model = classifier(y)
    archive.save(model, tmp_path / "m.npz")
    again = archive.load(tmp_path / "m.npz").model
    assert isinstance(again, RVFLClassifier)
    assert again.classes_.dtype == model.classes_.dtype
    assert np.array_equal(again.predict(NEW), model.predict(NEW))
    assert np.array_equal(again.decision_function(NEW), model.decision_function(NEW))
    assert again.score(X, LABELS[y]) == model.score(X, LABELS[y])
    assert np.array_equal(again.agent_scores(X, LABELS[y]), model.agent_scores(X, LABELS[y]))


@pytest.mark.parametrize("outputs", [(), (1,), (3,)])
@pytest.mark.parametrize("direct_links", [False, True])
@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
def test_regressors_predict_the_same_to_the_last_bit(tmp_path, outputs, direct_links, activation):
    y = np.sin(X @ np.ones((4, *outputs)))
    model = RVFLRegressor(
        20, activation=activation, direct_links=direct_links, random_state=0, alpha=1.0
    ).fit(X, y)
    archive.save(model, tmp_path / "m.npz")
    again = archive.load(tmp_path / "m.npz").model
    assert again.predict(NEW).shape == (33, *outputs)
    assert np.array_equal(again.predict(NEW), model.predict(NEW))


@pytest.mark.parametrize(
    "solver", ["auto", "local", "consensus", "gram", "cg", ADMM(tolerance=1e-2)]
)
def test_of_many_agents_the_first_is_saved(tmp_path, solver):
    model = classifier(solver=solver, network=SimulatedNetwork(graphs.ring(4)))
    archive.save(model, tmp_path / "m.npz")
    saved = archive.load(tmp_path / "m.npz")
    assert np.array_equal(saved.model.coefficients_, model.coefficients_[:1])
    assert np.array_equal(saved.model.decision_function(NEW), model.decision_function(NEW))
    assert saved.about["solver"] == repr(solver)
    assert saved.about["report"]["sent"]["rounds"] == model.report_.sent.rounds


def test_parameters_that_are_plain_come_back_and_others_do_not(tmp_path):
    network = SimulatedNetwork(graphs.ring(3))
    model = classifier(
        alpha=np.float64(0.5),
        solver=ADMM(tolerance=1e-2),
        network=network,
        random_state=np.int64(3),
    )
    archive.save(model, tmp_path / "m.npz")
    again = archive.load(tmp_path / "m.npz").model
    assert (again.n_hidden, again.alpha, again.random_state) == (20, 0.5, 3)
    assert (again.solver, again.network) == ("auto", None)
    assert again.fit(X, THIRDS).score(X, THIRDS) > 0.5


def test_a_loaded_model_can_be_saved_again(file, tmp_path):
    saved = archive.load(file)
    archive.save(
        saved.model, tmp_path / "m.npz", columns=saved.columns, report=saved.about["report"]
    )
    again = archive.load(tmp_path / "m.npz")
    assert np.array_equal(again.model.predict(NEW), saved.model.predict(NEW))
    assert again.about["report"] == saved.about["report"]
    archive.save(saved.model, tmp_path / "m.npz")
    assert archive.load(tmp_path / "m.npz").about["report"] == {}


def test_what_was_done_to_the_columns_is_done_to_new_rows(file):
    saved = archive.load(file)
    assert (saved.columns, saved.target) == (("a", "b", "c", "d"), "y")
    assert np.array_equal(saved.predict(NEW), saved.model.predict((NEW - 1) / 2))
    assert np.array_equal(saved.predict(NEW.tolist()), saved.predict(NEW))
    assert not np.array_equal(saved.predict(NEW), saved.model.predict(NEW))


@pytest.mark.parametrize(
    ("center", "scale"), [(None, None), (np.ones(4), None), (None, [1, 2, 3, 4])]
)
def test_center_and_scale_are_optional(tmp_path, center, scale):
    archive.save(classifier(), tmp_path / "m.npz", center=center, scale=scale)
    saved = archive.load(tmp_path / "m.npz")
    expected = (NEW - (0 if center is None else center)) / (1 if scale is None else np.array(scale))
    assert np.array_equal(saved.predict(NEW), saved.model.predict(expected))


def test_columns_of_data_frames_are_known_by_name(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    archive.save(
        RVFLClassifier(20, random_state=0, alpha=1.0, activation="sigmoid").fit(frame, THIRDS),
        tmp_path / "m.npz",
    )
    saved = archive.load(tmp_path / "m.npz")
    assert saved.columns == ("a", "b", "c", "d")
    assert np.array_equal(saved.predict(frame), saved.predict(X))
    with pytest.raises(
        DataError,
        match=r"do not fit the model: give a table with its 4 columns \(a, b, c, d\), in th",
    ):
        saved.predict(frame[list("dcba")])


@pytest.mark.parametrize("rows", [NEW[:, :3], NEW[:, :1], NEW[0], np.zeros((2, 2, 4))])
def test_rows_of_another_shape(file, rows):
    with pytest.raises(DataError, match="do not fit the model: give a table with its 4 columns"):
        archive.load(file).predict(rows)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"columns": ["a"]}, "it names 1 columns, but has 4"),
        ({"columns": list("aabc")}, "which are not different names"),
        ({"center": np.ones(3)}, r"center has shape \(3,\), which is not \(4\)"),
        ({"center": np.full(4, np.nan)}, "center has NaN or infinite values"),
        ({"scale": np.array([1.0, 0.0, 1.0, 1.0])}, "not every scale is above 0: give"),
        ({"target": "\ud800"}, "the text 'about' in it is not JSON"),
        ({"target": 3}, "its target is 3, which is no str"),
        ({"report": {"network": object()}}, "the report cannot be saved as JSON"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(tmp_path, options, sentence):
    with pytest.raises(InputError, match=sentence):
        archive.save(classifier(), tmp_path / "m.npz", **options)
    assert list(tmp_path.iterdir()) == []


def test_models_that_cannot_be_saved(tmp_path):
    with pytest.raises(
        InputError,
        match="a Ridge cannot be saved: give a fitted AnchorLapClassifier, ESNRegressor, ",
    ):
        archive.save(Ridge(), tmp_path / "m.npz")
    with pytest.raises(NotFittedError):
        archive.save(RVFLClassifier(alpha=1.0, activation="sigmoid"), tmp_path / "m.npz")


def test_a_disk_that_is_full_leaves_the_old_model(tmp_path, monkeypatch):
    def full(_file):
        raise OSError(28, "No space left on device")

    archive.save(classifier(), tmp_path / "m.npz")
    before = (tmp_path / "m.npz").read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        InputError, match=r"m\.npz cannot be written \(No space left on device\): make room"
    ):
        archive.save(classifier("text"), tmp_path / "m.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["m.npz"]
    assert (tmp_path / "m.npz").read_bytes() == before


def test_files_that_are_missing_or_may_not_be_read(file, tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"there is no model .*m\.npz: check the path"):
        archive.load(tmp_path / "m.npz")

    def denied(*_args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)  # rights would not stop a test that runs as root
    with pytest.raises(DataError, match="Permission denied"):
        archive.load(file)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"drop": ["about"]}, "it has no array 'about', only W, b"),
        ({"about": {"version": 2}}, "it has version 2, and this peerlearn reads 1"),
        (
            {"about": {"class": "Popen"}},
            "its class is 'Popen', which is not one of AnchorLapClassifier, ESNRegressor",
        ),
        (
            {"about": {"parameters": {"n_hidden": [1]}}},
            r"it has the parameter 'n_hidden' with the value \[1\]",
        ),
        ({"about": {"parameters": {"size": 1}}}, "it has the parameter 'size' with the value 1"),
        (
            {"about": {"activation": "cube"}},
            "its activation is 'cube', which is not one of sigmoid",
        ),
        ({"about": {"n_features": 5}}, r"W has shape \(4, 20\), which is not \(5, 20\)"),
        ({"about": {"n_features": "4"}}, "its n_features is '4', which is no int"),
        (
            {"about": {"direct_links": True}},
            r"coefficients has shape \(20, 3\), which is not \(24, any\)",
        ),
        ({"about": {"columns": None}}, "its columns is None, which is no list"),
        ({"about": {"columns": [1, 2, 3, 4]}}, "which are not different names"),
        ({"drop": ["W"]}, "it has no array 'W'"),
        ({"drop": ["classes"]}, "it has no array 'classes'"),
        ({"W": np.zeros((4, 20), np.float32)}, "W has type float32, which is not float64"),
        ({"coefficients": np.full((20, 3), np.inf)}, "coefficients has NaN or infinite values"),
        ({"coefficients": np.zeros((20, 2))}, "it has 3 classes, but coefficients for 2 outputs"),
        ({"classes": np.array([0, 2, 1])}, "classes are not different labels in ascending order"),
        (
            {"classes": np.array([0.0, 1.0, np.nan])},
            "classes are not different labels in ascending order",
        ),
        ({"classes": np.array([b"a", b"b", b"c"])}, "it has 0 classes"),
        ({"classes": np.array([1])}, "it has 1 classes"),
        (
            {"about": {"class": "RVFLRegressor", "single_output": True, "parameters": {}}},
            "it should have one output",
        ),
    ],
)
def test_archives_whose_parts_do_not_fit(file, tmp_path, change, sentence):
    path = changed(file, tmp_path / "m.npz", **change)
    with pytest.raises(
        DataError,
        match=rf"m\.npz holds no model that can be used, because .*{sentence}.*: copy it again",
    ):
        archive.load(path)


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100_000, "\ud800"])
def test_texts_that_say_nothing(file, tmp_path, text):
    with pytest.raises(DataError, match=r"the text 'about' in it (is not JSON|is no JSON object)"):
        archive.load(changed(file, tmp_path / "m.npz", text=np.array(text)))


def test_pickled_objects_are_never_loaded(file, tmp_path):
    path = changed(file, tmp_path / "m.npz", classes=np.array([print, 1, 2], dtype=object))
    with pytest.raises(DataError, match="Object arrays cannot be loaded"):
        archive.load(path)


def test_text_that_is_none(file, tmp_path):
    for code in (
        2**32 - 1,
        2**31,
        0x110000,
        0xD800,
    ):  # code points end before, and the last is half of one
        broken = np.array([1, 2, code], dtype=np.uint32).view("<U1")
        with pytest.raises(DataError, match="it has 0 classes"):
            archive.load(changed(file, tmp_path / "m.npz", classes=broken))
        with pytest.raises(DataError, match="the text 'about' in it is not JSON"):
            archive.load(changed(file, tmp_path / "m.npz", text=broken[2:].reshape(())))


def test_machines_of_another_byte_order(file, tmp_path):
    path = changed(
        file,
        tmp_path / "m.npz",
        **{k: v.astype(">f8") for k, v in arrays_in(file).items() if v.dtype == "f8"},
    )
    assert np.array_equal(archive.load(path).predict(NEW), archive.load(file).predict(NEW))


@settings(deadline=None)
@given(content=st.binary(max_size=300), after_magic=st.booleans())
def test_whatever_bytes_a_file_has_the_answer_is_a_sentence(file, content, after_magic):
    path = file.with_name("bytes.npz")
    path.write_bytes(b"PK\3\4" * after_magic + content)
    with pytest.raises(DataError, match="holds no model that can be used"):
        archive.load(path)


@settings(deadline=None)
@given(data=st.data())
def test_a_damaged_archive_is_refused_or_usable(file, data):
    healthy, path = file.read_bytes(), file.with_name("damaged.npz")
    at = data.draw(st.integers(0, len(healthy) - 1))
    path.write_bytes(
        healthy[:at]
        + data.draw(st.binary(max_size=4))
        + healthy[at + data.draw(st.integers(0, 4)) :]
    )
    usable_or_refused(path)


@settings(deadline=None)
@given(data=st.data())
def test_other_arrays_and_entries_are_refused_or_usable(file, data):
    usable_or_refused(tampered(file, data))
