"""Fillings over a network are those of scikit-learn's SimpleImputer on the pooled rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from peerlearn import NetworkEncoder, NetworkImputer, SimulatedNetwork, graphs

NETWORK = SimulatedNetwork(graphs.ring(4))


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent"])
@pytest.mark.parametrize("indicator", [False, True])
def test_fillings_are_those_of_scikit_learn(graph, strategy, indicator):
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((100, 4)) * [1, 10, 100, 3], 1)
    X[rng.random(X.shape) < 0.3] = np.nan
    X[:, 2] = np.arange(100)  # no gaps: no indicator
    own = NetworkImputer(
        strategy, add_indicator=indicator, accuracy=0, network=SimulatedNetwork(graph)
    )
    rival = SimpleImputer(strategy=strategy, add_indicator=indicator)
    assert np.allclose(own.fit_transform(X), rival.fit_transform(X), rtol=1e-13, atol=0)


def test_gaps_at_one_agent_only_give_all_agents_the_indicator():
    shares = [(np.ones((2, 2)), None)] * 3 + [(np.array([[np.nan, 5.0]]), None)]
    imputer = NetworkImputer(add_indicator=True, network=NETWORK).fit(shares)
    assert imputer.indicated_.tolist() == [0]
    assert imputer.transform(shares)[0][0].shape == (2, 3)
    assert imputer.get_feature_names_out(["a", "b"]).tolist() == ["a", "b", "a_missing"]


def test_an_agent_without_values_in_a_column_is_helped_by_the_others():
    shares = [(np.array([[np.nan]] * 3), None), *[(np.array([[value]]), None) for value in "129"]]
    imputer = NetworkImputer("median", network=NETWORK).fit(shares)
    assert imputer.transform(shares)[0][0].tolist() == [[2.0]] * 3


def test_the_most_frequent_text_fills_gaps():
    frame = pd.DataFrame({"sex": ["f", None, "m", "f", "m", "m"], "site": list("abcabc")})
    network = SimulatedNetwork(graphs.ring(3))
    imputer = NetworkImputer("most_frequent", network=network).fit(frame)
    assert imputer.transform(frame)[1, 0] == "m"
    assert imputer.statistics_.tolist() == ["m", "a"]
    encoded = make_pipeline(imputer, NetworkEncoder(network=network)).fit_transform(frame)
    assert encoded.shape == (6, 5)
