"""Fetching from OpenML, with something in its place: what is kept, what is refused, and what is
said offline.
"""

from __future__ import annotations

import socket
import warnings
from http.client import IncompleteRead
from inspect import signature
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn import datasets
from sklearn.utils import Bunch
from sklearn.utils._param_validation import validate_parameter_constraints

from peerlearn.cli import main
from peerlearn.data import available, fetch, fetch_missing, fetching, is_at_hand, load
from peerlearn.data.known_files import KNOWN_FILES
from peerlearn.data.sources import SOURCES
from peerlearn.errors import DataError

FETCH_OPENML = datasets.fetch_openml
PINES = np.r_[np.full(13_509, "-1"), np.full(886, "1")]


@pytest.fixture(autouse=True)
def nothing_at_hand(monkeypatch, tmp_path):
    monkeypatch.delenv("PEERLEARN_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "kept"))
    monkeypatch.setattr(fetching, "_given_up", [])


@pytest.fixture
def openml(monkeypatch):
    """OpenML as far as we use it: its answers by what is asked for, and what was asked."""
    server = SimpleNamespace(answers={}, asked=[])

    def fetch_openml(**asked):
        given = signature(FETCH_OPENML).bind(**asked).arguments
        validate_parameter_constraints(
            FETCH_OPENML._skl_parameter_constraints, given, "fetch_openml"
        )
        server.asked.append({**asked, "timeout": socket.getdefaulttimeout()})
        answer = server.answers[asked.get("name") or asked["data_id"]]
        if isinstance(answer, BaseException):
            raise answer
        return Bunch(data=answer[0], target=answer[1])

    monkeypatch.setattr(datasets, "fetch_openml", fetch_openml)
    return server


def sylva(rows=14_395, columns=216):
    return np.arange(rows * columns, dtype=float).reshape(rows, columns) % 901


def sentence(call, *given):
    with pytest.raises(DataError) as caught:
        call(*given)
    text = str(caught.value)
    assert ": " in text
    assert "\n" not in text
    return text


def test_sylva_is_fetched_once_and_then_loaded_like_any_file(openml, tmp_path):
    X = sylva()
    openml.answers["sylva_agnostic"] = X, PINES
    assert not is_at_hand("Sylva")
    file = fetch("Sylva")
    assert file == tmp_path / "kept" / "peerlearn" / "Sylva.npz"
    assert fetch("Sylva") == file
    assert [asked["version"] for asked in openml.asked] == [1]
    assert [path.name for path in file.parent.iterdir()] == ["Sylva.npz"]
    assert is_at_hand("Sylva")
    data = load("Sylva", scaled=False)
    assert (data.task, data.y.dtype) == ("classification", np.int64)
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.y, PINES.astype(int))
    assert load("Sylva").scaling.to == (0.0, 1.0)
    assert "Sylva" in {info.name for info in available()}


def test_a_folder_of_the_user_wins_over_what_was_fetched(openml, tmp_path, monkeypatch):
    openml.answers["sylva_agnostic"] = sylva(), PINES
    fetch("Sylva")
    np.savez(tmp_path / "Sylva.npz", X=np.eye(4), y=np.array([1, -1, 1, -1]))
    monkeypatch.setenv("PEERLEARN_DATA", str(tmp_path))
    assert load("Sylva").X.shape == (4, 4)
    assert [info.rows for info in available() if info.name == "Sylva"] == [4]
    (tmp_path / "empty").mkdir()
    assert "has no file Sylva.npz" in sentence(load, "Sylva", tmp_path / "empty")


def test_loading_never_goes_online(openml):
    assert "peerlearn data fetch Sylva gets it from OpenML" in sentence(load, "Sylva")
    assert openml.asked == []


