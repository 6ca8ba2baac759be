"""Rows of several sites and times: dealt by site, and held out by site or by time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from peerlearn import LogisticClassifier, SimulatedNetwork, TablePreparer, data, graphs
from peerlearn.data import DataSet
from peerlearn.errors import InputError
from peerlearn.lab import Comparison, Data, Model, Net, Search, protocol_named, read, run
from peerlearn.lab.training.loading import fold_of
from peerlearn.lab.training.splitting import split_table

SITES = 3
NAMES = list(data.HOSPITAL_COLUMNS)
FILE = """
title = "hospitals"
{split}
[protocol]
deal = "site"
[[data]]
name = "hospitals"
{data}
[[models]]
name = "together"
kind = "Logistic"
[[models]]
name = "alone"
kind = "Logistic"
where = "alone"
[[models]]
name = "LogReg"
kind = "sklearn.linear_model.LogisticRegression"
[[networks]]
name = "ring"
graph = "ring"
agents = {agents}
"""
GENERATED = (
    'source = "hospital_tables"\nsite = "site"\noptions = {sites = 3, rows = 40}\ncolumns = {}'
)


@pytest.fixture
def comparison_of(tmp_path):
    def write(rows=GENERATED, split="", agents=SITES):
        file = tmp_path / "c.toml"
        file.write_text(FILE.format(data=rows, split=split, agents=agents))
        return read(file)

    return write


def first_trial(comparison, fold=0, where="network"):
    return next(
        trial for trial in comparison.trials() if trial.fold == fold and trial.model.where == where
    )


def test_each_agent_has_the_training_rows_of_its_site(comparison_of, tmp_path):
    comparison = comparison_of()
    trial = first_trial(comparison)
    fold = fold_of(trial)
    tables = data.hospital_tables(SITES, rows=40, seed=trial.seed("data"))
    X = np.concatenate([rows for rows, _ in tables])
    y = np.concatenate([own for _, own in tables])
    sites = np.repeat(np.arange(SITES), 40)
    table = DataSet("", X, y, "classification", "", None, {"site": sites})
    train, test = split_table(trial, table)
    np.testing.assert_array_equal(fold.sites, sites[train])
    assert np.bincount(sites[test]).tolist() == [10, 10, 10]
    preparer = TablePreparer({}, names=NAMES).fit(X[train])
    shares = [
        (preparer.transform(X[train[sites[train] == k]]), y[train[sites[train] == k]])
        for k in range(SITES)
    ]
    model = LogisticClassifier(network=SimulatedNetwork(graphs.ring(SITES))).fit(shares)
    error = np.mean(model.predict(preparer.transform(X[test])) != y[test])
    results = run(comparison, tmp_path / "out", jobs=1)
    assert {row["status"] for row in results.rows} == {"done"}
    assert results.where({"model": "together"}).mean("error") == pytest.approx(error)


def write_npz(folder):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 3))
    y = (X[:, 0] + 0.3 * rng.standard_normal(90) > 0).astype(int)
    X[::9, 1] = np.nan
    center = np.repeat([2, 5, 7], 30)
    columns = np.array(["a", "b", "c"])
    np.savez(folder / "Mine.npz", X=X, y=y, center=center, columns=columns)


def test_a_file_of_the_data_folder_with_gaps_and_sites(comparison_of, tmp_path, monkeypatch):
    write_npz(tmp_path)
    monkeypatch.setenv("PEERLEARN_DATA", str(tmp_path))
    entry = 'source = "Mine"\nsite = "center"\ncolumns = { c = "drop" }'
    comparison = comparison_of(entry)
    fold = fold_of(first_trial(comparison))
    # a, b and the indicator of gaps in b
    assert fold.X.shape[1] == 3
    assert sorted(set(fold.sites)) == [2, 5, 7]
    rows = run(comparison, tmp_path / "out", jobs=1).rows
    assert {row["status"] for row in rows} == {"done"}
    complete = comparison_of(entry + '\noptions.complete = [["a", "b"]]')
    fold = fold_of(first_trial(complete))
    assert len(fold.y) + len(fold.y_test) == 80
    assert fold.X.shape[1] == 2
    with pytest.raises(InputError, match="Mine has no column 'd'"):
        comparison_of(entry + '\noptions.complete = [["d"]]')


def test_a_column_of_a_file_of_ones_own_has_the_sites(comparison_of, tmp_path):
    tables = data.hospital_tables(SITES, rows=40)
    frames = [
        pd.DataFrame(X, columns=NAMES).assign(outcome=y, ward=f"ward {k}")
        for k, (X, y) in enumerate(tables)
    ]
    pd.concat(frames).to_csv(tmp_path / "all.csv", index=False)
    entry = 'file = "all.csv"\ntarget = "outcome"\ncolumns = {}\nsite = "ward"'
    comparison = comparison_of(entry)
    assert set(fold_of(first_trial(comparison)).sites) == {"ward 0", "ward 1", "ward 2"}
    assert comparison.data[0].prepare[0]["names"] == NAMES
    rows = run(comparison, tmp_path / "out", jobs=1).rows
    assert {row["status"] for row in rows} == {"done"}


def test_one_site_after_the_other_is_left_out(comparison_of, tmp_path):
    comparison = comparison_of(split='split = "leave-one-site-out"\nfolds = 3', agents=SITES - 1)
    seed = first_trial(comparison).seed("data")
    tables = data.hospital_tables(SITES, rows=40, seed=seed)
    for fold in range(SITES):
        found = fold_of(first_trial(comparison, fold))
        np.testing.assert_array_equal(found.y_test, tables[fold][1])
        assert fold not in found.sites
    rows = run(comparison, tmp_path / "out", jobs=1).rows
    assert {row["status"] for row in rows} == {"done"}


def timed(n=40):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 2))
    extras = {"day": rng.permutation(n)}
    return DataSet("timed", X, (X[:, 0] > 0).astype(int), "classification", "", None, extras)


@pytest.mark.parametrize("folds", [1, 3])
def test_training_rows_are_older_than_test_rows(folds, tmp_path):
    table = timed()
    comparison = Comparison(
        (Data("timed", given=table, time="day"),),
        (Model("LogReg", "sklearn.linear_model.LogisticRegression"),),
        folds=folds,
        split="time",
    )
    tested = []
    for trial in comparison.trials():
        train, test = split_table(trial, table)
        assert table.extras["day"][train].max() < table.extras["day"][test].min()
        tested.extend(table.extras["day"][test].tolist())
    assert tested == sorted(tested)
    assert tested[-1] == 39
    assert len(tested) == {1: 10, 3: 30}[folds]
    assert len(run(comparison, tmp_path / "out", jobs=1).rows) == folds


def test_a_search_within_splits_its_training_rows_within_sites(comparison_of, tmp_path):
    comparison = comparison_of(split='split = "leave-one-site-out"\nfolds = 3', agents=SITES - 1)
    searching = replace(
        comparison, search=Search(grid={"alpha": [0.1, 10.0]}, folds=2, where="network")
    )
    rows = run(searching, tmp_path / "out", jobs=1).rows
    assert {row["status"] for row in rows} == {"done"}


def test_sites_are_part_of_a_runs_identity():
    table = timed()
    other = DataSet(
        "timed", table.X, table.y, table.task, "", None, {"day": table.extras["day"][::-1]}
    )
    model = (Model("LogReg", "sklearn.linear_model.LogisticRegression"),)
    keys = [
        next(Comparison((Data("timed", given=given, time="day"),), model).trials()).key
        for given in (table, other)
    ]
    assert keys[0] != keys[1]


DEALS = {"protocol": protocol_named("rows", deal="site")}
SITED = DataSet(
    "sited", timed().X, timed().y, "classification", "", None, {"site": np.arange(40) % 4}
)


@pytest.mark.parametrize(
    ("entry", "settings", "agents", "sentence"),
    [
        (Data("iris"), DEALS, 3, r"data\['iris'\].site .* is missing, and deal = 'site' needs"),
        (Data("iris"), {"split": "time"}, 3, r"data\['iris'\].time .* is missing"),
        (Data("iris"), {"split": "sideways"}, 3, "split .* is 'sideways', which is not known"),
        (Data("s", given=SITED, site="site"), DEALS, 3, "has 4 sites, and each has an agent: give"),
        (Data("s", given=SITED, site="sit"), DEALS, 4, "site is 'sit', but sited has no such"),
        (
            Data("s", given=SITED, site="site"),
            {"split": "leave-one-site-out", "folds": 5},
            3,
            "has 4 sites to leave out: give 4",
        ),
        (
            Data("s", source="hospital_tables", site="site"),
            DEALS,
            4,
            "has texts and gaps: give it columns",
        ),
        (
            Data("s", given=SITED, site="site"),
            {"split": "within-sites", "protocol": protocol_named("few-labels")},
            4,
            "is for the protocols rows, columns, stream",
        ),
    ],
)
def test_what_cannot_be_dealt_or_split_is_refused(entry, settings, agents, sentence, tmp_path):
    comparison = Comparison(
        (entry,), (Model("m", "Logistic"),), (Net("ring", "ring", agents),), **settings
    )
    with pytest.raises(InputError, match=sentence):
        run(comparison, tmp_path / "out", jobs=1)
