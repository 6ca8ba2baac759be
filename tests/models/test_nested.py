"""Settings of algorithms as parameters of models: solver__tolerance, in grids too."""

from __future__ import annotations

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from peerlearn import (
    ADMM,
    Averaging,
    ConjugateGradient,
    ESNRegressor,
    RVFLClassifier,
    S3VMClassifier,
    SimulatedNetwork,
    data,
    graphs,
)
from peerlearn.errors import InputError


def test_settings_are_parameters():
    model = RVFLClassifier(solver=ConjugateGradient(1e-3), alpha=1.0, activation="sigmoid")
    assert model.get_params()["solver__tolerance"] == 1e-3
    assert "solver__tolerance" not in model.get_params(deep=False)
    before = model.solver
    model.set_params(solver__tolerance=1e-4, alpha=2.0)
    assert model.solver == ConjugateGradient(1e-4)
    assert before == ConjugateGradient(1e-3)  # objects of others do not change
    assert model.alpha == 2.0
    assert clone(model).solver == model.solver


def test_names_have_settings_too():
    model = RVFLClassifier(solver="admm", alpha=1.0, activation="sigmoid")
    assert model.get_params()["solver__rho"] is None
    assert model.set_params(solver__rho=0.5).solver == ADMM(rho=0.5)
    model.set_params(solver="cg", solver__tolerance=1e-3)
    assert model.solver == ConjugateGradient(1e-3)
    assert ESNRegressor().set_params(stream__every=5).stream.every == 5
    assert S3VMClassifier().get_params()["solver__tolerance"] > 0


def test_settings_of_settings():
    model = RVFLClassifier(
        solver=ADMM(averaging=Averaging("plain")), alpha=1.0, activation="sigmoid"
    )
    model.set_params(solver__averaging__tolerance=1e-9)
    assert model.solver == ADMM(averaging=Averaging("plain", 1e-9))
    model.set_params(solver__averaging=Averaging("chebyshev"), solver__averaging__tolerance=1e-3)
    assert model.solver.averaging == Averaging("chebyshev", 1e-3)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"solver__tolerence": 1}, "ConjugateGradient has no setting 'tolerence', only tolerance"),
        ({"solver__averaging__x": 1}, "str has no setting 'x', only nothing"),
        ({"solver__tolerance": -1}, "tolerance"),
        ({"solve__tolerance": 1}, "Invalid parameter 'solve'"),
    ],
)
def test_what_is_refused(settings, why):
    with pytest.raises(ValueError, match=why):
        RVFLClassifier(solver="cg", alpha=1.0, activation="sigmoid").set_params(**settings)
    with pytest.raises(InputError, match="solver 'nothing' is not known"):
        RVFLClassifier(solver="nothing", alpha=1.0, activation="sigmoid").set_params(
            solver__tolerance=1
        )
    assert (
        RVFLClassifier(solver="nothing", alpha=1.0, activation="sigmoid").get_params()["solver"]
        == "nothing"
    )


def test_a_grid_over_them():
    iris = data.load("iris")
    network = SimulatedNetwork(graphs.ring(3))
    model = RVFLClassifier(
        10, solver="cg", network=network, random_state=0, alpha=1.0, activation="sigmoid"
    )
    grid = {"solver__tolerance": [1e-2, 1e-6], "alpha": [0.1, 10.0]}
    search = GridSearchCV(model, grid, cv=3).fit(iris.X, iris.y)
    assert set(search.best_params_) == set(grid)
    best = search.best_estimator_
    assert best.solver == ConjugateGradient(search.best_params_["solver__tolerance"])