def test_pixels_lie_side_by_side_as_in_our_file():
    """A row of the table: 1024 reds, 1024 greens, 1024 blues."""
    row = np.repeat(np.array([10, 20, 30], dtype=np.uint8), 1024)
    row[1024 + 5 * 32 + 7] = 99  # green of the pixel in line 5, column 7
    X, y = np.broadcast_to(row, (60_000, 3072)), np.tile(np.arange(10), 6000).astype(str)
    arrays = SOURCES["CIFAR10"].read(X, y)
    assert arrays["X"].shape == (10_000, 32, 32, 3)
    assert arrays["X_test"].shape == (2000, 32, 32, 3)
    assert arrays["X"].dtype == np.uint8
    assert arrays["X"][-1, 5, 7].tolist() == [10, 99, 30]
    assert arrays["X_test"][0, 7, 5].tolist() == [10, 20, 30]
    assert np.array_equal(arrays["y"], y[arrays["idx_train"]].astype(int))
    assert np.array_equal(arrays["y_test"], y[arrays["idx_test"]].astype(int))
    assert np.bincount(arrays["y"]).tolist() == [1000] * 10
    assert np.bincount(arrays["y_test"]).tolist() == [200] * 10
    assert arrays["idx_train"].max() < 50_000 <= arrays["idx_test"].min()
    with pytest.raises(ValueError, match="its pixels lie between 10 and 300"):
        SOURCES["CIFAR10"].read(
            np.broadcast_to(np.where(row == 99, 300, row.astype(int)), (60_000, 3072)), y
        )


def test_songs_are_of_those_that_the_thesis_takes_and_know_their_decade():
    rng = np.random.default_rng(0)
    years = rng.integers(1922, 2012, 515_345).astype(float)
    X = np.broadcast_to(rng.normal(size=90), (515_345, 90))
    arrays = SOURCES["YearPredictionMSD"].read(X, years)
    assert arrays["X"].shape == (5000, 90)
    assert len(set(arrays["idx"])) == 5000
    assert arrays["idx"].max() < 200_000
    assert np.array_equal(arrays["year"], years[arrays["idx"]])
    assert np.array_equal(arrays["y"], (arrays["year"] > 1999.5).astype(int))
    assert np.array_equal(arrays["idx"], SOURCES["YearPredictionMSD"].read(X, years)["idx"])
    with pytest.raises(ValueError, match="its years run from 1922 to 2020, not from 1922 to 2011"):
        SOURCES["YearPredictionMSD"].read(X, np.where(years == 2011, 2020.0, years))


@pytest.mark.parametrize(
    ("table", "target", "complaint"),
    [
        (sylva(14_394), PINES[1:], "it has 14394 rows and 216 columns, not 14395 and 216"),
        (sylva(columns=108), PINES, "it has 14395 rows and 108 columns"),
        (np.where(sylva() == 7, np.nan, sylva()), PINES, "it has missing values"),
        (
            sylva(),
            np.roll(np.where(PINES == "1", "-1", "1"), 1),
            "its classes have {-1: 886, 1: 13509} rows",
        ),
        (sylva(), np.full(14_395, "0.5"), "not whole numbers"),
        (sylva(), np.full(14_395, "pine"), "pine"),
        (np.full((14_395, 216), "wood"), PINES, "wood"),
    ],
)
def test_what_is_not_what_it_should_be_is_refused(openml, table, target, complaint):
    openml.answers["sylva_agnostic"] = table, target
    text = sentence(fetch, "Sylva")
    assert (
        "data set Sylva cannot be fetched, because what OpenML has as sylva_agnostic, "
        "version 1 is another table"
    ) in text
    assert complaint in text
    assert not is_at_hand("Sylva")


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (
            URLError("Name or service not known"),
            "OpenML is out of reach (Name or service not known)",
        ),
        (TimeoutError("timed out"), "OpenML is out of reach (timed out)"),
        (ConnectionResetError(104, "Connection reset by peer"), "OpenML is out of reach"),
        (IncompleteRead(b""), "OpenML is out of reach"),
        (
            ValueError("md5 checksum does not match"),
            "OpenML does not give it (md5 checksum does not match)",
        ),
    ],
)
def test_trouble_on_the_way_names_the_set_the_cause_and_the_way_by_hand(openml, trouble, said):
    openml.answers["sylva_agnostic"] = trouble
    text = sentence(fetch, "Sylva")
    assert said in text
    assert "it was offered at http://www.causality.inf.ethz.ch/al_data/SYLVA.html" in text
    assert "save it as Sylva.npz (arrays X, y) in the folder that PEERLEARN_DATA names" in text


