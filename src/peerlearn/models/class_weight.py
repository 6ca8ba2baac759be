"""Weights of classes: one per label, or balanced over the whole network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.models.base import number_between
from peerlearn.models.targets import LARGEST

ClassWeight = Mapping[Any, float] | Literal["balanced"] | None


def check_class_weight(given: Any) -> None:
    """Check that the value can be class_weight."""
    if given is None or given == "balanced":
        return
    if not isinstance(given, Mapping):
        raise InputError(
            f"class_weight is {given!r:.60}: give 'balanced', None, or a dict of label: weight"
        )
    for label, weight in given.items():
        number_between(weight, f"class_weight of {label!r:.60}", 0.0, LARGEST)


def weigh_classes(
    given: ClassWeight,
    labels: Sequence[Any],
    outputs: Sequence[Array],
    weights: list[Array] | None,
    total: Callable[[Array], Array],
) -> list[Array] | None:
    """Return the weights of each hosted agent's rows, times those of their classes.

    If balanced, a class with n of all N rows of the network weighs N / (C n), C classes.

    labels: of all classes. outputs: encoded targets. weights: of rows; None if all are 1. total:
    sums numbers of all agents.
    """
    if given is None:
        return weights
    members = [np.hstack([Y < 0, Y > 0]) if Y.shape[1] == 1 else Y > 0 for Y in outputs]
    if isinstance(given, Mapping):
        of_classes = [given.get(label, 1.0) for label in labels]
        factors = np.tile(np.array(of_classes, dtype=np.float64), (len(members), 1))
    else:
        rows = total(np.stack([own.sum(axis=0).astype(np.float64) for own in members]))
        factors = rows.sum(axis=1, keepdims=True) / (rows.shape[1] * np.maximum(rows, 1.0))
    of_rows = [member @ w for member, w in zip(members, factors, strict=True)]
    if weights is None:
        return of_rows
    return [own * w for own, w in zip(of_rows, weights, strict=True)]
