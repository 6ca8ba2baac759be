"""Categories over a network are those of scikit-learn's OneHotEncoder on the pooled rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder

from peerlearn import NetworkEncoder, SimulatedNetwork, graphs
from peerlearn.errors import DataError, InputError

NETWORK = SimulatedNetwork(graphs.ring(3))
COLORS = np.array(["red", "green", "blue", "dark red", "ä"], dtype=object)


def test_columns_are_those_of_scikit_learn(graph):
    X = np.random.default_rng(0).choice(COLORS, (80, 3))
    own = NetworkEncoder(network=SimulatedNetwork(graph)).fit(X)
    rival = OneHotEncoder(sparse_output=False).fit(X)
    assert np.array_equal(own.transform(X), rival.transform(X))
    assert own.get_feature_names_out().tolist() == rival.get_feature_names_out().tolist()


def test_a_category_at_one_agent_only_is_known_to_all():
    shares = [([["a"]], None), ([["b"], ["c"]], None), (np.zeros((0, 1), dtype=object), None)]
    encoder = NetworkEncoder(network=NETWORK).fit(shares)
    assert encoder.categories_ == [["a", "b", "c"]]
    assert [len(X_k) for X_k, _ in encoder.transform(shares)] == [1, 2, 0]


def test_numbers_and_their_texts_are_one_category():
    shares = [
        (pd.DataFrame({"grade": [1, 2]}), None),
        (pd.DataFrame({"grade": [1.0, np.nan]}), None),
        (pd.DataFrame({"grade": ["2", "2.5"]}), None),
    ]
    encoder = NetworkEncoder(network=NETWORK).fit(shares)
    assert encoder.categories_ == [["1", "2", "2.5", None]]
    assert encoder.get_feature_names_out().tolist() == [
        "grade_1", "grade_2", "grade_2.5", "grade_missing",
    ]  # fmt: skip
    new = pd.DataFrame({"grade": [None, True]})
    assert encoder.transform(new).tolist() == [[0, 0, 0, 1], [0, 0, 0, 0]]


def test_unknown_categories_are_zeros_or_an_error():
    X = [["a"], ["b"], ["a"]]
    ignoring = NetworkEncoder(network=NETWORK).fit(X)
    assert ignoring.transform([["z"], [None]]).tolist() == [[0, 0], [0, 0]]
    strict = NetworkEncoder(handle_unknown="error", network=NETWORK).fit(X)
    with pytest.raises(DataError, match="column x0 has the value 'z' in row 1"):
        strict.transform([["a"], ["z"]])


def test_given_categories_are_not_sent():
    shares = [([["m"]], None), ([["f"]], None), ([[""]], None)]
    given = NetworkEncoder([["m", "f", None]], network=NETWORK).fit(shares)
    agreed = NetworkEncoder(network=NETWORK).fit(shares)
    assert given.categories_ == [["m", "f", None]]
    assert agreed.categories_ == [["f", "m", None]]
    assert given.sent_.bytes < agreed.sent_.bytes
    with pytest.raises(InputError, match="categories has lists for 2 columns, but X has 1"):
        NetworkEncoder([["m"], ["f"]], network=NETWORK).fit(shares)
    with pytest.raises(InputError, match=r"the categories of column x0 are .*different values"):
        NetworkEncoder([["m", "m"]], network=NETWORK).fit(shares)


def test_the_first_category_can_be_left_out():
    encoder = NetworkEncoder(drop_first=True, network=NETWORK).fit([["a"], ["b"], ["c"]])
    assert encoder.transform([["a"], ["c"]]).tolist() == [[0, 0], [0, 1]]
    assert encoder.get_feature_names_out().tolist() == ["x0_b", "x0_c"]


def test_free_text_is_refused_with_its_column_and_not_sent():
    texts = np.array([[f"patient {n}", "a"] for n in range(12)], dtype=object)
    shares = [(texts[:2], None), (texts, None), (texts[:1], None)]
    frames = [(pd.DataFrame(X, columns=["note", "kind"]), None) for X, _ in shares]
    with pytest.raises(DataError, match=r"column note has more than 10 .* at agent 1, like free"):
        NetworkEncoder(max_categories=10, network=NETWORK).fit(frames)
    apart = [(pd.DataFrame({"note": texts[n : n + 4, 0]}), None) for n in (0, 4, 8)]
    with pytest.raises(DataError, match="column note has 12 categories in the whole network"):
        NetworkEncoder(max_categories=10, network=NETWORK).fit(apart)


def test_texts_with_signs_of_their_own_survive():
    values = ["1t2", "g", "n1", "3", " t", "a\x00", "日本", ""]
    encoder = NetworkEncoder(network=NETWORK).fit(np.array(values, dtype=object)[:, None])
    assert set(encoder.categories_[0]) == {"1t2", "g", "n1", "3", "t", "a\x00", "日本", None}
