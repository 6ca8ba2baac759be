"""What all transformers have in common: tables and shares, pipelines, and scikit-learn's rules."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from peerlearn import (
    NetworkEncoder,
    NetworkImputer,
    NetworkScaler,
    RVFLClassifier,
    SimulatedNetwork,
    data,
    graphs,
    partition,
)
from peerlearn.errors import DataError, InputError

NETWORK = SimulatedNetwork(graphs.ring(4))
NUMBERS = [
    NetworkScaler(),
    NetworkScaler("robust"),
    NetworkScaler("range"),
    NetworkImputer("mean", add_indicator=True),
    NetworkImputer("median"),
    NetworkImputer("most_frequent"),
]
ALL = [*NUMBERS, NetworkEncoder()]


def over(network, transformer):
    return clone(transformer).set_params(network=network)


def table_with_gaps(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-5, 6, (rows, 4)) * [1.0, 0.5, 100.0, 3.0]
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, rng.integers(0, 2, rows)


@pytest.mark.parametrize("transformer", ALL, ids=repr)
@pytest.mark.parametrize("agents", [0, 2])
def test_scikit_learns_rules_hold(transformer, agents):
    network = SimulatedNetwork(graphs.ring(agents)) if agents else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(over(network, transformer), on_skip=None)


@pytest.mark.parametrize("transformer", ALL, ids=repr)
def test_a_network_gives_what_one_place_gives(transformer):
    X, y = table_with_gaps()
    alone = over(None, transformer).fit(X, y)
    together = over(NETWORK, transformer).fit(X, y)
    assert np.allclose(alone.transform(X), together.transform(X), equal_nan=True, rtol=1e-12)
    assert together.sent_.bytes > 0
    assert alone.sent_.bytes == 0


@pytest.mark.parametrize("transformer", ALL, ids=repr)
def test_shares_stay_shares_with_their_targets(transformer):
    X, y = table_with_gaps()
    shares = [(X[:10], y[:10]), (X[:0], y[:0]), (X[10:50], y[10:50]), (X[50:], y[50:])]
    fitted = over(NETWORK, transformer)
    transformed = fitted.fit_transform(shares)
    assert np.array_equal(np.vstack([X_k for X_k, _ in transformed]), fitted.transform(X), True)
    assert all(new is old for (_, new), (_, old) in zip(transformed, shares, strict=True))


@pytest.mark.parametrize("transformer", ALL, ids=repr)
def test_data_frames_come_out_as_data_frames_where_asked_for(transformer):
    X, y = table_with_gaps()
    frame = pd.DataFrame(X, columns=["age", "bmi", "dose", "score"])
    fitted = over(NETWORK, transformer).set_output(transform="pandas")
    found = fitted.fit_transform(frame, y)
    assert list(found.columns) == fitted.get_feature_names_out().tolist()
    shares = fitted.transform([(frame[:5], None), (frame[5:], None)])
    assert pd.concat([X_k for X_k, _ in shares]).equals(found)


def test_a_pipeline_takes_a_table_and_shares():
    wine = data.load("wine")
    gaps = np.random.default_rng(0).random(wine.X.shape) < 0.1
    X = np.where(gaps, np.nan, wine.X)
    pipeline = make_pipeline(
        NetworkImputer("median", network=NETWORK),
        NetworkScaler(network=NETWORK),
        RVFLClassifier(50, network=NETWORK, random_state=0),
    )
    by_table = clone(pipeline).fit(X, wine.y).predict(X)
    rows = partition.stratified_rows(wine.y, 4, np.random.default_rng(0))
    shares = [(X[own], wine.y[own]) for own in rows]
    by_shares = clone(pipeline).fit(shares).predict(X)
    alone = clone(pipeline).set_params(
        networkimputer__network=None, networkscaler__network=None, rvflclassifier__network=None
    )
    assert np.mean(by_table == wine.y) > 0.9
    assert np.array_equal(by_table, by_shares)
    assert np.array_equal(by_table, alone.fit(X, wine.y).predict(X))


def test_rows_are_dealt_as_a_models_rows_are():
    X, y = table_with_gaps(10)
    fitted = over(NETWORK, NetworkScaler()).set_params(random_state=3)
    dealt = fitted._tables_of(NETWORK, X, y)
    seed = int(np.random.RandomState(3).randint(np.iinfo(np.int32).max, size=1)[0])
    wanted = partition.stratified_rows(y, 4, np.random.default_rng(seed))
    assert all(np.array_equal(a, X[own], True) for a, own in zip(dealt, wanted, strict=True))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (lambda X, y: ([(X, y)], None), "1 shares were given, but this process hosts 4 agents"),
        (lambda X, y: ([(X, y)] * 4, y), "shares bring their own targets"),
        (lambda X, y: ([(X, y)] * 3 + [(X[:, :2], y)], None), "the share of agent 3: X has 2"),
        (lambda X, y: (X[:3], y[:3]), "n_samples=3 rows cannot be dealt to 4 agents"),
        (lambda X, y: (X[:0], y[:0]), "rows"),
        (lambda X, y: ([(X * 1e200, y)] * 4, None), "agent 0: X has values up to 5.0e\\+202"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_lost(given, sentence):
    X, y = table_with_gaps()
    fitted = over(NETWORK, NetworkScaler()).fit(X, y)
    before = fitted.center_
    with pytest.raises(ValueError, match=sentence):
        fitted.fit(*given(X, y))
    assert fitted.center_ is before


@pytest.mark.parametrize("transformer", NUMBERS, ids=repr)
def test_a_column_without_values_is_named(transformer):
    X, _ = table_with_gaps()
    X[:, 2] = np.nan
    frame = pd.DataFrame(X, columns=["age", "bmi", "dose", "score"])
    with pytest.raises(DataError, match="column dose has no value at any agent of the network"):
        over(NETWORK, transformer).fit(frame)


def test_a_table_whose_columns_have_other_names_at_one_agent_is_refused():
    X = np.ones((3, 2))
    shares = [(pd.DataFrame(X, columns=["a", "b"]), None)] * 3
    shares += [(pd.DataFrame(X, columns=["a", "c"]), None)]
    with pytest.raises(DataError, match=r"(?s)the share of agent 3: .*Give all agents the same"):
        over(NETWORK, NetworkScaler()).fit(shares)


@pytest.mark.parametrize(
    "bad",
    [NetworkScaler("best"), NetworkImputer("zero"), NetworkEncoder(handle_unknown="guess")],
)
def test_unknown_settings_are_refused(bad):
    with pytest.raises(InputError, match="is not known: choose one of"):
        bad.fit(np.ones((3, 2)))
