"""Targets of classifiers: labels, and the outputs that stand for them.

two classes       one output, -1 or +1; above 0 means the second class
more classes      one output per class, 1 for the row's own class and 0 for others; the largest wins
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from peerlearn.algorithms.agreement import no_rows, union
from peerlearn.arrays import Array, Indices
from peerlearn.errors import DataError
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.labels import codes_of, stream_classes
from peerlearn.models.targets import Targets
from peerlearn.network.base import Network


class LabelTargets(ClassifierMixin, Targets):
    """Mixin of classifiers."""

    classes_: np.ndarray[Any, Any]

    def predict(self, X: ArrayLike) -> Any:
        """Return the class of each row, by the first hosted agent's coefficients."""
        return super().predict(X)

    def decision_function(self, X: ArrayLike) -> Array:
        """Return f(x) for each row, by the first hosted agent's coefficients.

        For two classes it is one number per row, and above 0 means classes_[1]. For more classes
        it is one number per row and class.
        """
        return self._shape_decision(self.agent_outputs(X, slice(1))[0])

    def _shape_decision(self, outputs: Array) -> Array:
        """Return outputs in the shape that scikit-learn expects: one axis for two classes."""
        return outputs[:, 0] if len(self.classes_) == 2 else outputs

    def encode(self, network: Network, targets: Sequence[Any]) -> list[Array]:
        """Return each hosted agent's labels as rows x M numbers, and set classes_."""
        labels = [column_or_1d(y, warn=True) for y in targets]
        for y in labels:
            check_classification_targets(y)
        self.classes_ = union(network, labels)
        if len(self.classes_) == 0:
            raise no_rows()
        if len(self.classes_) == 1:
            raise DataError(
                f"there is only one class in the whole network, {self.classes_[0]}: a classifier "
                "needs rows of two or more"
            )
        return [self._encode_codes(np.searchsorted(self.classes_, y)) for y in labels]

    def _encode_codes(self, codes: Indices) -> Array:
        """Return targets -1 and +1 for two classes, else one column per class."""
        if len(self.classes_) > 2:
            return np.eye(len(self.classes_))[codes]
        return np.where(codes == 1, 1.0, -1.0)[:, None]

    def _choose(self, outputs: Array) -> Indices:
        """Return the index in classes_ of each row's class, from rows x M outputs."""
        if len(self.classes_) == 2:
            return np.asarray(outputs[:, 0] > 0).astype(np.intp)
        largest: Indices = outputs.argmax(axis=1)
        return largest

    def decode(self, outputs: Array) -> Any:
        return self.classes_[self._choose(outputs)]

    def _measure(self, y: Any, predicted: Any) -> float:
        from sklearn.metrics import accuracy_score  # takes .1 s; training needs no metric

        return float(accuracy_score(y, predicted))

    def begin_stream(self, targets: Sequence[Any], classes: Any) -> Mapping[str, Any]:
        if classes is None and hasattr(self, "classes_"):
            classes = self.classes_  # from an earlier fit
        if classes is None:
            raise DataError(
                "classes must be passed on the first call to partial_fit: give all labels that the "
                "stream will have, a chunk need not have rows of every class"
            )
        self.classes_ = stream_classes(classes)
        return {"classes": self.classes_.tolist()}

    def encode_chunk(self, targets: Any, whose: str) -> Array:
        return self._encode_codes(codes_of(targets, self.classes_, whose))

    def target_entries(self) -> dict[str, Any]:
        return {}

    def restore_targets(self, reader: ArchiveReader, outputs: int) -> None:
        self.classes_ = reader.classes(outputs)
