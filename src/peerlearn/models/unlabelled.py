"""Targets in which some rows have no label. They are marked -1, as in scikit-learn.

Classes are found from the labelled rows of all agents. An agent may have only labelled rows, or
only unlabelled ones.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from peerlearn.algorithms.agreement import union
from peerlearn.arrays import Array
from peerlearn.errors import DataError, WireError
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.labels import NUMBERS, as_one_kind
from peerlearn.models.row_model import RowModel
from peerlearn.models.targets import LabelTargets
from peerlearn.network.base import Network

Marks = NDArray[np.bool_]
WRAPPERS = ("OneVsRestClassifier", "OneVsOneClassifier", "OutputCodeClassifier")
NO_LABEL = (-1, "-1", "-1.0", b"-1")


def is_unlabelled(y: Any) -> Marks:
    """Return which rows have no label.

    They have -1, or the text that numpy makes of -1 when other labels are texts.
    """
    if y.dtype.kind in NUMBERS:
        return np.asarray(y == -1)
    return np.array([label in NO_LABEL for label in y.tolist()], dtype=np.bool_)


class PartlyLabelled(LabelTargets, RowModel):
    """Base class of semi-supervised classifiers."""

    partly_labelled: ClassVar = True

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Train on rows, some of which have no label.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns), or list of (X_k, y_k)
            The rows. If all agents are hosted here, the rows are dealt to them. A process that
            hosts one agent gives that agent's rows. A list of shares has one (X_k, y_k) per hosted
            agent.
        y : array-like of shape (n_rows,), default None
            The labels, -1 for rows without one; None if X is a list of shares.

        Returns
        -------
        self : the model
        """
        _refuse_wrappers(type(self).__name__)
        return super().fit(X, y)

    def encode(self, network: Network, targets: Sequence[Any]) -> list[Array]:
        """Return each hosted agent's labels as rows x M numbers, zeros for unlabelled rows."""
        labels = [column_or_1d(y, warn=True) for y in targets]
        marks = [~is_unlabelled(y) for y in labels]
        known = [_convert_objects(y[own]) for y, own in zip(labels, marks, strict=True)]
        for y in filter(len, known):
            check_classification_targets(y)
        self.classes_ = union(network, known)
        if np.count_nonzero(is_unlabelled(self.classes_)):
            raise WireError(
                "an agent sent -1 as a class, but -1 marks rows without a label: it probably runs "
                "another version or configuration"
            )
        if len(self.classes_) < 2:
            raise DataError(_describe_too_few(self.classes_))
        return [self._encode_labels(y, own) for y, own in zip(known, marks, strict=True)]

    def _encode_labels(self, known: Any, marks: Marks) -> Array:
        """Return one line of outputs per row. marks: which rows have the labels in `known`."""
        width = 1 if len(self.classes_) == 2 else len(self.classes_)
        outputs = np.zeros((len(marks), width))
        if len(known):
            outputs[marks] = self._encode_codes(np.searchsorted(self.classes_, known))
        return outputs

    def restore_targets(self, reader: ArchiveReader, outputs: int) -> None:
        super().restore_targets(reader, outputs)
        if is_unlabelled(self.classes_).any():
            raise reader.wrong("-1 is among its classes, which marks rows without a label")


def is_labelled(outputs: Array) -> Marks:
    """Return which of the encoded rows have a label."""
    return np.asarray(outputs.any(axis=1))


def _refuse_wrappers(name: str) -> None:
    """Refuse to be trained by a wrapper of scikit-learn that made -1 a class.

    Such a wrapper, OneVsRestClassifier for one, hands over 0 and 1 instead of the labels, so y does
    not show what happened. The wrapper itself is found among the callers. If it trains in other
    processes (n_jobs), one of its functions is, which knows the class, all labels or codes of -1.
    """
    multiclass = sys.modules.get("sklearn.multiclass")  # if not imported, no wrapper was made
    frame = None if multiclass is None else sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        wrappers = tuple(getattr(multiclass, kind) for kind in WRAPPERS)
        known: list[Any] = []
        who = "a wrapper of scikit-learn"
        if isinstance(caller, wrappers):
            known.append(frame.f_locals.get("y"))
            who = type(caller).__name__
        elif frame.f_globals.get("__name__") == "sklearn.multiclass" and (
            frame.f_code.co_name.startswith("_fit")
        ):
            known.append(frame.f_locals.get("y"))
            known.append((frame.f_locals.get("classes") or [None])[-1:])
        for labels in known:
            if labels is not None and is_unlabelled(column_or_1d(labels)).any():
                raise DataError(
                    f"{who} takes -1, which marks rows without a label, for a class: train "
                    f"{name} without it, it takes any number of classes"
                )
        frame = frame.f_back


def _convert_objects(labels: Any) -> Any:
    return labels if labels.dtype.kind in NUMBERS else as_one_kind(labels.tolist())


def _describe_too_few(classes: Any) -> str:
    if len(classes) == 0:
        return (
            "no row of the whole network has a label, all are -1: a classifier needs labelled rows "
            "of two or more classes somewhere"
        )
    return (
        f"all labelled rows of the whole network are of one class, {classes[0]}: a classifier "
        "needs labelled rows of two or more classes, at any agents. -1 marks rows without a label: "
        "if it is one of your classes, give that class another label, such as 0"
    )
