"""Tables of sites from one .npz file: gaps are empty cells, and test rows are drawn by class."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.model_selection import train_test_split

from peerlearn.cli import main
from peerlearn.data.site_tables import site_tables, split_rows
from peerlearn.errors import DataError, InputError

RNG = np.random.default_rng(0)
X = RNG.integers(0, 5, (60, 3)) + np.array([0.0, 0.0, 0.5])
X[3, 1] = X[40, 2] = np.nan
Y = np.arange(60) % 2
SITES = np.repeat([0, 2, 5], 20)


@pytest.fixture
def folder(tmp_path):
    columns = np.array(["age", "ward", "dose"])
    np.savez(tmp_path / "Wards.npz", X=X, y=Y, center=SITES, columns=columns)
    np.savez(tmp_path / "FedHeart.npz", X=X, y=Y, center=np.arange(60) % 4)
    np.savez(tmp_path / "Plain.npz", X=X, y=Y)
    return tmp_path


def frame(text):
    return pd.read_csv(io.StringIO(text))


def test_rows_of_each_site_with_gaps(folder):
    found = site_tables("Wards", folder=folder, target="outcome")
    assert list(found) == ["site-0", "site-2", "site-5"]
    table = frame(found["site-2"])
    assert list(table.columns) == ["age", "ward", "dose", "outcome"]
    np.testing.assert_array_equal(table[["age", "ward", "dose"]], X[20:40])
    assert found["site-0"].splitlines()[4].split(",")[1] == ""
    assert list(site_tables("FedHeart", folder=folder))[3] == "long-beach"


def test_test_rows_are_those_of_scikit_learn(folder):
    found = site_tables("Wards", folder=folder, test_fraction=0.34, seed=43, complete=["ward"])
    own = np.setdiff1d(np.arange(20), [3])
    train, test = train_test_split(own, test_size=0.34, random_state=43, stratify=Y[own])
    np.testing.assert_array_equal(frame(found["site-0"])["dose"], X[train, 2])
    np.testing.assert_array_equal(frame(found["site-0-test"])["dose"], X[test, 2])


def test_a_class_of_two_rows_is_not_spread():
    train, test = split_rows(np.array([0] * 10 + [1] * 2), 0.25, 0)
    assert sorted([*train, *test]) == list(range(12))


def test_the_command_writes_files(folder, tmp_path):
    arguments = ["data", "sites", "Wards", f"{tmp_path}/out", "--folder", str(folder)]
    done = CliRunner().invoke(main, [*arguments, "--complete", "ward, dose"])
    assert done.exit_code == 0, done.output
    assert len(pd.read_csv(tmp_path / "out" / "site-5.csv")) == 19
    assert done.output.splitlines() == [f"{tmp_path}/out/site-{k}.csv" for k in (0, 2, 5)]


@pytest.mark.parametrize(
    ("name", "options", "kind", "sentence"),
    [
        ("Plain", {}, DataError, "has no tables of sites"),
        ("Gone", {}, DataError, "no data set is called 'Gone'"),
        ("Wards", {"complete": ["sex"]}, InputError, "no column 'sex': it has age, ward, dose"),
        ("Wards", {"test_fraction": 1.5}, InputError, "a number between 0 and 1"),
    ],
)
def test_wrong_arguments(folder, name, options, kind, sentence):
    with pytest.raises(kind, match=sentence):
        site_tables(name, folder=folder, **options)
