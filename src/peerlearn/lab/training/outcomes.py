"""Training, testing and measuring of one run; the clock runs only while an estimator is fitted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from peerlearn.algorithms.iteration import Report
from peerlearn.algorithms.readout.admm import ADMM
from peerlearn.arrays import Array, is_real
from peerlearn.data.dataset import AnyArray
from peerlearn.lab.description import metrics
from peerlearn.lab.description.memo import Asked, key_of
from peerlearn.lab.description.reliability import SHARES, reliability_curves
from peerlearn.lab.description.trial import Curve, Outcome, Trial
from peerlearn.lab.training.loading import Fold, fold_key
from peerlearn.models.base import NetworkModel
from peerlearn.network.base import Counts
from peerlearn.partition import Share

MEASURES: Mapping[str, str] = {
    "disagreement": "disagreement between agents",
    "distance": "distance to the centralised coefficients",
    "seconds_per_agent": "seconds of training per agent",
}
CURVES: Mapping[str, str] = {
    "residual": "residual as the solver saw it, by iteration",
    SHARES: "share of rows that have the class, by its probability",
}
CENTRES_KEPT = 64


@dataclass(frozen=True)
class Trained:
    """Predictions, coefficients and report that training left.

    distances: of each agent's coefficients to the centralised ones, or of all together.
    probabilities: returns the classes that each agent knows, and its probabilities of them, or
        raises AttributeError; None if nobody could ask.
    """

    seconds: float
    predictions: AnyArray  # agents x test rows
    coefficients: Any = None
    distances: Sequence[float] = ()
    report: Report | None = None
    vote_every: int = (
        ADMM.vote_every
    )  # iterations between two residuals, where not every one has its own
    note: str = ""
    probabilities: Callable[[], list[tuple[AnyArray, Array]]] | None = None


def evaluate(
    estimator: Any, X_test: Any, seconds: float, distances: Sequence[float] = ()
) -> Trained:
    """Test a fitted estimator, as every agent of its network or as the only one."""
    many = hasattr(estimator, "agent_predictions")
    return Trained(
        seconds,
        estimator.agent_predictions(X_test)
        if many
        else np.asarray(estimator.predict(X_test))[None],
        getattr(estimator, "coefficients_", None),
        distances,
        getattr(estimator, "report_", None),
        getattr(getattr(estimator, "solver", None), "vote_every", ADMM.vote_every),
        probabilities=partial(_probabilities_by, estimator, X_test),
    )


def _probabilities_by(estimator: Any, X_test: Any) -> list[tuple[AnyArray, Array]]:
    """Return classes and probabilities of every agent, or raise AttributeError."""
    if hasattr(estimator, "agent_predictions"):
        each = estimator.agent_probabilities(X_test)
    else:
        each = [estimator.predict_proba(X_test)]
    return [(np.asarray(estimator.classes_), np.asarray(own)) for own in each]


def outcome_of(trial: Trial, fold: Fold, found: Trained, best: Mapping[str, Any]) -> Outcome:
    """Return the metrics of the predictions, and what else the comparison asks for.

    best: settings that a search found.
    """
    asked = trial.comparison.metrics
    agents = len(found.predictions)
    report = found.report
    curves = curves_of(report, found.vote_every) if report else {}
    probabilities = None
    no_probabilities = ""
    if fold.task == "classification" and metrics.needs_probabilities(asked):
        probabilities, no_probabilities = _find_probabilities(found, fold.y_test)
    if probabilities is not None:
        curves |= reliability_curves(probabilities)
    values, own = metrics.measure(
        asked, fold.task, fold.y_test, found.predictions, trial.model.name, probabilities
    )
    if "disagreement" in asked and trial.network is not None:
        values["disagreement"] = metrics.disagreement(found.coefficients, found.predictions)
    if "distance" in asked and found.distances:
        values["distance"] = max(found.distances)
        own |= {"distance": list(found.distances)} if len(found.distances) == agents else {}
    if "seconds_per_agent" in asked:
        values["seconds_per_agent"] = found.seconds / agents
    values |= {f"best.{key}": float(value) for key, value in best.items() if is_real(value)}
    chosen = [f"best {key}: {value}" for key, value in best.items() if not is_real(value)]
    return Outcome(
        seconds=found.seconds,
        values=values,
        agents=own,
        curves=curves,
        sent=report.sent if report else Counts(),
        converged=report.converged if report else None,
        iterations=report.iterations if report else None,
        bound=report.bound if report and math.isfinite(report.bound) else None,
        note="; ".join(
            filter(None, [report.note if report else "", found.note, no_probabilities, *chosen])
        ),
    )


def _find_probabilities(
    found: Trained, y: AnyArray
) -> tuple[metrics.ClassProbabilities | None, str]:
    """Return the probabilities of all agents; or None, and a sentence that says why."""
    if found.probabilities is None:
        return None, "no probabilities, because of the protocol"
    try:
        return metrics.ClassProbabilities.of(found.probabilities(), y), ""
    except AttributeError as error:
        # An estimator says in the cause why the method is not there.
        return None, f"no probabilities ({error.__cause__ or error})"


def curves_of(report: Report, vote_every: int) -> dict[str, Curve]:
    """Return the residuals against iterations, one per vote of a solver that votes."""
    n = report.iterations
    residuals = report.residuals
    if not residuals:
        return {}
    step = 1 if len(residuals) == n else vote_every
    at = [float(min(step * (i + 1), n)) for i in range(len(residuals))]
    return {"residual": (at, list(residuals))}


def centralised_distances(trial: Trial, fold: Fold, estimator: Any) -> list[float]:
    """Return how far each agent's coefficients are from the centralised ones.

    None where nobody asks, or where coefficients mean something else over a network.
    """
    asked = "distance" in trial.comparison.metrics and trial.network is not None
    if not asked or not (isinstance(estimator, NetworkModel) and estimator.same_coordinates):
        return []
    together = clone(estimator).set_params(network=None)
    key = key_of(fold_key(trial), together)
    b = compute_centre(Asked(key, lambda: together.fit(fold.X, fold.y).coefficients_[0]))
    if estimator.coefficients_.shape[1:] != b.shape:  # agents alone have no sums to choose by
        return []
    return metrics.distances(estimator.coefficients_, b)


@lru_cache(maxsize=CENTRES_KEPT)
def compute_centre(asked: Asked[Callable[[], Array]]) -> Array:
    """Compute once the coefficients that several runs of a fold are compared with."""
    return asked.about()


def time_fit(estimator: Any, *given: Any) -> float:
    """Fit, and return the seconds that it took."""
    start = time.perf_counter()
    estimator.fit(*given)
    return time.perf_counter() - start


def fit_alone(
    estimator: Any, shares: Sequence[Share], fold: Fold, tests: Sequence[Any] = ()
) -> Trained:
    """Fit one copy per agent to its share.

    An agent with rows of one class only always predicts that class.

    tests: what each agent sees of the test rows, if not all of them.
    """
    predictions = []
    asked: list[Callable[[], list[tuple[AnyArray, Array]]]] = []
    seconds = 0.0
    sure = 0
    for (X, y), X_test in zip(shares, tests or [fold.X_test] * len(shares), strict=True):
        one_class = fold.task == "classification" and len(np.unique(y)) == 1
        own = DummyClassifier() if one_class else clone(estimator)
        seconds += time_fit(own, X, y)
        predictions.append(own.predict(X_test))
        asked.append(partial(_probabilities_by, own, X_test))
        sure += one_class
    note = f"{sure} agents have rows of one class only, and always say that class" if sure else ""
    return Trained(
        seconds,
        np.stack(predictions),
        note=note,
        probabilities=lambda: [ask()[0] for ask in asked],
    )
