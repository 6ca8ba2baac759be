"""peerlearn summary: standard errors of a saved model, in the units of the table."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from click.testing import CliRunner

from peerlearn import (
    GLMRegressor,
    LogisticClassifier,
    PreparedModel,
    RVFLClassifier,
    SimulatedNetwork,
    TablePreparer,
    graphs,
)
from peerlearn.cli import main
from peerlearn.models import archive
from tests.support.sites_with_effects import COUNTS, THREE, TWO, X, by_site, shares_of

NAMES = ["age", "pressure", "rate"]
CENTER = X.mean(axis=0)
SCALE = X.std(axis=0)
Z = (X - CENTER) / SCALE


def net():
    return SimulatedNetwork(graphs.ring(4))


def summary(*arguments):
    return CliRunner().invoke(main, ["summary", *map(str, arguments)])


def table_of(path, *options):
    file = path.parent / "table.csv"
    done = summary(path, *options, "--output", file)
    assert done.exit_code == 0, done.output
    return pd.read_csv(io.StringIO(file.read_text()), index_col="name")


def save(model, folder, **more):
    path = folder / "model.npz"
    archive.save(model, path, columns=NAMES, target="outcome", **more)
    return path


@pytest.mark.parametrize(
    ("kind", "y", "family"),
    [
        (LogisticClassifier(0.0), TWO, sm.families.Binomial()),
        (GLMRegressor("poisson", alpha=0.0), COUNTS, sm.families.Poisson()),
    ],
)
def test_columns_are_in_their_own_units_although_sites_scaled_them(tmp_path, kind, y, family):
    model = kind.set_params(network=net()).fit(shares_of(y, Z))
    found = table_of(save(model, tmp_path, center=CENTER, scale=SCALE))
    wanted = sm.GLM(y, sm.add_constant(X), family=family).fit(tol=1e-14, maxiter=100)
    assert list(found.index) == ["intercept", *NAMES]
    np.testing.assert_allclose(found["coefficient"], wanted.params, rtol=1e-6)
    np.testing.assert_allclose(found["standard_error"], wanted.bse, rtol=1e-6)
    np.testing.assert_allclose(found["p_value"], wanted.pvalues, rtol=1e-4, atol=1e-12)
    np.testing.assert_allclose(found[["from", "to"]], wanted.conf_int(), rtol=1e-5, atol=1e-8)


def test_a_prepared_model(tmp_path):
    ward = np.array(["a", "b", "c"])[np.arange(len(TWO)) % 3]
    raw = np.column_stack([X.astype(object), ward])
    preparer = TablePreparer(names=[*NAMES, "ward"], drop_first=True, network=net())
    shares = list(zip(by_site(raw), by_site(TWO), strict=True))
    prepared = preparer.fit_transform(shares)
    model = LogisticClassifier(0.0, network=net()).fit(prepared)
    PreparedModel(preparer, model, "outcome").save(tmp_path / "model.npz")
    found = table_of(tmp_path / "model.npz", "--errors", "sites", "--level", "0.9")
    assert list(found.index) == ["intercept", *NAMES, "ward_b", "ward_c"]
    design = sm.add_constant(np.column_stack([X, ward == "b", ward == "c"]).astype(float))
    wanted = sm.GLM(TWO, design, family=sm.families.Binomial()).fit(tol=1e-14, maxiter=100)
    np.testing.assert_allclose(found["coefficient"], wanted.params, rtol=1e-6)
    half = (found["to"] - found["from"]) / 2 / found["standard_error"]
    np.testing.assert_allclose(half, 1.6449, rtol=1e-4)


def test_it_prints_as_a_table_with_the_names_of_columns(tmp_path):
    model = LogisticClassifier(0.0, network=net()).fit(shares_of(THREE, Z))
    done = summary(save(model, tmp_path, center=CENTER, scale=SCALE))
    assert done.exit_code == 0, done.output
    assert "pressure, 2" in done.output
    assert "400 rows of 4 sites, errors by the model" in done.output


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (LogisticClassifier(1.0), "fit with alpha=0"),
        (
            RVFLClassifier(9, random_state=0),
            "is a RVFLClassifier, which has no standard errors: train",
        ),
    ],
)
def test_models_without_standard_errors(tmp_path, model, sentence):
    done = summary(save(model.fit(Z, TWO), tmp_path))
    assert done.exit_code == 2
    assert sentence in done.stderr
