"""Comparison of test scores: each agent alone, all of them together, and all rows in one place."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from sklearn.metrics import r2_score

from peerlearn import graphs
from peerlearn.algorithms.standardise import mean_and_deviation
from peerlearn.arrays import Array
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import NotConverged
from peerlearn.models import archive
from peerlearn.network import SimulatedNetwork
from peerlearn.preparing.prepared_model import PreparedModel
from peerlearn.sites.plan import Plan
from peerlearn.sites.training import make_model, make_preparer


@dataclass(frozen=True)
class Scores:
    """Scores on the test rows: accuracy of a classifier, R2 of a regressor."""

    classifies: bool
    test_rows: int
    alone: dict[str, float]  # by agent; without agents that cannot learn from their own rows
    together: dict[str, float]
    in_one_place: float

    @property
    def metric(self) -> str:
        """Name of the score."""
        return "accuracy" if self.classifies else "R2"

    def text(self, score: float) -> str:
        """Return a score as text."""
        return f"{100 * score:.1f} %" if self.classifies else f"{score:.4f}"

    def lines(self) -> list[str]:
        """Return the comparison as lines for the terminal."""
        return [
            f"Test {self.metric} ({self.test_rows:,} rows)",
            f"  alone         {self._over_agents(self.alone)}",
            f"  together      {self._over_agents(self.together)}",
            f"  in one place  {self.text(self.in_one_place)}",
        ]

    def _over_agents(self, scores: dict[str, float]) -> str:
        """Describe the mean and, if agents differ, the range; and how many have no model."""
        without = len(self.together) - len(scores)
        cannot = f"{without} of {len(self.together)} agents cannot learn from their own rows"
        if not scores:
            return cannot
        values = list(scores.values())
        mean = self.text(fmean(values))
        least = self.text(min(values))
        most = self.text(max(values))
        summary = mean if least == most else f"{mean} on average, {least} to {most}"
        return f"{summary}; {cannot}" if without else summary


def measure(plan: Plan) -> Scores:
    """Score the trained models, and the same model trained on each share and on all rows."""
    X, y = plan.rows.test
    load = archive.load if plan.columns is None else PreparedModel.load
    together = {
        name: _score(plan, load(plan.folder(name) / "model.npz").predict(X)) for name in plan.agents
    }
    alone = {}
    for name, (X_k, y_k) in zip(plan.agents, plan.rows.shares, strict=True):
        with suppress(ValueError):  # too few rows, classes or labels
            alone[name] = _train_and_score(plan, X_k, y_k)
    all_X, all_y = (np.concatenate(parts) for parts in zip(*plan.rows.shares, strict=True))
    in_one_place = _train_and_score(plan, all_X, all_y)
    return Scores(plan.classifies, len(y), alone, together, in_one_place)


def _train_and_score(plan: Plan, X: Array, y: AnyArray) -> float:
    """Train the plan's model on these rows, standardised by themselves, and return its score."""
    if plan.columns is not None:
        return _prepare_and_score(plan, X, y)
    mean, deviation = mean_and_deviation(SimulatedNetwork(graphs.complete(1)), [X])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # the score shows how good it is
        model = make_model(plan.model).fit((X - mean) / deviation, y)
    return _score(plan, model.predict((plan.rows.test[0] - mean) / deviation))


def _prepare_and_score(plan: Plan, X: AnyArray, y: AnyArray) -> float:
    """Train the plan's model on these raw rows, prepared by themselves, and return its score."""
    assert plan.columns is not None
    preparer = make_preparer(plan.model, plan.columns, plan.rows.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # the score shows how good it is
        model = make_model(plan.model).fit(preparer.fit_transform(X), y)
    return _score(plan, model.predict(preparer.transform(plan.rows.test[0])))


def _score(plan: Plan, predictions: AnyArray) -> float:
    y = plan.rows.test[1]
    return float(np.mean(predictions == y) if plan.classifies else r2_score(y, predictions))
