"""Targets and outputs: what y becomes before a solver sees it, and what its outputs mean.

two classes       one output, -1 or +1; above 0 means the second
more classes      one output per class, 1 for its own and 0 else; the largest counts
numbers           as they are
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from peerlearn.algorithms.agreement import no_rows, union
from peerlearn.arrays import Array, Indices
from peerlearn.errors import DataError
from peerlearn.network.base import Network

LARGEST = 1e100  # of what is learned from: sums of squares stay numbers


class Targets(ABC):
    """What a model asks of its targets, and says of them."""

    def agent_predictions(self, X: Any) -> Any:
        """As `predict`, one line per hosted agent, by what that agent knows: agents x rows, or x rows x outputs."""
        return np.stack([self._decoded(outputs) for outputs in self._agent_outputs(X)])

    def agent_scores(self, X: Any, y: Any) -> Array:
        """As `score`, one number per hosted agent."""
        return self._scores(y, self.agent_predictions(X))

    def _scores(self, y: Any, predictions: Any) -> Array:
        return np.array([self._score(y, predicted) for predicted in predictions])

    @abstractmethod
    def _agent_outputs(self, X: Any) -> Sequence[Array] | Array:
        """f(X) as each hosted agent knows it: rows x M each."""

    @abstractmethod
    def _encoded(self, network: Network, targets: Sequence[Any]) -> list[Array]:
        """Each hosted agent's targets as rows x M numbers."""

    @abstractmethod
    def _decoded(self, outputs: Array) -> Any:
        """Predictions from rows x M outputs."""

    @abstractmethod
    def _score(self, y: Any, predicted: Any) -> float: ...


class LabelTargets(ClassifierMixin, Targets):
    """What classifiers have in common."""

    classes_: np.ndarray[Any, Any]

    def _encoded(self, network: Network, targets: Sequence[Any]) -> list[Array]:
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
        return [self._outputs_of(np.searchsorted(self.classes_, y)) for y in labels]

    def _outputs_of(self, codes: Indices) -> Array:
        """Targets -1 and +1 for two classes, else one column per class."""
        if len(self.classes_) > 2:
            return np.eye(len(self.classes_))[codes]
        return np.where(codes == 1, 1.0, -1.0)[:, None]

    def _codes(self, outputs: Array) -> Indices:
        """The place of each row's class in classes_, from rows x M outputs."""
        chosen: Indices = (outputs[:, 0] > 0).astype(np.intp) if len(self.classes_) == 2 else outputs.argmax(axis=1)
        return chosen

    def _decoded(self, outputs: Array) -> Any:
        return self.classes_[self._codes(outputs)]

    def _score(self, y: Any, predicted: Any) -> float:
        return float(accuracy_score(y, predicted))


class NumberTargets(RegressorMixin, Targets):
    """What regressors have in common."""

    _single_output: bool

    def _encoded(self, network: Network, targets: Sequence[Any]) -> list[Array]:
        """Each hosted agent's numbers as rows x M."""
        outputs = [np.asarray(y, dtype=np.float64) for y in targets]
        shapes = {y.shape[1:] for y in outputs}
        if len(shapes) > 1:
            raise DataError(
                f"all agents must have the same number of outputs, but shares have y of shapes {sorted(shapes)}"
            )
        self._single_output = outputs[0].ndim == 1
        return [y.reshape(len(y), math.prod(y.shape[1:])) for y in outputs]

    def _decoded(self, outputs: Array) -> Any:
        return outputs[:, 0] if self._single_output else outputs

    def _score(self, y: Any, predicted: Any) -> float:
        return float(r2_score(y, predicted))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def finite_rows(X: Any, whose: str) -> None:
    """Refuse rows with NaN, inf, or numbers whose squares would be; `whose` begins the sentence. X may be sparse."""
    values = X.data if scipy.sparse.issparse(X) else X
    largest = np.maximum(values.max(initial=0.0), -values.min(initial=0.0))
    if largest <= LARGEST:
        return
    if np.isfinite(largest):
        raise DataError(
            f"{whose}X has values up to {largest:.1e}, whose squares are beyond all numbers: scale the inputs, or "
            "leave such rows out"
        )
    rows = X.tocoo().row if values is not X else np.broadcast_to(np.arange(len(X))[:, None], X.shape)
    bad = np.unique(rows[~np.isfinite(values)])
    raise DataError(
        f"{whose}X has NaN or inf (infinite) values in {len(bad)} of {X.shape[0]} rows, the first is row {bad[0]}: "
        "remove those rows or fill in the values before fitting"
    )
