"""Targets of classifiers: labels, and the outputs that stand for them.

two classes       one output, -1 or +1; above 0 means the second
more classes      one output per class, 1 for its own and 0 else; the largest counts
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
        """The class of each row, by the first hosted agent's coefficients."""
        return super().predict(X)

    def decision_function(self, X: ArrayLike) -> Array:
        """f(x): one number per row for two classes (above 0 means classes_[1]), else one per row and class."""
        return self._shape_decision(self.agent_outputs(X, slice(1))[0])

    def _shape_decision(self, outputs: Array) -> Array:
        """Return rows x M outputs as scikit-learn has them: of two classes without the second axis."""
        return outputs[:, 0] if len(self.classes_) == 2 else outputs

    def encode(self, network: Network, targets: Sequence[Any]) -> list[Array]:
        """Each hosted agent's labels as rows x M numbers; classes_ are all that occur in the network."""
        labels = [column_or_1d(y, warn=True) for y in targets]
        for y in labels:
            check_classification_targets(y)
        self.classes_ = union(network, labels)
        if len(self.classes_) == 0:
            raise no_rows()
        if len(self.classes_) == 1:
            raise DataError(
                f"there is only one class in the whole network, {self.classes_[0]}: a classifier needs rows of two "
                "or more"
            )
        return [self._encode_codes(np.searchsorted(self.classes_, y)) for y in labels]

    def _encode_codes(self, codes: Indices) -> Array:
        """Targets -1 and +1 for two classes, else one column per class."""
        if len(self.classes_) > 2:
            return np.eye(len(self.classes_))[codes]
        return np.where(codes == 1, 1.0, -1.0)[:, None]

    def _choose(self, outputs: Array) -> Indices:
        """The place of each row's class in classes_, from rows x M outputs."""
        chosen: Indices = (
            (outputs[:, 0] > 0).astype(np.intp)
            if len(self.classes_) == 2
            else outputs.argmax(axis=1)
        )
        return chosen

    def decode(self, outputs: Array) -> Any:
        return self.classes_[self._choose(outputs)]

    def _measure(self, y: Any, predicted: Any) -> float:
        from sklearn.metrics import accuracy_score  # takes .1 s; training needs no metric

        return float(accuracy_score(y, predicted))

    def begin_stream(self, targets: Sequence[Any], classes: Any) -> Mapping[str, Any]:
        if classes is None and hasattr(self, "classes_"):
            classes = self.classes_  # of a fit before
        if classes is None:
            raise DataError(
                "classes must be passed on the first call to partial_fit: give all that there will be, chunks need not "
                "have rows of every one"
            )
        self.classes_ = stream_classes(classes)
        return {"classes": self.classes_.tolist()}

    def encode_chunk(self, targets: Any, whose: str) -> Array:
        return self._encode_codes(codes_of(targets, self.classes_, whose))

    def target_entries(self) -> dict[str, Any]:
        return {}

    def restore_targets(self, reader: ArchiveReader, outputs: int) -> None:
        self.classes_ = reader.classes(outputs)
