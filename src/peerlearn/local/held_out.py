"""Scores of rows by models that were trained without them, and what they say about probabilities.

    p(c | x) = exp(s f_c(x)) / sum_c exp(s f_c(x))        s > 0: one number for all classes
    minimise over s   - sum_i w_i sum_c t_ic log p(c | x_i)

f_i is the score of row i by a model that was trained without the row's fold. With two classes f is
one number, p = 1 / (1 + exp(-s f)). A row of a class with weight W in the whole network has the
target t = (W + 1) / (W + 2) for its class, and the rest of 1 is shared by the others: then s is
finite also if all scores are right. Platt, Probabilistic outputs for support vector machines, 1999;
Guo et al., On calibration of modern neural networks, 2017.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from peerlearn.arrays import Array, Indices


@dataclass(frozen=True)
class HeldOutScores:
    """Scores of one agent's rows.

    scores, outputs: rows x M, with outputs as `LabelTargets` encodes classes.
    weights: of the rows; None if all are 1.
    """

    scores: Array
    outputs: Array
    weights: Array | None = None

    @property
    def classes(self) -> int:
        """Number of classes."""
        outputs: int = self.outputs.shape[1]
        return max(outputs, 2)

    @property
    def codes(self) -> Indices:
        """The number of each row's class."""
        if self.outputs.shape[1] == 1:
            return (self.outputs[:, 0] > 0).astype(np.intp)
        largest: Indices = self.outputs.argmax(axis=1)
        return largest

    def _weights(self) -> Array:
        return np.ones(len(self.scores)) if self.weights is None else self.weights

    def totals(self) -> Array:
        """Return what an agent adds to the first sum: the weight of each class, and squares.

        The squares are those of scores about the mean over classes, weighted.
        """
        w = self._weights()
        F = scores_of_classes(self.scores)
        return np.append(w @ np.eye(self.classes)[self.codes], w @ (F**2).sum(axis=1))

    def slope_and_bend(self, scale: float, weights: Array) -> Array:
        """Return the first two derivatives of this agent's part of the loss at a factor s.

        weights: of each class in the whole network.
        """
        F = scores_of_classes(self.scores)
        w = self._weights()
        C = self.classes
        p: Array = softmax(scale * F, axis=1)
        mean = (p * F).sum(axis=1)
        variance = (p * (F - mean[:, None]) ** 2).sum(axis=1)
        of_own_class = F[np.arange(len(F)), self.codes]
        # The scores of all classes add up to 0, so those of other classes are minus the own one.
        target = (weights + 1.0) / (weights + 2.0)
        expected = ((C * target - 1.0) / (C - 1.0))[self.codes] * of_own_class
        return np.array([w @ (mean - expected), w @ variance])


def scores_of_classes(scores: Array) -> Array:
    """Return a score for every class, rows x C, about their mean."""
    if scores.shape[1] == 1:
        return np.hstack([-scores, scores]) / 2.0
    means: Array = scores.mean(axis=1, keepdims=True)
    return scores - means


def probabilities_of(scores: Array, scale: float) -> Array:
    """Return the probability of every class, rows x C, from scores, rows x M."""
    probabilities: Array = softmax(scale * scores_of_classes(scores), axis=1)
    return probabilities
