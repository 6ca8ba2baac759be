"""Echo state networks in a file: the same outputs and forecasts to the last bit, and nothing taken
on trust.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peerlearn import ESNRegressor, SimulatedNetwork, graphs
from peerlearn.cli.predictions import predict
from peerlearn.errors import DataError, InputError, PeerlearnError
from peerlearn.models import archive
from tests.support.archives import arrays_in, changed, tampered

RNG = np.random.default_rng(0)
X = [RNG.uniform(-1, 1, (n, 2)) for n in (40, 31, 52)]
NEXT = [np.roll(x, -1, axis=0) for x in X]
FEEDBACK = {"feedback_scaling": 0.4, "teacher_scaling": 0.3, "leak": 0.7}
NETWORK = {"network": SimulatedNetwork(graphs.ring(3)), "solver": "local"}


def fitted(**options):
    return ESNRegressor(**{"n_reservoir": 9, "washout": 4, "random_state": 0, **options}).fit(
        X, NEXT
    )


@pytest.fixture(scope="module", params=[{}, FEEDBACK], ids=["open", "feedback"])
def file(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "m.npz"
    archive.save(fitted(**request.param), path)
    return path


@pytest.mark.parametrize(
    "options", [{}, FEEDBACK, NETWORK, {"density": 0.05, "n_reservoir": 150, "alpha": 1.0}], ids=str
)
def test_the_same_outputs_and_forecasts_to_the_last_bit(tmp_path, options):
    model = fitted(**options)
    archive.save(model, tmp_path / "m.npz")
    loaded = archive.load(tmp_path / "m.npz").model
    known = [d[:4] for d in NEXT]
    for one, other in zip(loaded.predict(X, known), model.predict(X, known), strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(loaded.forecast(10), model.forecast(10))
    assert np.array_equal(loaded.forecast(10, X[0], NEXT[0]), model.forecast(10, X[0], NEXT[0]))
    assert loaded.nrmse(X, NEXT) == model.nrmse(X, NEXT)
    assert loaded.sparsity_ == model.sparsity_
    assert np.array_equal(loaded.coefficients_, model.coefficients_[:1])
    archive.save(loaded, tmp_path / "again.npz")
    assert np.array_equal(
        archive.load(tmp_path / "again.npz").model.forecast(10), model.forecast(10)
    )


def test_one_output_and_a_model_in_the_middle_of_a_stream(tmp_path):
    model = ESNRegressor(9, random_state=0)
    for n in range(0, 40, 8):
        model.partial_fit(X[0][n : n + 8, :1], NEXT[0][n : n + 8, 0])
    archive.save(model, tmp_path / "m.npz")
    loaded = archive.load(tmp_path / "m.npz").model
    assert loaded.predict(X[1][:, :1]).shape == (31,)
    assert np.array_equal(loaded.predict(X[1][:, :1]), model.predict(X[1][:, :1]))
    assert np.array_equal(loaded.forecast(6), model.forecast(6))
    assert loaded.forecast(6).shape == (6,)


def test_columns_that_were_standardised(tmp_path):
    model = fitted()
    archive.save(
        model, tmp_path / "m.npz", columns=["a", "b"], center=np.ones(2), scale=np.full(2, 2.0)
    )
    saved = archive.load(tmp_path / "m.npz")
    assert np.array_equal(saved.predict(2 * X[0] + 1), model.predict(X[0]))
    with pytest.raises(
        DataError,
        match=r"what was given is no table of numbers .*: give one table with the model's",
    ):
        saved.predict(X)
    with pytest.raises(
        DataError, match=r"rows of shape \(2, 31, 2\) do not fit the model: give a table"
    ):
        saved.predict([x[:31] for x in X[:2]])


@pytest.mark.parametrize(
    "done", [{"center": np.ones(2)}, {"scale": np.full(2, 2.0)}], ids=["center", "scale"]
)
def test_outputs_are_no_next_inputs_where_columns_were_standardised(tmp_path, done):
    archive.save(fitted(), tmp_path / "m.npz", **done)
    loaded = archive.load(tmp_path / "m.npz").model
    for history in ((), (X[0],), (X[0], NEXT[0])):
        with pytest.raises(
            InputError,
            match="takes inputs that were standardised and gives outputs in the units of",
        ):
            loaded.forecast(5, *history)
    assert np.array_equal(loaded.fit(X, NEXT).forecast(5), fitted().forecast(5))


@pytest.mark.parametrize(("washout", "lines"), [(0, 50), (12, 50), (12, 13), (12, 5)])
def test_rows_of_the_washout_do_not_count_in_the_score(tmp_path, washout, lines):
    x = X[2][:lines]
    y = x[:, 0] + np.concatenate([[0], x[:-1, 1]])
    model = ESNRegressor(9, washout=washout, random_state=0).fit(
        X[2], X[2][:, 0] + np.roll(X[2][:, 1], 1)
    )
    archive.save(model, tmp_path / "m.npz", columns=["a", "b"], target="c")
    np.savetxt(
        tmp_path / "r.csv",
        np.column_stack([x, y]),
        delimiter=",",
        header="a,b,c",
        comments="",
        fmt="%.17g",
    )
    found = predict(tmp_path / "m.npz", tmp_path / "r.csv")
    after = " after the washout of 12" if washout else ""
    if lines == 50:
        assert found.score == f"R2 {model.score(x, y):.4f} on {50 - washout} rows{after}"
    else:
        assert found.score == f"no R2: it takes two rows{after} at least"
    assert found.rows == lines


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"drop": ["W"]}, "it has no array 'W', only W_fb, W_in, about, coefficients, last, state"),
        ({"W_in": np.zeros((9, 4))}, r"W_in has shape \(9, 4\), which is not \(any, 3\)"),
        ({"W": np.zeros((9, 8))}, r"W has shape \(9, 8\), which is not \(9, 9\)"),
        ({"W": np.full((9, 9), np.nan)}, "W has NaN or infinite values"),
        (
            {"W": np.full((9, 9), 1e200)},
            r"W has values up to 1\.0e\+200, where no training goes beyond",
        ),
        ({"W_fb": np.zeros((9, 3))}, r"coefficients has shape \(12, 2\), which is not \(12, 3\)"),
        (
            {"coefficients": np.zeros((11, 2))},
            r"coefficients has shape \(11, 2\), which is not \(12, 2\)",
        ),
        ({"state": np.zeros(8)}, r"state has shape \(8,\), which is not \(9\)"),
        ({"last": np.full(2, np.inf)}, "last has NaN or infinite values"),
        ({"last": np.zeros(2, dtype=int)}, "last has type int64, which is not float64"),
        ({"about": {"leak": 0.0}}, r"its leak is 0\.0, which is not between"),
        ({"about": {"leak": np.nan}}, "its leak is nan, which is not between"),
        ({"about": {"scaling": -1.0}}, r"its scaling is -1\.0, which is not between"),
        ({"about": {"scaling": "large"}}, "its scaling is 'large', which is no float"),
        ({"about": {"largest": -1.0}}, r"its largest is -1\.0, which is not between 0 and 1e\+100"),
        ({"about": {"single_output": True}}, "it should have one output, but W_fb is for 2"),
        ({"about": {"n_features": 3}}, r"W_in has shape \(9, 3\), which is not \(any, 4\)"),
        ({"about": {"parameters": {"washout": "abc"}}}, "washout is 'abc': give a whole number"),
        (
            {"about": {"parameters": {"washout": -5}}},
            "washout is -5: give a whole number, 0 or more",
        ),
        ({"about": {"parameters": {"leak": 10**400}}}, "leak is 1000"),
        ({"about": {"parameters": {"penalty": "l0"}}}, "penalty is 'l0'"),
        ({"drop": ["last"]}, "it has no array 'last'"),
        ({"about": {"parameters": {"units": 3}}}, "it has the parameter 'units' with the value 3"),
    ],
)
def test_archives_whose_parts_do_not_fit(file, tmp_path, change, sentence):
    path = changed(file, tmp_path / "m.npz", **change)
    with pytest.raises(
        DataError, match=rf"m\.npz holds no model that can be used, because .*{sentence}.*: copy it"
    ):
        archive.load(path)


@settings(deadline=None)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore:outputs that are fed back")
def test_other_arrays_and_entries_are_refused_or_usable(file, data):
    path = tampered(file, data)
    try:
        model = archive.load(path).model
    except PeerlearnError:
        return
    said = model.predict(np.zeros((3, 2)), np.zeros((0, 2) if model._n_outputs == 2 else 0))
    assert len(said) == 3


def test_machines_of_another_byte_order(file, tmp_path):
    other = {
        name: array.astype(">f8") for name, array in arrays_in(file).items() if array.dtype == "f8"
    }
    path = changed(file, tmp_path / "other.npz", **other)
    ours, theirs = (archive.load(each).model for each in (file, path))
    assert np.array_equal(ours.forecast(5), theirs.forecast(5))
