"""Scores of predictions as sums over rows, so that agents can add them up.

    statistics   of some rows: their number first, then sums of what the score needs      alone
    value        of the score, from the sums of all agents' statistics

Names and values are those of scikit-learn's scorers without sample weights. Squares of targets are
summed about a common point, because targets may be far from zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from peerlearn.algorithms.readout.means import common_sums
from peerlearn.arrays import Array
from peerlearn.models.base import Setup


class Score(ABC):
    """A score that follows from sums over rows; larger is better.

    Attributes
    ----------
    name: as scikit-learn calls it.
    classifies: whether it is for classifiers, else for regressors.
    needs: the method that a model must have; empty if `predict` is enough.
    """

    name: ClassVar[str]
    classifies: ClassVar[bool]
    needs: ClassVar[str] = ""

    def common_point(self, setup: Setup, targets: Sequence[Any]) -> Array:
        """Return the point about which targets are summed, the same at all agents."""
        return np.zeros(0)

    def own_point(self, y: Any) -> Array:
        """Return the point for rows that are all here."""
        return np.zeros(0)

    def width(self, point: Array) -> int:
        """Return how many statistics there are."""
        return 2

    @abstractmethod
    def statistics(self, model: Any, X: Any, y: Any, point: Array) -> Array:
        """Return the number of rows, and the sums of what the score needs."""

    def value(self, sums: Array) -> float:
        """Return the score, from sums over all rows."""
        return float(sums[1] / sums[0])


class Accuracy(Score):
    """Share of rows whose label is predicted."""

    name: ClassVar = "accuracy"
    classifies: ClassVar = True

    def statistics(self, model: Any, X: Any, y: Any, point: Array) -> Array:
        return np.array([len(y), np.sum(model.predict(X) == y)], dtype=np.float64)


class NegativeLogLoss(Score):
    """Mean logarithm of the probability of each row's label."""

    name: ClassVar = "neg_log_loss"
    classifies: ClassVar = True
    needs: ClassVar = "predict_proba"

    def statistics(self, model: Any, X: Any, y: Any, point: Array) -> Array:
        least = np.finfo(np.float64).eps  # of a label that the model does not know
        columns = np.minimum(np.searchsorted(model.classes_, y), len(model.classes_) - 1)
        of_label = model.predict_proba(X)[np.arange(len(y)), columns]
        of_label = np.where(model.classes_[columns] == y, of_label, 0.0)
        return np.array([len(y), np.sum(np.log(np.clip(of_label, least, 1.0)))])


class NegativeMeanSquaredError(Score):
    """Mean squared error over rows and outputs, with a minus."""

    name: ClassVar = "neg_mean_squared_error"
    classifies: ClassVar = False

    def statistics(self, model: Any, X: Any, y: Any, point: Array) -> Array:
        squares = (_columns(y) - _columns(model.predict(X))) ** 2
        return np.array([len(y), -np.sum(squares) / squares.shape[1]])


class RSquared(Score):
    """Explained share of the variance, averaged over outputs."""

    name: ClassVar = "r2"
    classifies: ClassVar = False

    def common_point(self, setup: Setup, targets: Sequence[Any]) -> Array:
        own = np.stack([np.append(_columns(y).sum(axis=0), len(y)) for y in targets])
        sums = common_sums(setup.network, setup.parts["solver"], own)[0]
        point: Array = sums[:-1] / max(sums[-1], 1.0)
        return point

    def own_point(self, y: Any) -> Array:
        point: Array = _columns(y).mean(axis=0)
        return point

    def width(self, point: Array) -> int:
        return 1 + 3 * len(point)

    def statistics(self, model: Any, X: Any, y: Any, point: Array) -> Array:
        off = _columns(y) - point
        errors = _columns(y) - _columns(model.predict(X))
        sums = [np.sum(each, axis=0) for each in (errors**2, off, off**2)]
        return np.concatenate([[len(off)], *sums])

    def value(self, sums: Array) -> float:
        errors, off, squares = sums[1:].reshape(3, -1)
        spread = squares - off**2 / sums[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            explained = 1.0 - errors / spread
        # Targets that do not vary: 1 if they are predicted without any error, else 0.
        explained = np.where(spread > 0, explained, np.where(errors > 0, 0.0, 1.0))
        return float(np.mean(explained))


def _columns(y: Any) -> Array:
    """Return targets as rows x outputs."""
    table = np.asarray(y, dtype=np.float64)
    return table if table.ndim == 2 else table.reshape(len(table), 1)


# The first of its kind is the usual one.
SCORES: dict[str, Score] = {
    score.name: score
    for score in (Accuracy(), NegativeLogLoss(), RSquared(), NegativeMeanSquaredError())
}
