"""A model and its preparation in one file: raw rows are predicted, damaged files are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from peerlearn import (
    PreparedModel,
    RVFLClassifier,
    SimulatedNetwork,
    TablePreparer,
    data,
    graphs,
)
from peerlearn.cli import predictions
from peerlearn.errors import DataError, InputError
from peerlearn.models import archive
from peerlearn.preparing.preparer_entries import entries_of, preparer_from

NETWORK = SimulatedNetwork(graphs.ring(4))


def frames(seed=0):
    tables = data.hospital_tables(rows=40, seed=seed)
    return [(pd.DataFrame(X, columns=data.HOSPITAL_COLUMNS), y) for X, y in tables]


@pytest.fixture(scope="module")
def fitted():
    columns = {"admitted": "drop", "sex": ["male", "female"]}
    preparer = TablePreparer(columns, drop_first=True, network=NETWORK).fit(frames())
    model = RVFLClassifier(20, network=NETWORK, random_state=0)
    return PreparedModel(preparer, model.fit(preparer.transform(frames())), "outcome")


def test_a_loaded_model_predicts_raw_rows_with_the_same_bits(fitted, tmp_path):
    fitted.save(tmp_path / "model.npz")
    loaded = PreparedModel.load(tmp_path / "model.npz")
    new = frames(seed=1)[3][0]
    new.loc[0, "pain"] = "never seen"
    assert np.array_equal(loaded.preparer.transform(new), fitted.preparer.transform(new))
    assert np.array_equal(loaded.predict(new), fitted.predict(new))
    assert loaded.target == "outcome"
    names = fitted.preparer.get_feature_names_out()
    assert loaded.preparer.get_feature_names_out().tolist() == names.tolist()


def test_tables_without_names_are_restored_too():
    X = data.hospital_tables(rows=30)[0][0]
    preparer = TablePreparer().fit(X)
    restored = preparer_from(entries_of(preparer))
    assert np.array_equal(restored.transform(X), preparer.transform(X))


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("kinds", ["number"], "it names 7 columns, but has 1"),
        ("kinds", ["colour"] * 7, "its kinds are"),
        ("columns", ["a"] * 7, "it names 7 columns"),
        ("columns", 3, "not a list of texts"),
        ("fill", [1.0], "its fill is .* not 4 finite numbers"),
        ("center", [float("nan")] * 4, "its center is"),
        ("scale", [0.0, 1.0, 1.0, 1.0], "not every scale is above 0"),
        ("indicated", [9], "its indicated is"),
        ("categories", [["a"]], "not lists for 2 columns"),
        ("categories", [["a", "a"], ["b"]], "the categories of a column are"),
        ("drop_first", 1, "its drop_first is no bool"),
    ],
)
def test_what_does_not_fit_is_refused(fitted, key, value, sentence):
    entries = {**entries_of(fitted.preparer), key: value}
    with pytest.raises(DataError, match=sentence):
        preparer_from(entries)


def test_a_preparation_for_another_model_is_refused(fitted, tmp_path):
    entries = entries_of(fitted.preparer)
    entries["categories"][0].append("more")
    archive.save(fitted.model, tmp_path / "model.npz", preparation=entries)
    with pytest.raises(DataError, match="makes 11 columns, but the model takes 10"):
        PreparedModel.load(tmp_path / "model.npz")
    archive.save(fitted.model, tmp_path / "bare.npz")
    with pytest.raises(DataError, match="was saved without a preparation"):
        PreparedModel.load(tmp_path / "bare.npz")


def test_predict_takes_raw_rows_of_a_file(fitted, tmp_path):
    """Gaps, a new category, decimal commas, and columns in another order."""
    fitted.save(tmp_path / "model.npz")
    path = tmp_path / "rows.csv"
    path.write_text(
        "pain;age;sex;pressure;cholesterol;smoker;admitted;outcome\n"
        "new;61,5;;;250;1;2023-05-01;1\n"
        "none;40;male;120;;0;;0\n"
    )
    done = predictions.predict(tmp_path / "model.npz", path)
    rows = pd.DataFrame(
        [
            [61.5, None, "new", None, 250, 1, None],
            [40, "male", "none", 120, None, 0, None],
        ],
        columns=data.HOSPITAL_COLUMNS,
    )
    wanted = fitted.predict(rows)
    p = fitted.predict_proba(rows)
    header, *lines = done.text.splitlines()
    assert header == "outcome,probability_0,probability_1"
    assert lines == [f"{wanted[k]},{p[k, 0]},{p[k, 1]}" for k in range(2)]
    assert done.score == f"accuracy {np.mean(wanted == [1, 0]):.4f} on 2 rows"


def test_names_are_given_to_a_table_without_names(tmp_path):
    X, y = data.hospital_tables(rows=30)[0]
    preparer = TablePreparer(names=data.HOSPITAL_COLUMNS).fit(X)
    assert preparer.kinds_["admitted"] == "date"
    model = RVFLClassifier(10, random_state=0).fit(preparer.transform(X), y)
    PreparedModel(preparer, model).save(tmp_path / "model.npz")
    loaded = PreparedModel.load(tmp_path / "model.npz")
    assert loaded.columns == data.HOSPITAL_COLUMNS
    assert np.array_equal(loaded.predict(X), model.predict(preparer.transform(X)))
    with pytest.raises(DataError, match="do not fit the model: give a table with the columns age"):
        loaded.predict(X[:, :3])
    with pytest.raises(InputError, match="names has 2 different names, but X has 7 columns"):
        TablePreparer(names=["a", "b"]).fit(X)
