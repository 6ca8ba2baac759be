"""Data sets by name: what is generated follows its law, and what is wrong with a file is said in a sentence."""

from __future__ import annotations

import zipfile
from contextlib import suppress
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from peerlearn.data import DataSet, Scaling, available, g50c, load, two_moons
from peerlearn.data.folder import match
from peerlearn.errors import DataError

BUILT_IN = ["g50c", "two-moons", "digits", "breast-cancer", "iris", "wine", "diabetes"]


@pytest.fixture(autouse=True)
def no_folder_in_the_environment(monkeypatch, tmp_path_factory):
    monkeypatch.delenv("PEERLEARN_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path_factory.getbasetemp() / "nothing fetched"))


@pytest.fixture
def folder(tmp_path):
    """A folder like the thesis's: float32 columns, int8 labels, further arrays beside them."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12, 5)).astype(np.float32) * 3
    signs = np.tile(np.array([-1, 1], dtype=np.int8), 6)
    splits = np.arange(6, dtype=np.int16).reshape(2, 3)
    images = rng.integers(0, 256, (6, 4, 4, 3)).astype(np.uint8)
    np.savez_compressed(tmp_path / "G50C.npz", X=rows, y=signs, idx_lab=splits)
    np.savez(
        tmp_path / "Garageband.npz",
        X=np.abs(rows) / 20,
        y=signs,
        classes=np.array(["jazz", "rock"]),
    )
    np.savez(tmp_path / "BCI.npz", X=rows, y=signs)
    np.savez(tmp_path / "PCMAC.npz", X=rows, y=signs)
    np.savez(tmp_path / "2Moons.npz", X=rows[:, :2], y=signs, is_test=signs > 0)
    np.savez(tmp_path / "Skills.npz", X=rows, y=np.arange(12, dtype=np.int8))
    np.savez(tmp_path / "CCPP.npz", X=np.abs(rows), y=np.linspace(400, 500, 12, dtype=np.float32))
    np.savez(tmp_path / "CIFAR10.npz", X=images, y=np.arange(6, dtype=np.uint8), X_test=images[:2])
    np.savez(tmp_path / "Mine.npz", X=rows, y=np.linspace(0, 1, 12))
    np.savez(tmp_path / "Words.npz", X=rows, y=np.array(["a", "b"] * 6))
    np.savez(tmp_path / "digits.npz", X=rows, y=signs)
    return tmp_path


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


def test_the_best_rule_of_g50c_errs_in_five_percent():
    X, y = g50c(n=40_000, seed=1)
    error = np.mean(np.sign(X.sum(axis=1)) != y)
    assert abs(error - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 40_000)


def test_g50c_is_two_unit_gaussians_along_the_diagonal():
    X, y = g50c(n=40_000, seed=2)
    for sign in (-1, 1):
        cloud = X[y == sign]
        assert cloud.mean(axis=0) == pytest.approx(np.full(50, sign * 0.2326174), abs=0.04)
        assert np.cov(cloud.T) == pytest.approx(np.eye(50), abs=0.05)


@pytest.mark.parametrize("n", [2, 3, 550, 551])
def test_generated_classes_are_as_equal_as_possible(n):
    for _, y in (g50c(n), two_moons(n)):
        assert set(y.tolist()) == {-1, 1}
        assert abs(int(y.sum())) == n % 2


@pytest.mark.parametrize("draw", [g50c, two_moons])
def test_generated_sets_follow_the_seed_and_are_shuffled(draw):
    (X, y), (again, _), (other, _) = draw(seed=5), draw(seed=5), draw(seed=6)
    assert np.array_equal(X, again)
    assert not np.array_equal(X, other)
    assert np.count_nonzero(np.diff(y)) > len(y) / 4


def test_load_passes_the_seed_on():
    assert np.array_equal(load("g50c", seed=7, scaled=False).X, g50c(seed=7)[0])
    assert not np.array_equal(load("two-moons", seed=7).X, load("two-moons").X)


def test_two_moons_are_half_circles_with_the_noise_asked_for():
    X, y = two_moons(n=4000, noise=0.1)
    centres = np.where((y == 1)[:, None], [0.0, 0.0], [1.0, 0.5])
    radii = np.linalg.norm(X - centres, axis=1)
    assert np.sqrt(np.mean((radii - 1) ** 2)) == pytest.approx(0.1, rel=0.05)
    assert X[y == 1, 1].mean() > X[y == -1, 1].mean()


tables = arrays_of.arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(1, 4)),
    elements=st.floats(-1e100, 1e100, allow_subnormal=False),
)


@given(tables, st.sampled_from([(-1.0, 1.0), (0.0, 1.0), (2.0, 5.0)]))
def test_scaling_reaches_both_ends_and_divides_by_no_zero(X, to):
    scaling = Scaling.of(X, to)
    scaled = scaling.apply(X)
    constant = X.min(axis=0) == X.max(axis=0)
    assert np.isfinite(scaled).all()
    assert np.array_equal(scaled.min(axis=0)[~constant], np.full((~constant).sum(), to[0]))
    assert np.array_equal(scaled.max(axis=0)[~constant], np.full((~constant).sum(), to[1]))
    assert np.array_equal(
        scaled[:, constant], np.full((len(X), constant.sum()), min(max(0.0, to[0]), to[1]))
    )


def test_scaling_new_rows_uses_the_old_range_and_leaves_the_input_alone():
    scaling = Scaling.of(np.array([[0.0, 5.0], [10.0, 5.0]]), (-1.0, 1.0))
    new = np.array([[5.0, 7.0], [20.0, 5.0]])
    assert np.array_equal(scaling.apply(new), [[0.0, 0.0], [3.0, 0.0]])
    assert np.array_equal(new, [[5.0, 7.0], [20.0, 5.0]])
    with pytest.raises(DataError, match=r"rows of shape \(2, 3\) cannot be scaled.* 2 columns: "):
        scaling.apply(np.zeros((2, 3)))


def test_a_file_is_read_with_its_extras_in_wide_types(folder):
    data = load("G50C", folder)
    assert (data.X.dtype, data.y.dtype) == (np.float64, np.int64)
    assert data.X.flags.c_contiguous
    assert data.source == f"read from {folder / 'G50C.npz'}"
    assert list(data.extras) == ["idx_lab"]
    assert np.array_equal(data.extras["idx_lab"], [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize(
    ("name", "to"),
    [("G50C", (-1, 1)), ("BCI", (0, 1)), ("CCPP", (0, 1)), ("Mine", (0, 1)), ("Garageband", None), ("PCMAC", None),
     ("2Moons", None)],
)  # fmt: skip
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


def test_a_folder_that_is_given_wins_and_ignores_case(folder):
    assert load("g50c", folder).source == f"read from {folder / 'G50C.npz'}"
    assert load("digits", str(folder)).X.shape == (12, 5)
    assert load("iris", folder).source == "bundled with scikit-learn"


def test_a_folder_of_the_environment_only_adds_names(folder, monkeypatch):
    monkeypatch.setenv("PEERLEARN_DATA", str(folder))
    assert load("G50C").X.shape == (12, 5)
    assert load("g50c").source == "generated, seed 0"
    assert load("digits").source == "bundled with scikit-learn"
    with pytest.raises(DataError, match="the nearest is 'Mine'"):
        load("mine")


def test_an_argument_is_read_instead_of_the_environment(folder, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("PEERLEARN_DATA", str(folder))
    with pytest.raises(DataError, match=r"data set G50C has no file G50C\.npz in .*: put it there"):
        load("G50C", tmp_path_factory.mktemp("empty"))


def test_built_in_names_do_not_even_look_at_the_environment(monkeypatch):
    monkeypatch.setenv("PEERLEARN_DATA", "nowhere")
    assert load("iris").X.shape == (150, 4)


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


def sentence(name, folder=None):
    with pytest.raises(DataError) as caught:
        load(name, folder)
    text = str(caught.value)
    assert ": " in text
    assert "\n" not in text
    return text


def test_a_file_name_without_a_folder():
    assert sentence("G50C") == (
        "data set G50C is read from a folder: name it in PEERLEARN_DATA or by folder=; 'g50c' is generated and needs "
        "no file; it was offered by Melacci and Belkin with their Laplacian SVMs (Journal of Machine Learning Research "
        "12, 2011)"
    )
    assert sentence("Sylva") == (
        "data set Sylva is read from a folder: name it in PEERLEARN_DATA or by folder=; peerlearn data fetch Sylva "
        "gets it from OpenML; it was offered at http://www.causality.inf.ethz.ch/al_data/SYLVA.html"
    )


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [("g50", "g50c"), ("Iris", "iris"), ("twomoons", "two-moons"), ("garageband", "Garageband")],
)
def test_an_unknown_name_gets_the_nearest(wrong, nearest):
    text = sentence(wrong)
    assert f"no data set is called '{wrong}', the nearest is '{nearest}'" in text
    assert "available()" in text


def test_a_name_near_nothing_and_names_with_folders():
    assert sentence("zzzz").startswith("no data set is called 'zzzz': ")
    for name in ("../G50C", "a\\b", "/etc/passwd", ""):
        assert f"{name!r} is not the name of a data set" in sentence(name)


def test_a_folder_that_is_none(tmp_path, monkeypatch):
    assert "named by folder=" in sentence("G50C", tmp_path / "absent")
    monkeypatch.setenv("PEERLEARN_DATA", str(tmp_path / "absent"))
    assert "named by the environment variable PEERLEARN_DATA, is not a folder" in sentence("G50C")
    monkeypatch.setenv("PEERLEARN_DATA", "")
    assert "is read from a folder" in sentence("G50C")


def test_two_files_that_differ_in_case_alone():
    held = {
        "Mine": Path("Mine.npz"),
        "mine": Path("mine.npz"),
    }  # not on disk: some file systems ignore case
    assert match("Mine", held) == Path("Mine.npz")
    with pytest.raises(
        DataError, match="could be any of the files Mine, mine: give the name in their case"
    ):
        match("MINE", held)


eye, labels = np.eye(3), np.array([0, 1, 0])
BAD_ARRAYS = {
    "has no array 'X' (it holds table, y)": {"table": eye, "y": labels},
    "has no array 'y' (it holds X)": {"X": eye},
    "has 3 rows in X but y has shape (2,)": {"X": eye, "y": labels[:2]},
    "has 3 rows in X but y has shape ()": {"X": eye, "y": 1},
    "has shape (3,), but needs a row and a column": {"X": labels, "y": labels},
    "has shape (0, 3), but needs a row and a column": {"X": eye[:0], "y": labels[:0]},
    "has shape (3, 2), but classification needs (3,)": {"X": eye, "y": np.ones((3, 2), dtype=int)},
    "has shape (3, 2, 2), but regression needs (3,) or (3, outputs)": {"X": eye, "y": np.ones((3, 2, 2))},
    "X in {path} has type <U1, but must be real numbers": {"X": np.array([["a"]] * 3), "y": labels},
    "X in {path} has type complex128, but must be real": {"X": eye * 1j, "y": labels},
    "X in {path} has 2 missing or infinite values, the first (nan) in row 1 column 2": {
        "X": [[0, 0, 0], [0, 0, np.nan], [np.inf, 0, 0]], "y": labels},
    "y in {path} has 1 missing or infinite values, the first (-inf) in row 2": {"X": eye, "y": [0, 1, -np.inf]},
    "contains pickled objects, which are never loaded": {"X": np.array([[{}], [1], [2]], dtype=object), "y": labels},
    "contains pickled objects, which are never": {"X": eye, "y": labels, "extra": np.array([None, {}], dtype=object)},
}  # fmt: skip


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
    """Any byte may be wrong: the file is still read, or a DataError says why not; nothing else escapes."""
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


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: g50c(n=1), "g50c cannot be drawn with n=1 rows"),
        (lambda: two_moons(n=0), "two-moons cannot be drawn with n=0 rows"),
        (lambda: two_moons(noise=-0.1), r"two-moons cannot be drawn with noise -0\.1"),
    ],
)
def test_what_cannot_be_drawn(call, expected):
    with pytest.raises(DataError, match=expected):
        call()