def test_a_silent_network_is_not_waited_for(openml):
    openml.answers["sylva_agnostic"] = sylva(), PINES
    before = socket.getdefaulttimeout()
    assert before is None
    fetch("Sylva")
    (asked,) = openml.asked
    assert 0 < asked["timeout"] <= 30
    assert asked["n_retries"] <= 1
    assert asked["delay"] < 1
    assert socket.getdefaulttimeout() == before


def test_warnings_of_retries_are_not_shown_but_others_are(monkeypatch):
    def fetch_openml(**asked):
        warnings.warn("A network error occurred while downloading. Retrying...", stacklevel=2)
        warnings.warn("OpenML registered a problem with the dataset.", stacklevel=2)
        raise URLError("no way")

    monkeypatch.setattr(datasets, "fetch_openml", fetch_openml)
    with pytest.warns(UserWarning, match="a problem") as told:
        sentence(fetch, "Sylva")
    assert [str(each.message) for each in told] == ["OpenML registered a problem with the dataset."]


def test_many_missing_sets_wait_for_openml_once(openml, tmp_path, monkeypatch):
    openml.answers = {name: URLError("no way") for name in ("sylva_agnostic", "CIFAR_10", 44027)}
    np.savez(tmp_path / "YearPredictionMSD.npz", X=np.eye(4), y=np.array([0, 1, 0, 1]))
    monkeypatch.setenv("PEERLEARN_DATA", str(tmp_path))
    fetch_missing("YearPredictionMSD")  # at hand
    fetch_missing("g50c")
    fetch_missing("BCI")  # OpenML does not have it: load says so
    assert openml.asked == []
    assert "data set Sylva cannot be fetched, because OpenML is out of reach (no way)" in sentence(
        fetch_missing, "Sylva"
    )
    text = sentence(fetch_missing, "CIFAR10")
    assert "data set CIFAR10 cannot be fetched, because OpenML is out of reach (no way)" in text
    assert "https://www.cs.toronto.edu/~kriz/cifar.html" in text
    assert len(openml.asked) == 1
    sentence(fetch, "CIFAR10")  # who asks for one outright is served
    assert len(openml.asked) == 2


def test_one_set_that_is_refused_does_not_stop_the_others(openml):
    openml.answers = {"sylva_agnostic": (sylva(10), PINES[:10]), "CIFAR_10": ValueError("gone")}
    assert "another table" in sentence(fetch_missing, "Sylva")
    assert "gone" in sentence(fetch_missing, "CIFAR10")


def test_a_folder_that_cannot_be_written_is_named(openml, tmp_path, monkeypatch):
    openml.answers["sylva_agnostic"] = sylva(), PINES
    (tmp_path / "file").touch()
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "file"))
    text = sentence(fetch, "Sylva")
    assert "cannot be written" in text
    assert "SCIKIT_LEARN_DATA" in text
    assert openml.asked == []


def test_sets_without_a_source_say_where_they_were_offered():
    for known in KNOWN_FILES.values():
        assert known.offered in sentence(load, known.name)
        if known.name not in SOURCES:
            assert known.offered in sentence(fetch, known.name)
    assert set(SOURCES) <= {known.name for known in KNOWN_FILES.values()}
    assert "those that OpenML has are Sylva, CIFAR10, YearPredictionMSD" in sentence(
        fetch, "nothing"
    )


def test_the_command_fetches_and_the_list_says_where_files_come_from(openml):
    openml.answers["sylva_agnostic"] = sylva(), PINES
    run = CliRunner().invoke
    done = run(main, ["data", "fetch", "Sylva"])
    assert done.exit_code == 0, done.output
    assert "Sylva is in " in done.stdout
    listed = " ".join(run(main, ["data"]).stdout.split())
    assert "Sylva yes peerlearn data fetch Sylva" in listed
    assert "Garageband - offered by Mierswa and Morik" in listed
    failed = run(main, ["data", "fetch", "BCI"])
    assert failed.exit_code == 2
    assert "data set BCI cannot be fetched: it was offered with the book" in failed.stderr
    assert run(main, ["data", "fetch"]).exit_code == 2
