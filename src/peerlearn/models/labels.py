"""The classes of a stream: fixed with its first chunk, and looked up in every one."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from peerlearn.arrays import Indices
from peerlearn.errors import DataError

Labels = np.ndarray[Any, Any]
NUMBERS = "biuf"  # kinds of types


def stream_classes(classes: Any) -> Labels:
    """Sorted, two or more, of one kind."""
    given = column_or_1d(np.asarray(classes))
    if given.dtype.kind not in NUMBERS:
        if not all(isinstance(label, str) for label in given.tolist()):
            raise DataError(f"classes must be numbers or texts, not {given.tolist()!r:.80}: give labels of one kind")
        given = given.astype(str)
    known = np.unique(given)
    check_classification_targets(known)
    if len(known) < 2:
        raise DataError(f"classes has only {known.tolist()}: a classifier needs two or more")
    return known


def codes_of(y: Any, classes: Labels, whose: str) -> Indices:
    """The place of each row's label among the classes; `whose` begins the sentence about one that is not there."""
    try:
        labels = column_or_1d(y, warn=True)
    except ValueError as error:
        raise DataError(f"{whose}{error}: give one label per row") from error
    if len(labels) == 0:
        return np.zeros(0, dtype=np.intp)
    if (labels.dtype.kind in NUMBERS) != (classes.dtype.kind in NUMBERS):
        raise DataError(
            f"{whose}y has labels like {labels.tolist()[0]!r}, but the stream began with classes like "
            f"{classes.tolist()[0]!r}: give labels of that type"
        )
    if classes.dtype.kind not in NUMBERS:
        labels = labels.astype(str)
    codes: Indices = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    new = np.flatnonzero(classes[codes] != labels)
    if len(new):
        raise DataError(
            f"{whose}row {new[0]} has the label {labels[new[0]].item()!r}, which is not among the classes that the "
            f"stream began with, {', '.join(map(str, classes.tolist())):.200}: leave such rows out, or begin a new "
            "stream with all classes"
        )
    return codes
