"""Metrics of probabilities in runs: over a network, alone, in one place, and of few labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.svm import SVC

from peerlearn import RVFLClassifier, SimulatedNetwork, data, graphs, partition
from peerlearn.errors import InputError
from peerlearn.lab import FigureSpec, Layout, Model, Search
from peerlearn.lab.figures.draw import draw_figure
from peerlearn.lab.report.defaults import figures_to_show
from peerlearn.lab.runs.run import run
from peerlearn.lab.training.splitting import split
from tests.support.lab_given import classes, comparison, ran
from tests.support.lab_rows import results_of, row

IRIS = data.load("iris")
TWO = classes(number=2, noise=2.0)
ASKED = ("error", "log_loss", "brier")


def compare(*models, table=TWO, **more):
    return comparison(table, *models, folds=2, metrics=ASKED, **more)


def test_over_a_network_as_by_hand():
    whole = compare(Model("RVFL", "RVFL", settings={"n_hidden": 20}))
    for trial, outcome in ran(whole):
        train, test = split(trial, TWO.y, stratify=True)
        X, y, X_test, y_test = TWO.X[train], TWO.y[train], TWO.X[test], TWO.y[test]
        network = SimulatedNetwork(graphs.ring(4))
        model = RVFLClassifier(20, network=network, random_state=trial.seed("model"))
        model.fit(partition.stratified(X, y, 4, seed=trial.seed("deal")))
        p = model.predict_proba(X_test)
        assert outcome.values["log_loss"] == pytest.approx(log_loss(y_test, p))
        assert outcome.values["brier"] == pytest.approx(brier_score_loss(y_test, p[:, 1]))
        assert len(outcome.agents["log_loss"]) == 4
        at, shares = outcome.curves["reliability"]
        assert outcome.curves["reliability_events"][0] == at
        assert all(0 <= share <= 1 for share in shares)


def test_where_there_are_no_probabilities_the_note_says_why():
    forest = RandomForestClassifier(5, random_state=0)
    fixed = {"n_hidden": 20, "alpha": 1.0}
    models = (
        Model("forest", estimator=forest, where="centralised"),
        Model("SVC", estimator=SVC(), where="centralised"),
        Model("fixed", "RVFL", settings=fixed),
        Model("asked", "RVFL", settings={**fixed, "probability": True}),
        Model("alone", "RVFL", where="alone", settings={"n_hidden": 10}),
    )
    notes = {}
    for trial, outcome in ran(compare(*models)):
        notes[trial.model.name] = outcome.note
        has = trial.model.name in ("forest", "asked", "alone")
        assert ("log_loss" in outcome.values) == ("reliability" in outcome.curves) == has
        assert "error" in outcome.values
    assert "no probabilities" in notes["SVC"]
    assert "set probability=True and fit again" in notes["fixed"]


def test_agents_alone_that_know_one_class():
    alone = Model("alone", "RVFL", where="alone", settings={"n_hidden": 10})
    whole = compare(alone, settings={"deal": "dirichlet", "concentration": 0.05})
    outcomes = [outcome for _, outcome in ran(whole)]
    assert any("rows of one class only" in outcome.note for outcome in outcomes)
    assert all(np.isfinite(outcome.values["log_loss"]) for outcome in outcomes)


@pytest.mark.parametrize("kind", ["AnchorLap", "S3VM", "LapKRR"])
def test_few_labels(kind):
    models = (
        Model("together", kind, settings={"probability": True}),
        Model("without", kind),
    )
    whole = compare(*models, table=IRIS, protocol="few-labels", settings={"labelled": 20})
    for trial, outcome in ran(whole):
        assert ("log_loss" in outcome.values) == (trial.model.name == "together")


def test_columns():
    models = (Model("columns", "VerticalRVFL", settings={"probability": True}),)
    for _, outcome in ran(compare(*models, table=IRIS, protocol="columns")):
        assert 0 < outcome.values["log_loss"] < 1


def test_a_search_by_log_loss():
    search = Search(grid={"alpha": [1e-9, 10.0]}, folds=2, metric="log_loss")
    settings = {"n_hidden": 20, "activation": "tanh", "probability": True}
    found = ran(compare(Model("RVFL", "RVFL", settings=settings), search=search))
    assert {outcome.values["best.alpha"] for _, outcome in found} == {10.0}
    without = Model("RVFL", "RVFL", settings={**settings, "probability": False})
    with pytest.raises(InputError, match="the search goes by log_loss, and RVFL has none"):
        list(ran(compare(without, search=search)))


def test_a_figure_asks_for_what_it_shows(tmp_path):
    layout = Layout(figures=(FigureSpec("reliability", "reliability", "curve.reliability"),))
    models = (Model("RVFL", "RVFL", settings={"n_hidden": 20}),)
    whole = comparison(TWO, *models, folds=2, layout=layout)
    results = run(whole, tmp_path / "out", jobs=1)
    assert all(row["log_loss"] > 0 for row in results.rows)
    _, svg = draw_figure(results, layout.figures[0], tmp_path)
    assert "probability of the class" in svg.read_text()


def test_figures_where_nobody_names_any(tmp_path):
    curve = {"curve.reliability": [0.1, 0.9], "curve.reliability.at": [0.2, 0.8]}
    events = {"curve.reliability_events": [30.0, 40.0], "curve.reliability_events.at": [0.2, 0.8]}
    results = results_of(tmp_path, [row(log_loss=0.3, **curve, **events)])
    kinds = {figure.name: figure.kind for figure in figures_to_show(results)}
    assert kinds["reliability"] == "reliability"
    assert "reliability_events" not in kinds
