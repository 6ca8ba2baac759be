"""Transformers saved alone: the same rows come out, and wrong files are refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from peerlearn import (
    NetworkEncoder,
    NetworkImputer,
    NetworkScaler,
    SimulatedNetwork,
    TablePreparer,
    graphs,
    load_transformer,
    save_transformer,
)
from peerlearn.errors import DataError, InputError
from peerlearn.testing.cases.preparing import color_table, mixed_table, number_table

ALL = [
    (NetworkScaler(), number_table),
    (NetworkScaler("robust"), number_table),
    (NetworkImputer("median", add_indicator=True), number_table),
    (NetworkImputer("most_frequent"), number_table),
    (NetworkEncoder(drop_first=True, handle_unknown="error"), color_table),
    (TablePreparer(), mixed_table),
]


def fitted(transformer, table, *, named):
    tables = [table(agent) for agent in range(3)]
    if named:
        columns = [f"c{k}" for k in range(tables[0].shape[1])]
        tables = [pd.DataFrame(each, columns=columns) for each in tables]
    network = SimulatedNetwork(graphs.ring(3))
    return transformer.set_params(network=network).fit([(own, None) for own in tables]), tables[0]


@pytest.mark.parametrize("named", [False, True], ids=["array", "frame"])
@pytest.mark.parametrize(
    ("transformer", "table"), ALL, ids=lambda value: getattr(value, "__name__", repr(value))
)
def test_a_loaded_transformer_does_the_same(transformer, table, named, tmp_path):
    transformer, rows = fitted(transformer, table, named=named)
    save_transformer(transformer, tmp_path / "it.npz")
    loaded = load_transformer(tmp_path / "it.npz")
    assert type(loaded) is type(transformer)
    assert loaded.network is None
    np.testing.assert_array_equal(loaded.transform(rows), transformer.transform(rows))
    assert list(loaded.get_feature_names_out()) == list(transformer.get_feature_names_out())
    assert hasattr(loaded, "feature_names_in_") == named


def test_an_unknown_category_is_still_an_error(tmp_path):
    encoder, _ = fitted(NetworkEncoder(handle_unknown="error"), color_table, named=False)
    save_transformer(encoder, tmp_path / "it.npz")
    with pytest.raises(DataError, match="mauve"):
        load_transformer(tmp_path / "it.npz").transform([["mauve", "blue"]])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("class", "PCA"),
        ("scale", [1.0, 0.0, 1.0]),
        ("scale", [1.0, 1.0]),
        ("center", [1.0, float("nan"), 1.0]),
        ("n_features", "three"),
        ("columns", None),
    ],
)
def test_wrong_files_are_refused(key, value, tmp_path):
    scaler, _ = fitted(NetworkScaler(), number_table, named=False)
    save_transformer(scaler, tmp_path / "it.npz")
    about = json.loads(str(np.load(tmp_path / "it.npz")["about"]))
    about[key] = value
    if value is None:
        del about[key]
    np.savez(tmp_path / "it.npz", about=np.array(json.dumps(about)))
    with pytest.raises(DataError, match="holds no transformer that can be used"):
        load_transformer(tmp_path / "it.npz")


def test_what_is_no_transformer(tmp_path):
    with pytest.raises(InputError, match="a str cannot be saved here: give a fitted NetworkScaler"):
        save_transformer("scaler", tmp_path / "it.npz")
    with pytest.raises(DataError, match="there is no transformer"):
        load_transformer(tmp_path / "it.npz")
