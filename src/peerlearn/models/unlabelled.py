"""Targets of which some rows have none: -1, as in scikit-learn's semi-supervised module.

Classes are read from the labelled rows of all agents. An agent may have no labelled row, or no
other.
"""

from __future__ import annotations

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
from peerlearn.models.label_targets import LabelTargets
from peerlearn.models.labels import NUMBERS, of_one_kind
from peerlearn.models.row_model import RowModel
from peerlearn.network.base import Network

Marks = NDArray[np.bool_]


def unlabelled(y: Any) -> Marks:
    """Which rows have no label: -1, also as the text that numpy makes of it among other texts."""
    if y.dtype.kind in NUMBERS:
        return np.asarray(y == -1)
    return np.array([label in (-1, "-1", "-1.0", b"-1") for label in y.tolist()], dtype=np.bool_)


class PartlyLabelled(LabelTargets, RowModel):
    """Base class of semi-supervised classifiers."""

    partly_labelled: ClassVar = True

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Train on X, y: dealt to the agents if all of them are hosted here, this agent's share if it is the only one.

        fit(shares) takes a list of (X_k, y_k), one per hosted agent. Rows with the label -1 have
        none.
        """
        return super().fit(X, y)

    def encode(self, network: Network, targets: Sequence[Any]) -> list[Array]:
        """Each hosted agent's labels as rows x M numbers, rows of zeros where there is none."""
        labels = [column_or_1d(y, warn=True) for y in targets]
        marks = [~unlabelled(y) for y in labels]
        known = [_of_one_kind(y[own]) for y, own in zip(labels, marks, strict=True)]
        for y in filter(len, known):
            check_classification_targets(y)
        self.classes_ = union(network, known)
        if np.count_nonzero(unlabelled(self.classes_)):
            raise WireError(
                "an agent says that -1 is a class, which marks rows without one: it runs something else"
            )
        if len(self.classes_) < 2:
            raise DataError(_too_few(self.classes_))
        return [self._outputs_if_any(y, own) for y, own in zip(known, marks, strict=True)]

    def _outputs_if_any(self, known: Any, marks: Marks) -> Array:
        outputs = np.zeros((len(marks), 1 if len(self.classes_) == 2 else len(self.classes_)))
        if len(known):
            outputs[marks] = self._encode_codes(np.searchsorted(self.classes_, known))
        return outputs

    def restore_targets(self, reader: ArchiveReader, outputs: int) -> None:
        super().restore_targets(reader, outputs)
        if unlabelled(self.classes_).any():
            raise reader.wrong("-1 is among its classes, which marks rows without a label")


def labelled(outputs: Array) -> Marks:
    """Which of the encoded rows have a label."""
    return np.asarray(outputs.any(axis=1))


def _of_one_kind(labels: Any) -> Any:
    return labels if labels.dtype.kind in NUMBERS else of_one_kind(labels.tolist())


def _too_few(classes: Any) -> str:
    if len(classes) == 0:
        return (
            "no row of the whole network has a label, all are -1: a classifier needs labelled rows of two or more "
            "classes somewhere"
        )
    return (
        f"all labelled rows of the whole network are of one class, {classes[0]}: a classifier needs labelled rows of "
        "two or more, at any agents. -1 marks rows without a label: if it is one of your classes, call it otherwise, "
        "such as 0"
    )
