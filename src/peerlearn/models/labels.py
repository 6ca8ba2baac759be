"""Labels of classifiers, and the classes of a stream.

Labels are all numbers or all texts. The classes of a stream are fixed with its first chunk, and
each later label is looked up among them.
"""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from peerlearn.arrays import Indices
from peerlearn.errors import DataError

Labels = np.ndarray[Any, Any]
NUMBERS = "biuf"  # kinds of types


def stream_classes(classes: Any) -> Labels:
    """Return the classes that a user gave for a stream: sorted, two or more, of one kind."""
    try:
        known = np.unique(as_one_kind(list(classes)))
    except TypeError as error:
        raise DataError(
            f"classes are {classes!r:.80}: give a list of all labels that there will be"
        ) from error
    check_classification_targets(known)
    if len(known) < 2:
        raise DataError(f"classes has only {known.tolist()}: a classifier needs two or more")
    return known


def as_one_kind(labels: list[Any]) -> Labels:
    """Return labels as an array of numbers or of texts. Refuse a mixture.

    numpy alone would silently turn a mixture into texts.
    """
    texts = all(isinstance(label, str) for label in labels)
    numbers = all(isinstance(label, Number | np.bool_) for label in labels)
    if not texts and not numbers:
        raise DataError(
            f"labels are {labels!r:.80}, which are not all numbers or all texts: give labels of "
            "one kind"
        )
    return np.array(labels, dtype=str if labels and texts else None)


def labels_of(y: Any) -> Labels:
    """Return the labels of some rows as an array of one axis: all numbers or all texts."""
    labels: Labels = column_or_1d(y, warn=True)
    if labels.dtype.kind not in NUMBERS:
        labels = as_one_kind(labels.tolist())
    check_classification_targets(labels)
    return labels


def more_classes(classes: Labels, seen: Labels) -> Labels:
    """Return the classes of before and those that were seen, sorted."""
    if len(classes) == 0 or len(seen) == 0:
        return seen if len(classes) == 0 else classes
    if (classes.dtype.kind in NUMBERS) != (seen.dtype.kind in NUMBERS):
        raise DataError(
            f"the chunk has labels like {seen.tolist()[0]!r}, but the stream began with labels "
            f"like {classes.tolist()[0]!r}: give labels of that type"
        )
    return np.union1d(classes, seen)


def codes_of(y: Any, classes: Labels, whose: str, *, in_stream: bool = True) -> Indices:
    """Return the index of each row's label in `classes`. `whose` begins the error message.

    in_stream: whether the classes are those of a stream; else the model was given them.
    """
    origin = "the stream began with" if in_stream else "the model was given"
    way_out = "begin a new stream with all classes" if in_stream else "give all labels as classes"
    try:
        labels = column_or_1d(y, warn=True)
        if labels.dtype.kind not in NUMBERS:
            labels = as_one_kind(labels.tolist())
    except ValueError as error:
        raise DataError(f"{whose}{error}") from error
    if len(labels) == 0:
        return np.zeros(0, dtype=np.intp)
    if (labels.dtype.kind in NUMBERS) != (classes.dtype.kind in NUMBERS):
        raise DataError(
            f"{whose}y has labels like {labels.tolist()[0]!r}, but {origin} classes "
            f"like {classes.tolist()[0]!r}: give labels of that type"
        )
    codes: Indices = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    new = np.flatnonzero(classes[codes] != labels)
    if len(new):
        raise DataError(
            f"{whose}row {new[0]} has the label {labels[new[0]].item()!r}, which is not among the "
            f"classes that {origin}, {', '.join(map(str, classes.tolist())):.200}: leave such "
            f"rows out, or {way_out}"
        )
    return codes
