"""Tables as sites have them: kinds are agreed on, gaps filled, and bad columns named."""

from __future__ import annotations

import warnings
from datetime import date

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from peerlearn import RVFLClassifier, SimulatedNetwork, TablePreparer, data, graphs
from peerlearn.errors import DataError, InputError

NETWORK = SimulatedNetwork(graphs.ring(4))


def frames(**options):
    return [
        (pd.DataFrame(X, columns=data.HOSPITAL_COLUMNS), y)
        for X, y in data.hospital_tables(**options)
    ]


@pytest.mark.parametrize("agents", [0, 2])
def test_scikit_learns_rules_hold(agents):
    network = SimulatedNetwork(graphs.ring(agents)) if agents else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(TablePreparer(network=network), on_skip=None)


def test_a_mixed_table_becomes_what_scikit_learn_makes_of_the_pooled_rows():
    shares = frames()
    preparer = TablePreparer(network=NETWORK, accuracy=0).fit(shares)
    assert preparer.kinds_ == {
        "age": "number",
        "sex": "category",
        "pain": "category",
        "pressure": "number",
        "cholesterol": "number",
        "smoker": "number",
        "admitted": "date",
    }
    pooled = pd.concat([X for X, _ in shares])
    numbers = pooled[["age", "pressure", "cholesterol", "smoker"]].astype(float)
    days = pd.to_datetime(pooled["admitted"]) - pd.Timestamp("1970-01-01")
    numbers["admitted"] = days / pd.Timedelta(days=1)
    scaler = StandardScaler().fit(numbers.to_numpy())
    filled = scaler.transform(SimpleImputer(strategy="median").fit_transform(numbers.to_numpy()))
    gaps = numbers.isna()[["pressure", "cholesterol"]].to_numpy(float)
    texts = pooled[["sex", "pain"]].fillna("zz")  # last, as a gap is
    columns = OneHotEncoder(sparse_output=False).fit_transform(texts)
    wanted = np.hstack([filled, gaps, columns])
    assert np.allclose(preparer.transform(pooled), wanted, rtol=1e-9, atol=1e-9)
    assert preparer.get_feature_names_out().tolist() == [
        "age", "pressure", "cholesterol", "smoker", "admitted",
        "pressure_missing", "cholesterol_missing",
        "sex_female", "sex_male", "sex_missing",
        "pain_atypical", "pain_none", "pain_silent", "pain_typical",
    ]  # fmt: skip


def test_a_network_gives_what_one_place_gives():
    shares = frames()
    together = TablePreparer(network=NETWORK).fit(shares)
    alone = TablePreparer().fit(pd.concat([X for X, _ in shares]))
    X = shares[-1][0]
    assert np.allclose(together.transform(X), alone.transform(X), rtol=1e-12, atol=1e-12)


def test_a_pipeline_learns_from_shares_and_predicts_raw_rows():
    shares = frames()
    model = RVFLClassifier(60, network=NETWORK, random_state=0)
    pipeline = make_pipeline(TablePreparer(network=NETWORK), model).fit(shares)
    new = frames(seed=1)
    assert np.mean([pipeline.score(X, y) for X, y in new]) > 0.7
    raw = pd.DataFrame([[61, "unheard of", None, None, 250, True, "2023-05-01"]])
    raw.columns = data.HOSPITAL_COLUMNS
    assert pipeline.predict(raw) in (0, 1)


def change(shares, agent, **columns):
    return [(X.assign(**columns) if k == agent else X, y) for k, (X, y) in enumerate(shares)]


@pytest.mark.parametrize(
    ("agent", "columns", "sentence"),
    [
        (2, {"age": "old"}, "column age has numbers at agents 0, 1 and 3 but texts at agent 2: "),
        (1, {"admitted": 7}, "column admitted has numbers at agent 1 but dates at agents 0, 2 "),
        (3, {"pain": "a long story " * 9}, "column pain has free text at agent 3 .* none of it"),
        (3, {"sex": [f"p{n}" for n in range(150)]}, "column sex has free text at agent 3 "),
    ],
)
def test_a_column_of_another_kind_is_named_with_its_agent(agent, columns, sentence):
    preparer = TablePreparer(network=NETWORK).fit(frames())
    before = preparer.kinds_
    with pytest.raises(DataError, match=sentence):
        preparer.fit(change(frames(), agent, **columns))
    assert preparer.kinds_ is before


def test_a_column_that_is_empty_everywhere_is_named():
    shares = [(X.assign(pressure=None), y) for X, y in frames()]
    with pytest.raises(DataError, match="column pressure has no value at any agent"):
        TablePreparer(network=NETWORK).fit(shares)


def test_what_cannot_be_guessed_is_declared():
    shares = [(X.assign(ward=k % 2 + 1, note=f"p{k}" * 40), y) for k, (X, y) in enumerate(frames())]
    columns = {"ward": "category", "note": "drop", "sex": ["male", "female"], "admitted": "date"}
    preparer = TablePreparer(columns, network=NETWORK).fit(shares)
    assert preparer.kinds_["ward"] == "category"
    names = preparer.get_feature_names_out().tolist()
    assert names[-2:] == ["ward_1", "ward_2"]
    assert names[7:9] == ["sex_male", "sex_female"]
    assert "note" not in "".join(names)
    assert preparer.transform(shares[0][0]).shape[1] == len(names)


def test_values_of_columns_with_declared_categories_are_not_sent():
    columns = {"sex": ["male", "female"], "pain": ["none", "typical", "atypical", "silent"]}
    declared = TablePreparer(columns, network=NETWORK).fit(frames())
    agreed = TablePreparer(network=NETWORK).fit(frames())
    assert declared.sent_.bytes < agreed.sent_.bytes


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"sex": "number"}, "column sex is declared as 'number', but has other cells at agents 0"),
        ({"agee": "number"}, "column agee is declared, but X has none.*age"),
        ({"sex": ["f", "f"]}, "column sex is declared with the categories .* different values"),
        ({"age": "numbers"}, "column age is declared as 'numbers': give one of number, date"),
    ],
)
def test_wrong_declarations_are_refused(columns, sentence):
    with pytest.raises(InputError, match=sentence):
        TablePreparer(columns, network=NETWORK).fit(frames())


def test_a_cell_that_is_no_number_is_named_when_rows_are_transformed():
    preparer = TablePreparer(network=NETWORK).fit(frames())
    X = frames()[0][0]
    X.loc[3, "age"] = "old"
    with pytest.raises(DataError, match="column age has 'old' in row 3, where a number is needed"):
        preparer.transform(X)


def test_numbers_and_dates_are_read_from_texts():
    rows = [
        ["1.5", "2024-01-02", "True"],
        ["", "2024-01-01T12:00", "false"],
        ["2.5", "2024-01-03T00:00+00:00", ""],
    ]
    preparer = TablePreparer().fit(np.array(rows, dtype=object))
    assert list(preparer.kinds_.values()) == ["number", "date", "number"]
    other = np.array([[1.5, date(2024, 1, 2), True], [None, np.datetime64("2024-01-01T12:00"), 0]])
    assert np.array_equal(preparer.transform(other), preparer.transform(rows[:2]))


def test_constant_columns_are_no_trouble():
    shares = [(X.assign(one=1.0, word="same"), y) for X, y in frames()]
    preparer = TablePreparer(network=NETWORK).fit(shares)
    prepared = pd.DataFrame(
        preparer.transform(shares[0][0]), columns=preparer.get_feature_names_out()
    )
    assert (prepared["one"] == 0).all()
    assert (prepared["word_same"] == 1).all()
