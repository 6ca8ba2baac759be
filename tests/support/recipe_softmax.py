"""The test file of CONTRIBUTING's model, for a copy of the package that has it: see
test_house.py.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression

from peerlearn import LBFGS, SimulatedNetwork, data, graphs
from peerlearn.cli import main
from peerlearn.errors import InputError
from peerlearn.lab import read
from peerlearn.models import archive
from peerlearn.sites.training import make_model
from tests.support.site_processes import run, write_sites

pytestmark = pytest.mark.processes

softmax = import_module("peerlearn.models.softmax")  # only the copy has it
SITE = {
    "kind": "SoftmaxClassifier",
    "random_state": 0,
    "alpha": 2.0,
    "solver": {"name": "lbfgs", "tolerance": 1e-5},
}
COMPARISON = """
title = "Softmax regression"
metrics = ["error", "distance"]
[[data]]
name = "{name}"
scale = "standard"
[[models]]
name = "ours"
kind = "{kind}"
solver = {{ name = "lbfgs", tolerance = 1e-5 }}
[[networks]]
name = "ring"
graph = "ring"
agents = 4
"""


@pytest.mark.parametrize("name", ["iris", "breast-cancer"])
def test_the_answer_of_scikit_learn_in_one_place(name):
    table = data.load(name)
    X = (table.X - table.X.mean(axis=0)) / table.X.std(axis=0)
    network = SimulatedNetwork(graphs.ring(5))
    model = softmax.SoftmaxClassifier(2.0, solver=LBFGS(1e-5), network=network, random_state=0).fit(
        X, table.y
    )
    answer = LogisticRegression(C=1 / 2.0, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(
        softmax.with_constant(X), table.y
    )
    expected = answer.predict_proba(softmax.with_constant(X))
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), answer.predict(softmax.with_constant(X)))
    assert model.report_.sent.bytes > 0


@pytest.mark.parametrize("kind", ["SoftmaxClassifier", "Softmax"])
def test_comparisons(written, kind):
    comparison = read(written(COMPARISON.format(name="wine", kind=kind)))
    (trial,) = comparison.trials()
    values = comparison.protocol.run(trial).values
    assert values["error"] < 0.1
    assert values["distance"] < 1e-5  # to the same model in one place


def test_a_mistake_in_a_comparison_is_found_before_any_run(written):
    with pytest.raises(InputError, match=r"models\['ours'\]\.kind .*did you mean Softmax"):
        read(written(COMPARISON.format(name="wine", kind="Softmaks")))


def test_sites_train_it_and_what_they_save_predicts(tmp_path):
    table = data.load("iris")
    columns = list("abcd")
    for k, name in enumerate(("north", "south")):
        frame = pd.DataFrame(table.X[k::2], columns=columns).assign(kind=table.y[k::2])
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    files = {name: {"file": f"{name}.csv", "target": "kind"} for name in ("north", "south")}
    write_sites(tmp_path, [*files], SITE, certificates=False, data=files)
    done = run(
        *(("agent", f"{name}.toml", "--insecure-loopback") for name in files), folder=tmp_path
    )
    assert [code for code, _ in done] == [0, 0], done
    saved = archive.load(tmp_path / "north" / "model.npz")
    network = SimulatedNetwork(graphs.linear(2))
    scaled = (table.X - saved.center) / saved.scale
    wanted = make_model(SITE, network).fit([(scaled[k::2], table.y[k::2]) for k in range(2)])
    np.testing.assert_allclose(saved.model.coefficients_[0], wanted.coefficients_[0], atol=1e-6)
    np.testing.assert_array_equal(saved.predict(table.X), wanted.predict(scaled))
    told = CliRunner().invoke(
        main, ["predict", str(tmp_path / "south/model.npz"), str(tmp_path / "north.csv")]
    )
    assert told.exit_code == 0, told.stderr
    assert float(told.stderr.split()[1]) > 0.9  # accuracy
