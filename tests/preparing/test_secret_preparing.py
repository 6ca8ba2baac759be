"""Tables that are prepared from secret sums: the numbers of open sums, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import (
    NetworkEncoder,
    NetworkImputer,
    NetworkScaler,
    RVFLRegressor,
    SimulatedNetwork,
    TablePreparer,
    graphs,
    quantiles,
)
from peerlearn.algorithms import secret_sums
from peerlearn.algorithms.secret_sums import one_session
from peerlearn.algorithms.standardise import mean_and_deviation
from peerlearn.errors import DataError, InputError
from peerlearn.testing.cases import preparing

GRAPH = graphs.erdos_renyi(5, 0.5, seed=0)
NUMBERS = [(preparing.number_table(agent), None) for agent in range(5)]
MIXED = [(preparing.mixed_table(agent), None) for agent in range(5)]
COLORS = list(preparing.COLORS)


def open_network():
    return SimulatedNetwork(GRAPH)


def secret_network():
    return SimulatedNetwork(GRAPH, secrecy="sums", colluders=2)


PREPARERS = {
    "standard": (NetworkScaler(), NUMBERS),
    "robust": (NetworkScaler("robust"), NUMBERS),
    "range": (NetworkScaler("range", accuracy=0), NUMBERS),
    "mean": (NetworkImputer("mean", add_indicator=True), NUMBERS),
    "median": (NetworkImputer("median"), NUMBERS),
    "table": (TablePreparer({"x3": COLORS, "x4": COLORS}, drop_first=True), MIXED),
}


@pytest.mark.parametrize("name", PREPARERS)
def test_prepared_tables_are_those_without_secrecy(name):
    transformer, shares = PREPARERS[name]
    found = []
    for network in (open_network(), secret_network()):
        fitted = transformer.set_params(network=network).fit(shares)
        found.append(fitted.transform(shares[3][0]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-13, atol=1e-13)


def test_given_categories_need_no_secret_sum(monkeypatch):
    monkeypatch.setattr(secret_sums, "open_session", None)  # an error if it was called
    colors = [(preparing.color_table(agent), None) for agent in range(5)]
    encoder = NetworkEncoder([COLORS, COLORS], network=secret_network()).fit(colors)
    assert encoder.transform(colors[0][0]).shape == (7, 10)


def test_quantiles_and_standardising_are_those_without_secrecy():
    tables = [np.nan_to_num(X) for X, _ in NUMBERS]
    for found, wanted in zip(
        mean_and_deviation(secret_network(), tables),
        mean_and_deviation(open_network(), tables),
        strict=True,
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)
    found = quantiles(secret_network(), tables, [0.3, 1.0])
    np.testing.assert_array_equal(found, quantiles(open_network(), tables, [0.3, 1.0]))


def test_a_transformer_and_a_model_in_one_block_exchange_keys_once(monkeypatch):
    opened = []
    real = secret_sums.open_session
    monkeypatch.setattr(secret_sums, "open_session", lambda n: opened.append(n) or real(n))
    network = secret_network()
    tables = [(np.nan_to_num(X), X[:, 1] > 0) for X, _ in NUMBERS]
    with one_session(network):
        scaled = NetworkScaler(network=network).fit(tables).transform(tables)
        numbers = [(X, X.sum(axis=1)) for X, _ in scaled]
        model = RVFLRegressor(
            4, 1.0, features="fixed", solver="gram", network=network, random_state=0
        ).fit(numbers)
    assert opened == [network]
    assert model.report_.secrecy.totals[0] == "number of values and sum of each column"
    assert len(model.report_.secrecy.totals) == 4


REFUSED = {
    "'mean' or 'median'": (NetworkImputer("most_frequent"), NUMBERS),
    "give the categories of each column": (NetworkEncoder(), NUMBERS),
    "column x3 would be shown": (TablePreparer(), MIXED),
    "column x4 would be shown": (TablePreparer({"x3": COLORS, "x4": "category"}), MIXED),
    "use 'mean'": (TablePreparer({"x3": "drop", "x4": "drop"}, strategy="most_frequent"), MIXED),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_would_show_values_is_refused_before_the_first_message(words):
    transformer, shares = REFUSED[words]
    network = secret_network()
    with pytest.raises(InputError, match=words):
        transformer.set_params(network=network).fit(shares)
    assert network.ledger.messages == 0


def test_agents_whose_columns_differ_in_kind_are_not_named():
    shares = [(np.array([[1.0], [2.0]], dtype=object), None) for _ in range(5)]
    shares[3] = (np.array([["2024-01-31"]], dtype=object), None)
    with pytest.raises(DataError, match="at some agents, and of another kind at others"):
        TablePreparer(network=secret_network()).fit(shares)


def test_columns_without_values_and_networks_without_rows_are_refused():
    shares = [(np.full((2, 1), np.nan), None)] * 5
    with pytest.raises(DataError, match="no value at any agent"):
        NetworkScaler(network=secret_network()).fit(shares)
    with pytest.raises(DataError, match="no agent of the network has a row"):
        mean_and_deviation(secret_network(), [np.zeros((0, 2))] * 5)
