"""The protocol of columns: who has which, how many hidden units each, and what is measured."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from peerlearn import (
    RVFLClassifier,
    SharingADMM,
    SimulatedNetwork,
    VerticalRVFLClassifier,
    graphs,
    partition,
)
from peerlearn.errors import InputError
from peerlearn.lab.description.comparison import Data, protocol_named
from peerlearn.lab.training.splitting import split
from tests.support.lab_given import classes, comparison, model, numbers, ran
from tests.support.readout_problems import closed_form

AGENTS = 4


def by_hand(trial):
    """Training and test rows, each agent's columns of both."""
    table = trial.data.given
    train, test = split(trial, table.y, stratify=True)
    blocks = partition.column_blocks(table.X.shape[1], AGENTS, seed=trial.seed("deal"))
    tables, tests = ([table.X[rows][:, own] for own in blocks] for rows in (train, test))
    return tables, table.y[train], tests, table.y[test]


@pytest.mark.parametrize(("units", "each"), [("each", 10), ("together", 3)])
@pytest.mark.parametrize("solver", ["local", "ensemble", "dual"])
def test_over_a_network_as_by_hand(units, each, solver):
    whole = comparison(
        classes(noise=1.5), model(kind="VerticalRVFL", n_hidden=10, alpha=0.1, solver=solver),
        protocol="columns", settings={"units": units},
    )  # fmt: skip
    for trial, outcome in ran(whole):
        tables, y, tests, y_test = by_hand(trial)
        network = SimulatedNetwork(graphs.ring(AGENTS))
        expected = VerticalRVFLClassifier(
            each, 0.1, solver=solver, network=network, random_state=trial.seed("model")
        )
        scores = expected.fit(tables, y).agent_scores(tests, y_test)
        assert outcome.agents["error"] == pytest.approx(1 - scores)
        assert outcome.sent == expected.report_.sent


FIXED = {"alpha": 1.0, "activation": "sigmoid"}


def test_in_one_place_and_alone():
    whole = comparison(
        classes(noise=1.5),
        model("C-RVFL", "RVFL", "centralised", n_hidden=10, **FIXED),
        model("NB", "sklearn.naive_bayes.GaussianNB", "alone"),
        model("L-RVFL", "RVFL", "alone", n_hidden=10, **FIXED),
        protocol="columns",
        settings={"units": "together"},
        folds=2,
    )
    for trial, outcome in ran(whole):
        tables, y, tests, y_test = by_hand(trial)
        if trial.model.name == "C-RVFL":
            table, (train, test) = trial.data.given, split(trial, trial.data.given.y, stratify=True)
            expected = RVFLClassifier(
                10, random_state=trial.seed("model"), alpha=1.0, activation="sigmoid"
            ).fit(table.X[train], y)
            assert outcome.values["error"] == pytest.approx(
                1 - expected.score(table.X[test], y_test)
            )
            continue
        own = (
            GaussianNB()
            if trial.model.name == "NB"
            else RVFLClassifier(
                3, random_state=trial.seed("model"), alpha=1.0, activation="sigmoid"
            )
        )
        errors = [
            1 - own.fit(X, y).score(X_test, y_test) for X, X_test in zip(tables, tests, strict=True)
        ]
        assert outcome.agents["error"] == pytest.approx(errors)


def test_distance_is_to_the_closed_form():
    settings = {"max_iterations": 20, "averaging": "tree"}
    sharing = model(
        kind="VerticalRVFL", n_hidden=5, alpha=0.1, solver={"name": "sharing", **settings}
    )
    whole = comparison(
        classes(), sharing, protocol="columns", metrics=("distance", "disagreement"), folds=2
    )
    with pytest.warns(match="SharingADMM stopped"):
        found = ran(whole)
    for trial, outcome in found:
        tables, y, _, _ = by_hand(trial)
        network, solver = SimulatedNetwork(graphs.ring(4)), SharingADMM(**settings)
        ours = VerticalRVFLClassifier(
            5, 0.1, solver=solver, network=network, random_state=trial.seed("model")
        )
        with pytest.warns(match="SharingADMM stopped"):
            ours.fit(tables, y)
        H = np.hstack([h(X) for h, X in zip(ours.features_, tables, strict=True)])
        b = closed_form(H, np.eye(3)[y], 0.1)
        away = np.linalg.norm(np.concatenate(ours.coefficients_) - b) / np.linalg.norm(b)
        assert outcome.values["distance"] == pytest.approx(away, rel=1e-4)
        assert "distance" not in outcome.agents  # it is of all agents together
        assert outcome.values["disagreement"] == 0  # all predict the same sum


def test_an_exact_solver_is_at_no_distance():
    dual = model(kind="VerticalRVFL", n_hidden=5, solver={"name": "dual", "tolerance": 1e-8})
    for _, outcome in ran(
        comparison(classes(), dual, protocol="columns", metrics=("distance",), folds=2)
    ):
        assert outcome.values["distance"] < 1e-7


def test_who_learns_rows_is_refused():
    protocol, entry = protocol_named("columns"), Data("classes", given=classes())
    assert protocol.refuses(entry, model()) == "learns rows, and columns are dealt"
    assert protocol.refuses(entry, model(kind="VerticalRVFL")) == ""
    assert protocol.refuses(entry, model(where="alone")) == ""
    measured = Data("numbers", given=numbers())
    assert (
        protocol.refuses(measured, model(kind="VerticalRVFLClassifier"))
        == "classifies, and the targets are measured"
    )


def test_units_that_mean_nothing_are_refused():
    with pytest.raises(InputError, match="units is 'all': choose one of each, together"):
        protocol_named("columns", units="all")
