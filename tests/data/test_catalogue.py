"""Data sets by name: what is generated follows its law, and what is wrong with a file is said in a
sentence.
"""

from __future__ import annotations

import zipfile
from contextlib import suppress
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest

from peerlearn.data import DataSet, available, load
from peerlearn.errors import DataError
from tests.support.data_files import sentence

BUILT_IN = ["g50c", "two-moons", "digits", "breast-cancer", "iris", "wine", "diabetes"]


@pytest.fixture(autouse=True)
def no_folder_in_the_environment(monkeypatch, tmp_path_factory):
    monkeypatch.delenv("PEERLEARN_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path_factory.getbasetemp() / "nothing fetched"))


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_set_is_what_the_list_says(name):
    data, (info,) = load(name), [info for info in available() if info.name == name]
    assert isinstance(data, DataSet)
    assert (data.name, data.task, *data.X.shape) == (info.name, info.task, info.rows, info.columns)
    assert data.source.startswith(info.source)
    assert data.X.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert data.y.dtype == (np.float64 if data.task == "regression" else np.int64)
    with pytest.raises(FrozenInstanceError):
        data.name = "other"


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_sets_are_scaled_to_the_stated_range(name):
    data, raw = load(name), load(name, scaled=False)
    assert raw.scaling is None
    if name == "two-moons":
        assert data.scaling is None
        assert np.array_equal(data.X, raw.X)
        return
    low, high = (0, 1) if name == "digits" else (-1, 1)
    varies = np.ptp(raw.X, axis=0) > 0
    assert np.array_equal(data.X.min(axis=0)[varies], np.full(varies.sum(), low))
    assert np.array_equal(data.X.max(axis=0)[varies], np.full(varies.sum(), high))
    assert not data.X[:, ~varies].any()
    assert np.array_equal(data.scaling.apply(raw.X), data.X)
    assert np.array_equal(data.y, raw.y)


def test_unscaled_means_as_measured():
    assert load("diabetes", scaled=False).X[:, 0].max() == 79  # years
    assert load("digits", scaled=False).X.max() == 16


def test_the_list_without_a_folder_is_the_built_in_sets():
    assert [info.name for info in available()] == BUILT_IN


def test_data_sets_and_scalings_print_as_sentences():
    assert str(load("g50c", seed=3)) == (
        "g50c: 550 rows, 50 columns, classification; generated, seed 3; "
        "each of 50 columns scaled from its own range to [-1, 1]"
    )
    assert str(load("digits").scaling).endswith(
        "from its own range to [0, 1] (3 constant, sent to 0)"
    )
    assert "columns as found" in str(load("two-moons"))


def test_a_file_is_read_with_its_extras_in_wide_types(folder):
    data = load("G50C", folder)
    assert (data.X.dtype, data.y.dtype) == (np.float64, np.int64)
    assert data.X.flags.c_contiguous
    assert data.source == f"read from {folder / 'G50C.npz'}"
    assert list(data.extras) == ["idx_lab"]
    assert np.array_equal(data.extras["idx_lab"], [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize(
    ("name", "to"),
    [
        ("G50C", (-1, 1)),
        ("BCI", (0, 1)),
        ("CCPP", (0, 1)),
        ("Mine", (0, 1)),
        ("Garageband", None),
        ("PCMAC", None),
        ("2Moons", None),
    ],
)
def test_files_are_scaled_to_the_range_of_their_name(folder, name, to):
    data, raw = load(name, folder), load(name, folder, scaled=False)
    assert raw.scaling is None
    if to is None:
        assert data.scaling is None
        assert np.array_equal(data.X, raw.X)
    else:
        assert data.scaling.to == to
        assert np.array_equal(data.X.min(axis=0), np.full(5, to[0]))
        assert np.array_equal(data.X.max(axis=0), np.full(5, to[1]))


def test_targets_of_a_regression_are_left_as_found(folder):
    skills, power = load("Skills", folder), load("CCPP", folder)
    assert skills.task == power.task == "regression"
    assert np.array_equal(skills.y, np.arange(12.0))
    assert skills.y.dtype == power.y.dtype == np.float64
    assert (power.y.min(), power.y.max()) == (400, 500)


def test_images_become_rows_and_test_images_scale_alike(folder):
    data = load("CIFAR10", folder)
    assert data.X.shape == (6, 48)
    assert data.extras["X_test"].shape == (2, 4, 4, 3)
    assert np.array_equal(data.scaling.apply(data.extras["X_test"]), data.X[:2])


@pytest.mark.parametrize(
    ("name", "task", "kind"),
    [("Mine", "regression", "float64"), ("Words", "classification", "<U1")],
)
def test_the_task_of_another_file_is_guessed_and_said(folder, name, task, kind):
    data = load(name, folder)
    assert data.task == task
    assert data.source.endswith(f"task guessed from the type of y ({kind})")


def test_targets_in_one_column_are_flattened_and_several_kept(tmp_path):
    np.savez(tmp_path / "One.npz", X=np.eye(3), y=np.array([[1], [2], [3]]))
    np.savez(tmp_path / "Two.npz", X=np.eye(3), y=np.ones((3, 2)))
    assert load("One", tmp_path).y.tolist() == [1, 2, 3]
    assert load("Two", tmp_path).y.shape == (3, 2)


@pytest.mark.parametrize("by_environment", [False, True])
def test_the_list_is_exactly_what_load_takes(folder, monkeypatch, by_environment):
    monkeypatch.setenv("PEERLEARN_DATA", str(folder))
    where = None if by_environment else folder
    infos = available(where)
    names = [info.name for info in infos]
    assert len(set(names)) == len(names)
    assert ("g50c" in names) == by_environment
    for info in infos:
        data = load(info.name, where)
        assert (data.name, data.task, *data.X.shape) == (
            info.name,
            info.task,
            info.rows,
            info.columns,
        )
        assert data.source.startswith("read from" if info.source == "file" else info.source)


def test_a_damaged_file_does_not_spoil_the_list(folder):
    (folder / "Cut.npz").write_bytes((folder / "G50C.npz").read_bytes()[:300])
    np.savez(folder / "Empty.npz")
    told = {info.name: info for info in available(folder)}
    assert (told["Cut"].rows, told["Cut"].task) == (None, None)
    assert told["Cut"].description.startswith("cannot be loaded: ")
    assert "has no array 'X' (it holds nothing)" in told["Empty"].description
    assert told["G50C"].rows == 12


def test_a_file_name_without_a_folder():
    assert sentence("G50C") == (
        "data set G50C is read from a folder: name it in PEERLEARN_DATA or by "
        "folder=; 'g50c' is generated and needs "
        "no file; it was offered by Melacci and Belkin with their Laplacian SVMs "
        "(Journal of Machine Learning Research "
        "12, 2011)"
    )
    assert sentence("Sylva") == (
        "data set Sylva is read from a folder: name it in PEERLEARN_DATA or by "
        "folder=; peerlearn data fetch Sylva "
        "gets it from OpenML; it was offered at http://www.causality.inf.ethz.ch/al_data/SYLVA.html"
    )


eye, labels = np.eye(3), np.array([0, 1, 0])
BAD_ARRAYS = {
    "has no array 'X' (it holds table, y)": {"table": eye, "y": labels},
    "has no array 'y' (it holds X)": {"X": eye},
    "has 3 rows in X but y has shape (2,)": {"X": eye, "y": labels[:2]},
    "has 3 rows in X but y has shape ()": {"X": eye, "y": 1},
    "has shape (3,), but needs a row and a column": {"X": labels, "y": labels},
    "has shape (0, 3), but needs a row and a column": {"X": eye[:0], "y": labels[:0]},
    "has shape (3, 2), but classification needs (3,)": {"X": eye, "y": np.ones((3, 2), dtype=int)},
    ("has shape (3, 2, 2), but regression needs (3,) or (3, outputs)"): {
        "X": eye,
        "y": np.ones((3, 2, 2)),
    },
    "X in {path} has type <U1, but must be real numbers": {"X": np.array([["a"]] * 3), "y": labels},
    "X in {path} has type complex128, but must be real": {"X": eye * 1j, "y": labels},
    "X in {path} has 2 missing or infinite values, the first (nan) in row 1 column 2": {
        "X": [[0, 0, 0], [0, 0, np.nan], [np.inf, 0, 0]],
        "y": labels,
    },
    ("y in {path} has 1 missing or infinite values, the first (-inf) in row 2"): {
        "X": eye,
        "y": [0, 1, -np.inf],
    },
    "contains pickled objects, which are never loaded": {
        "X": np.array([[{}], [1], [2]], dtype=object),
        "y": labels,
    },
    "contains pickled objects, which are never": {
        "X": eye,
        "y": labels,
        "extra": np.array([None, {}], dtype=object),
    },
}


@pytest.mark.parametrize("expected", BAD_ARRAYS)
def test_bad_arrays_in_a_file(tmp_path, expected):
    path = tmp_path / "Bad.npz"
    np.savez(path, **BAD_ARRAYS[expected])
    text = sentence("Bad", tmp_path)
    assert expected.replace("{path}", str(path)) in text
    assert str(path) in text


def test_words_cannot_be_the_targets_of_a_regression(tmp_path):
    np.savez(tmp_path / "CCPP.npz", X=eye, y=np.array(["a", "b", "c"]))
    assert "has type <U1, but regression needs real numbers" in sentence("CCPP", tmp_path)


@pytest.mark.parametrize("kept", [0.0, 0.001, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file(folder, kept):
    whole = (folder / "G50C.npz").read_bytes()
    (folder / "Cut.npz").write_bytes(whole[: int(kept * len(whole))])
    assert f"{folder / 'Cut.npz'} is not a readable .npz file" in sentence("Cut", folder)


def test_a_file_whose_error_has_several_lines_is_still_one_sentence(tmp_path):
    header = b"\x93NUMPY\x02\x00" + (20_000).to_bytes(4, "little") + b" " * 20_000
    with zipfile.ZipFile(tmp_path / "Long.npz", "w") as archive:
        archive.writestr("X.npy", header)
    assert "is not a readable .npz file" in sentence("Long", tmp_path)


@pytest.mark.parametrize("content", [b"X,y\n1,2\n", b"\x80\x04N.", b"\x93NUMPY\x01\x00"])
def test_a_file_of_another_kind(tmp_path, content):
    (tmp_path / "Other.npz").write_bytes(content)
    assert "is not a readable .npz file (it is no zip archive)" in sentence("Other", tmp_path)


def test_a_damaged_file_is_always_a_sentence(folder):
    """Any byte may be wrong: the file is still read, or a DataError says why not; nothing else
    escapes.
    """
    whole = (folder / "G50C.npz").read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.choice(len(whole), size=150, replace=False):
        damaged = bytearray(whole)
        damaged[at] ^= int(rng.integers(1, 256))
        (folder / "Cut.npz").write_bytes(damaged)
        available(folder)
        with suppress(DataError):
            load("Cut", folder)


def test_a_file_that_may_not_be_read(folder, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert "cannot be opened (Permission denied)" in sentence("G50C", folder)
