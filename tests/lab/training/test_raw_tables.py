"""Transformers of peerlearn in comparisons: raw tables from files and from objects."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from peerlearn import TablePreparer, data
from peerlearn.errors import InputError
from peerlearn.lab import Comparison, Data, Model, Net, read, run
from peerlearn.lab.training.loading import prepare

PREPARER = {"kind": "peerlearn.TablePreparer", "names": list(data.HOSPITAL_COLUMNS)}
FILE = """
title = "hospitals"
[[data]]
name = "hospitals"
file = "all.csv"
target = "outcome"
columns = { sex = ["female", "male"], admitted = "drop" }
[[models]]
name = "together"
kind = "Logistic"
[[models]]
name = "in one place"
kind = "sklearn.linear_model.LogisticRegression"
[[networks]]
name = "ring"
graph = "ring"
agents = 3
"""


def pooled(rows=60):
    parts = data.hospital_tables(3, rows=rows)
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def test_a_raw_table_of_a_file(tmp_path):
    X, y = pooled()
    frame = pd.DataFrame(X, columns=data.HOSPITAL_COLUMNS).assign(outcome=y)
    frame.to_csv(tmp_path / "all.csv", index=False)
    (tmp_path / "c.toml").write_text(FILE)
    comparison = read(tmp_path / "c.toml")
    (entry,) = comparison.data
    assert entry.given.X.dtype == object
    found, test = prepare(entry, entry.given.X[:120], entry.given.X[120:])
    columns = {"sex": ["female", "male"], "admitted": "drop"}
    preparer = TablePreparer(columns, names=list(data.HOSPITAL_COLUMNS))
    wanted = preparer.fit(entry.given.X[:120])
    np.testing.assert_array_equal(found, wanted.transform(entry.given.X[:120]))
    np.testing.assert_array_equal(test, wanted.transform(entry.given.X[120:]))
    rows = run(comparison, tmp_path / "out", jobs=1).rows
    assert {row["status"] for row in rows} == {"done"}


@pytest.mark.parametrize(
    "step",
    [
        {"kind": "peerlearn.NetworkScaler", "method": "robust"},
        {"kind": "peerlearn.NetworkImputer", "strategy": "median"},
        {"kind": "peerlearn.NetworkEncoder"},
    ],
    ids=lambda step: step["kind"],
)
def test_every_transformer_prepares_rows(step, tmp_path):
    X, y = np.round(data.load("iris").X, 1), data.load("iris").y
    comparison = Comparison(
        (Data("iris", given=(X, y), prepare=(step,)),),
        (Model("together", "Logistic"),),
        (Net("ring", "ring", 3),),
    )
    assert {row["status"] for row in run(comparison, tmp_path / "out", jobs=1).rows} == {"done"}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "prepare it by peerlearn.TablePreparer"),
        ({"prepare": (PREPARER,), "scale": "unit"}, "leave scale out, and scale in prepare"),
        (
            {"prepare": ({**PREPARER, "columns": {"sex": "gender"}},)},
            "column sex is declared as 'gender'",
        ),
    ],
)
def test_what_cannot_be_prepared_is_refused_before_the_first_run(settings, sentence, tmp_path):
    comparison = Comparison(
        (Data("hospitals", given=pooled(), **settings),),
        (Model("together", "Logistic"),),
        (Net("ring", "ring", 3),),
    )
    with pytest.raises(InputError, match=sentence):
        run(comparison, tmp_path / "out", jobs=1)
