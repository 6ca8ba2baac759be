"""Convergence of semi-supervised SVMs: where agents are after 1, 2, 3, .. iterations (chapter 8).

    F(w) = C1/(2L) sum over labelled rows of max(0, 1 - y f)^2 + C2/(2U) sum over the others of
    exp(-s f^2) + 1/2 |w|^2
    |grad F(w)|^2

of all rows in one place, at each agent's w, averaged over agents. The solver is stopped after so
many iterations, and begins anew for every point of a curve: what is seen is what a user would get,
and no solver has to be looked into. One that has converged stays where it is.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from peerlearn.arrays import is_whole
from peerlearn.errors import InputError, NotConverged
from peerlearn.lab.description.comparison import Data, Model
from peerlearn.lab.description.data_facts import facts_of
from peerlearn.lab.description.trial import Curve, Outcome, Trial
from peerlearn.lab.protocols.few_labels import shares_of
from peerlearn.lab.training.estimators import estimator_of, find_objection, kind_of
from peerlearn.lab.training.labelling import Labelling
from peerlearn.lab.training.loading import Fold
from peerlearn.lab.training.networks import network_of
from peerlearn.lab.training.outcomes import MEASURES, evaluate, outcome_of, time_fit
from peerlearn.models.base import NetworkModel

WATCHED = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500)


@dataclass(frozen=True)
class Convergence(Labelling):
    """Convergence of models of which few rows have a label, see Labelling.

    watched: the iterations after which to look, in ascending order.
    """

    name: ClassVar = "convergence"
    measures: ClassVar[Mapping[str, str]] = {
        **MEASURES,
        "objective": "objective of all rows, at the end",
        "gradient": "squared norm of its gradient, at the end",
    }
    curves: ClassVar[Mapping[str, str]] = {
        "objective": "objective of all rows, by iteration",
        "gradient": "squared norm of its gradient, by iteration",
    }

    watched: tuple[int, ...] = WATCHED

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = all(is_whole(n) and n >= 1 for n in self.watched)
        if not self.watched or not whole or list(self.watched) != sorted(set(self.watched)):
            raise InputError(
                f"watched is {list(self.watched)!r}: give numbers of iterations in ascending order"
            )

    def refuses(self, data: Data, model: Model) -> str:
        kind = kind_of(model, facts_of(data).task)
        if not issubclass(kind, NetworkModel) or not hasattr(kind, "objective"):
            return "has no objective that S3VM has"
        if model.where == "alone":
            return "has no objective in common with others"
        self.settings(data, model)
        kept = self.only(data)
        if facts_of(kept).classes > 2:  # coefficients would not be one vector per agent
            return f"is watched with two classes, and there are {facts_of(kept).classes}"
        return find_objection(kept, model)

    def run(self, trial: Trial) -> Outcome:
        fold = self.fold(trial)
        found: list[tuple[float, float]] = []
        for n in self.watched:
            estimator = self._make_stopped(trial, n)
            given = (
                (fold.X, fold.y) if trial.network is None else (shares_of(trial, estimator, fold),)
            )
            with warnings.catch_warnings(action="ignore", category=NotConverged):  # curves say so
                seconds = time_fit(estimator, *given)
            found.append(_measure_objective(estimator, fold))
            if estimator.report_.converged:
                break
        objective, gradient = np.array(found + found[-1:] * (len(self.watched) - len(found))).T
        outcome = outcome_of(trial, fold, evaluate(estimator, fold.X_test, seconds), {})
        at = [float(n) for n in self.watched]
        curves: dict[str, Curve] = {
            "objective": (at, list(objective)),
            "gradient": (at, list(gradient)),
        }
        ends = {"objective": float(objective[-1]), "gradient": float(gradient[-1])}
        return replace(outcome, values={**outcome.values, **ends}, curves=curves)

    def _make_stopped(self, trial: Trial, n: int) -> Any:
        """Return the model with a solver of n iterations."""
        estimator = estimator_of(trial, network_of(trial), **self.settings(trial.data, trial.model))
        return estimator.set_params(solver=replace(estimator.part("solver"), max_iterations=n))


def _measure_objective(model: Any, fold: Fold) -> tuple[float, float]:
    """Return F and |grad F|^2 of all rows, averaged over the agents' w."""
    together, alpha = model.objective(fold.X, fold.y)
    w = [own[None] for own in model.coefficients_]
    objectives = [together.value(own)[0] + 0.5 * alpha * np.vdot(own, own) for own in w]
    gradients = [together.gradient(own) + alpha * own for own in w]
    return float(np.mean(objectives)), float(np.mean([np.vdot(g, g) for g in gradients]))
