"""Sequences in a search: what is held out together, and what is scored.

A fold holds out whole sequences of each agent. If an agent has one sequence only, it is cut into a
stretch of time per fold, each of which begins with state zero; one that is too short for that stays
whole. Scores are those of all samples after the washout. Where outputs are fed back, the known ones
are used during the washout, and the model's own after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from peerlearn.arrays import Array, Indices
from peerlearn.models.base import DEALING, Setup
from peerlearn.models.scores import Score
from peerlearn.models.sequence_shares import are_many, sequences_of

Share = tuple[Any, Any]  # lists of sequences; or one table of 0 rows, and its targets


def divide_sequences(
    model: Any, setup: Setup, X: Any, y: Any, *, folds: int, washout: int
) -> list[Share]:
    """Return what each hosted agent divides into folds, from the arguments of `fit`."""
    found = sequences_of(model, setup.network, X, y, washout=washout, seed=setup.seeds[DEALING])
    shares: list[tuple[list[Array], list[Array]]] = [([], []) for _ in setup.network.hosted]
    for k, x, d in zip(found.owners, found.inputs, found.targets, strict=True):
        shares[k][0].append(x)
        shares[k][1].append(d[:, 0] if found.single else d)
    return [_cut(own, folds, washout) for own in shares]


def _cut(share: tuple[list[Array], list[Array]], folds: int, washout: int) -> Share:
    inputs, targets = share
    if len(inputs[0]) == 0:  # of an agent without samples
        return inputs[0], targets[0]
    if len(inputs) != 1 or len(inputs[0]) // folds <= washout:
        return share
    return np.array_split(inputs[0], folds), np.array_split(targets[0], folds)


def pick(share: Share, chosen: Any) -> Share:
    """Return some rows or sequences; a table of 0 rows if no sequence is chosen."""
    X, y = share
    if not isinstance(X, list):
        return X[chosen], y[chosen]
    places: Indices = np.flatnonzero(chosen)
    if not len(places):
        return X[0][:0], y[0][:0]
    return [X[j] for j in places], [y[j] for j in places]


def statistics_of(score: Score, model: Any, X: Any, y: Any, point: Array) -> Array:
    """Return what the score needs from these rows, or from the samples of these sequences."""
    if model.takes != "sequences":
        return score.statistics(model, X, y, point)
    x, d = (X, y) if are_many(X) else ([X], [y])
    w = model.washout
    said = model.predict(list(x), [np.asarray(each)[:w] for each in d])
    made = _Predicted(np.concatenate([each[w:] for each in said]))
    known = np.concatenate([np.asarray(each)[w:] for each in d])
    return score.statistics(made, None, known, point)


class _Predicted:
    """Predictions that were made already, in place of a model."""

    def __init__(self, predictions: Array) -> None:
        self.predictions = predictions

    def predict(self, X: Any) -> Array:
        return self.predictions
