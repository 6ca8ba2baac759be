"""Convergence: the objective of all rows after so many iterations, as scipy and a loop by hand see
it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad

from peerlearn import S3VMClassifier, SimulatedNetwork, StepRule, graphs
from peerlearn.algorithms.smooth import Diffusion
from peerlearn.errors import InputError
from peerlearn.lab.description.comparison import Data, Model, protocol_named
from peerlearn.lab.protocols import convergence
from peerlearn.lab.training.outcomes import time_fit
from tests.support.lab_given import classes, comparison, model, ran

SETTINGS = {"C1": 2.0, "C2": 0.5, "s": 3.0, "positive_share": 0.4}
STEP = {"alpha0": 0.5, "delta": 0.6}
DIFFUSION = {"name": "diffusion", "step": STEP, "tolerance": 1e-5}


def table():
    two = classes(90, number=2, noise=1.5)
    return replace(two, y=2 * two.y - 1)


def watched(*models, at=(1, 2, 5, 40), **more):
    settings = {"labelled": 20, "watched": at, **more}
    return comparison(table(), *models, protocol="convergence", settings=settings, folds=1)


def objective(w, fold):
    """By the formula, without any code of the package."""
    X = fold.X - fold.X[fold.y == -1].mean(axis=0)
    f = X @ w + 2 * SETTINGS["positive_share"] - 1
    known = fold.y != -1
    short = np.maximum(0, 1 - (2 * fold.y[known] - 1) * f[known])
    bell = np.exp(-SETTINGS["s"] * f[~known] ** 2)
    return SETTINGS["C1"] / 2 * np.mean(short**2) + SETTINGS["C2"] / 2 * np.mean(bell) + w @ w / 2


def gradient(w, fold, h=1e-6):
    step = np.eye(len(w)) * h
    return np.array([(objective(w + e, fold) - objective(w - e, fold)) / (2 * h) for e in step])


def descended(fold, iterations):
    """Gradient descent in one place, by hand."""
    w = np.zeros(fold.X.shape[1])
    for n in range(iterations):
        w = w - STEP["alpha0"] / (n + 1) ** STEP["delta"] * gradient(w, fold)
    return w


def test_the_gradient_by_hand_is_one():
    whole = watched(model(kind="S3VMClassifier"))
    fold = whole.protocol.fold(next(whole.trials()))
    w = np.linspace(-0.2, 0.3, 6)
    assert check_grad(objective, gradient, w, fold) < 1e-5


def test_in_one_place_curves_are_those_of_gradient_descent():
    whole = watched(
        model("C", "S3VMClassifier", "centralised", solver=DIFFUSION, **SETTINGS), at=(1, 2, 5, 20)
    )
    ((trial, outcome),) = ran(whole)
    fold = whole.protocol.fold(trial)
    for name, value in {
        "objective": objective,
        "gradient": lambda w, fold: np.sum(gradient(w, fold) ** 2),
    }.items():
        at, found = outcome.curves[name]
        assert at == [1.0, 2.0, 5.0, 20.0]
        assert found == pytest.approx(
            [value(descended(fold, n), fold) for n in (1, 2, 5, 20)], rel=1e-4
        )
        assert outcome.values[name] == found[-1]


def test_over_a_network_curves_are_means_over_agents():
    whole = watched(model("DG", "S3VMClassifier", solver=DIFFUSION, **SETTINGS), at=(1, 4))
    ((trial, outcome),) = ran(whole)
    fold = whole.protocol.fold(trial)
    rng = np.random.default_rng(trial.seed("deal"))
    shuffled = rng.permutation(len(fold.y))
    line = np.concatenate([shuffled[fold.y[shuffled] == -1], shuffled[fold.y[shuffled] != -1]])
    rows = [rng.permutation(line[agent::4]) for agent in range(4)]
    for n, seen in zip(
        (1, 4),
        zip(*(outcome.curves[name][1] for name in ("objective", "gradient")), strict=True),
        strict=True,
    ):
        by_hand = S3VMClassifier(
            **SETTINGS,
            solver=Diffusion(step=StepRule(0.5, 0.6), tolerance=1e-5, max_iterations=n),
            network=SimulatedNetwork(graphs.ring(4)),
        )
        with pytest.warns(match="Diffusion stopped"):
            by_hand.fit([(fold.X[own], fold.y[own]) for own in rows])
        w = by_hand.coefficients_
        assert np.ptp(w, axis=0).max() > 0.01  # agents differ
        assert seen[0] == pytest.approx(np.mean([objective(own, fold) for own in w]))
        assert seen[1] == pytest.approx(
            np.mean([np.sum(gradient(own, fold) ** 2) for own in w]), rel=1e-4
        )
    assert outcome.iterations == 4
    assert outcome.sent == by_hand.report_.sent
    assert outcome.agents["error"] == pytest.approx(
        1 - by_hand.agent_scores(fold.X_test, fold.y_test)
    )


def test_what_has_converged_stays_there(monkeypatch):
    fits = []
    monkeypatch.setattr(
        convergence, "time_fit", lambda *given: fits.append(given) or time_fit(*given)
    )
    solver = {"name": "lbfgs", "tolerance": 1e-5}
    ((_, outcome),) = ran(
        watched(
            model("C", "S3VMClassifier", "centralised", solver=solver, **SETTINGS), at=(1, 50, 900)
        )
    )
    assert outcome.converged
    assert outcome.iterations < 50
    assert len(fits) == 2  # nothing is left to see after 900
    _, gradients = outcome.curves["gradient"]
    assert gradients[0] > gradients[1] == gradients[2]
    assert gradients[2] <= 1e-10
    _, objectives = outcome.curves["objective"]
    assert objectives[0] > objectives[1] == objectives[2]


def test_settings_of_a_model_for_one_data_set():
    tuned = {"classes": {"C": {"solver.step.alpha0": 0.1}}}
    models = [
        model(name, "S3VMClassifier", "centralised", solver=DIFFUSION, **SETTINGS)
        for name in ("C", "other")
    ]
    whole = watched(*models, at=(1,), tuned=tuned)
    (trial, tuned_one), (_, other) = ran(whole)
    fold, start = whole.protocol.fold(trial), np.zeros(6)
    for outcome, alpha0 in ((tuned_one, 0.1), (other, 0.5)):
        expected = objective(start - alpha0 * gradient(start, fold), fold)
        assert outcome.values["objective"] == pytest.approx(expected, rel=1e-5)


def test_what_is_refused():
    for watched in ([], [0], [5, 3], [2, 2]):
        with pytest.raises(InputError, match="give numbers of iterations in ascending order"):
            protocol_named("convergence", watched=tuple(watched))
    protocol, entry = protocol_named("convergence"), Data("classes", given=table())
    assert "has no objective that S3VM has" in protocol.refuses(
        entry, Model("L", "LapKRRClassifier")
    )
    assert "in common" in protocol.refuses(entry, Model("S", "S3VMClassifier", "alone"))
    assert protocol.refuses(entry, Model("S", "S3VMClassifier")) == ""
    three = Data("three", given=classes(90))
    assert "two classes" in protocol.refuses(three, Model("S", "S3VMClassifier"))
