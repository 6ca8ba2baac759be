"""Targets and outputs: how y becomes numbers for a solver, and how outputs become predictions.

two classes       one output, -1 or +1; above 0 means the second class
more classes      one output per class, 1 for the row's own class and 0 for others; the largest
                  wins
numbers           one output per number; they need no encoding
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from peerlearn.algorithms.agreement import no_rows, union
from peerlearn.arrays import Array, Indices
from peerlearn.errors import DataError
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.labels import codes_of, labels_of, more_classes, stream_classes
from peerlearn.network.base import Network

LARGEST = 1e100  # largest number that models accept: sums of squares stay finite


class Targets(ABC):
    """Mixin of models that predict targets. It encodes y as numbers and decodes outputs.

    Outputs are f(x), M numbers per row. Solvers learn them, and `agent_outputs` returns them.
    """

    _takes_new_classes = False  # whether a stream is open for classes that it has not seen

    def predict(self, X: ArrayLike) -> Any:
        """Return the prediction for each row, by the first hosted agent's coefficients."""
        return self.decode(self.agent_outputs(X, slice(1))[0])

    def agent_predictions(self, X: ArrayLike) -> Any:
        """Return the predictions of every hosted agent: agents x rows, or agents x rows x outputs.

        Each agent uses its own coefficients.
        """
        return np.stack([self.decode(outputs) for outputs in self.agent_outputs(X)])

    def agent_scores(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Return the score of every hosted agent's own predictions, as `score` computes it."""
        return self._score_agents(y, self.agent_predictions(X))

    def _score_agents(self, y: Any, predictions: Any) -> Array:
        """Return the score of each agent's predictions."""
        return np.array([self._measure(y, predicted) for predicted in predictions])

    @abstractmethod
    def agent_outputs(self, X: ArrayLike, agents: slice = slice(None)) -> Sequence[Array] | Array:
        """Return f(X) by the coefficients of these hosted agents: rows x M for each."""

    @abstractmethod
    def encode(self, network: Network, targets: Sequence[Any]) -> list[Array]:
        """Return each hosted agent's targets as rows x M numbers, and keep what `decode` needs."""

    @abstractmethod
    def decode(self, outputs: Array) -> Any:
        """Return predictions from rows x M outputs."""

    @abstractmethod
    def _measure(self, y: Any, predicted: Any) -> float:
        """Return how good predictions are; 1 is best."""

    @abstractmethod
    def begin_stream(
        self, targets: Sequence[Any], classes: Any, *, may_grow: bool = False
    ) -> Mapping[str, Any]:
        """Fix the form of the targets for all chunks of a stream.

        Return those settings that all agents must share, by name.

        may_grow: whether the learner takes more outputs in later chunks.
        """

    def meet_classes(self, network: Network, targets: Sequence[Any]) -> Indices | None:
        """Take up labels of a chunk that no earlier one had, if the stream is open for them.

        Return where the outputs of before are among those of now; None if they are the same.
        """
        return None

    @abstractmethod
    def encode_chunk(self, targets: Any, whose: str) -> Array:
        """Return the targets of a chunk as rows x M numbers, if they have the fixed form.

        whose: the beginning of the error message.
        """

    @abstractmethod
    def target_entries(self) -> dict[str, Any]:
        """Return the entries about targets of a saved file. The classes are saved elsewhere."""

    @abstractmethod
    def restore_targets(self, reader: ArchiveReader, outputs: int) -> None:
        """Set what `decode` needs from a file with coefficients for this number of outputs."""


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
        given = getattr(self, "classes", None)
        if given is not None:
            self.classes_ = stream_classes(given)
            codes = [codes_of(y, self.classes_, "", in_stream=False) for y in targets]
            return [self._encode_codes(own) for own in codes]
        labels = [column_or_1d(y, warn=True) for y in targets]
        for y in labels:
            if y.dtype.kind not in "biu":  # whole numbers are labels; the check takes a millisecond
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

    def begin_stream(
        self, targets: Sequence[Any], classes: Any, *, may_grow: bool = False
    ) -> Mapping[str, Any]:
        if classes is None:
            classes = getattr(self, "classes", None)
        if classes is None and hasattr(self, "classes_"):
            classes = self.classes_  # from an earlier fit
        self._takes_new_classes = classes is None and may_grow
        if self._takes_new_classes:
            self.classes_ = np.zeros(0, dtype=np.int64)
            return {"classes": "those that occur"}
        if classes is None:
            raise DataError(
                "classes must be passed on the first call to partial_fit: give all labels that the "
                "stream will have, a chunk need not have rows of every class; or use "
                "stream='exact', which takes up new classes as they come"
            )
        self.classes_ = stream_classes(classes)
        return {"classes": self.classes_.tolist()}

    def meet_classes(self, network: Network, targets: Sequence[Any]) -> Indices | None:
        if not self._takes_new_classes:
            return None
        before = self.classes_
        self.classes_ = more_classes(before, union(network, [labels_of(y) for y in targets]))
        if len(self.classes_) == 0:
            raise no_rows()
        if len(self.classes_) == len(before):
            return None
        return np.searchsorted(self.classes_, before)

    def encode_chunk(self, targets: Any, whose: str) -> Array:
        codes = codes_of(targets, self.classes_, whose)
        if self._takes_new_classes:  # one output per class, also while there are two
            return np.eye(len(self.classes_))[codes]
        return self._encode_codes(codes)

    def target_entries(self) -> dict[str, Any]:
        return {}

    def restore_targets(self, reader: ArchiveReader, outputs: int) -> None:
        self.classes_ = reader.classes(outputs)


class NumberTargets(RegressorMixin, Targets):
    """Mixin of regressors."""

    _single_output: bool
    _n_outputs: int

    def predict(self, X: ArrayLike) -> Array:
        """Return f(x) for each row, by the first hosted agent's coefficients.

        It is one number per row, or one per row and output if y had two axes.
        """
        predicted: Array = super().predict(X)
        return predicted

    def encode(self, network: Network, targets: Sequence[Any]) -> list[Array]:
        """Return each hosted agent's numbers as rows x M."""
        outputs = [np.asarray(y, dtype=np.float64) for y in targets]
        shapes = {y.shape[1:] for y in outputs}
        if len(shapes) > 1:
            raise DataError(
                "all agents must have the same number of outputs, but shares have y of shapes "
                f"{sorted(shapes)}"
            )
        self._remember_shape(outputs[0])
        return [y.reshape(len(y), self._n_outputs) for y in outputs]

    def decode(self, outputs: Array) -> Any:
        return outputs[:, 0] if self._single_output else outputs

    def _measure(self, y: Any, predicted: Any) -> float:
        from sklearn.metrics import r2_score  # takes .1 s; training needs no metric

        return float(r2_score(y, predicted))

    def begin_stream(
        self, targets: Sequence[Any], classes: Any, *, may_grow: bool = False
    ) -> Mapping[str, Any]:
        self._remember_shape(targets[0])
        return {}

    def _remember_shape(self, y: Any) -> None:
        self._single_output = y.ndim == 1
        self._n_outputs = math.prod(y.shape[1:])

    def encode_chunk(self, targets: Any, whose: str) -> Array:
        y = np.asarray(targets, dtype=np.float64)
        same_axes = (y.ndim == 1) == self._single_output
        if not same_axes or math.prod(y.shape[1:]) != self._n_outputs:
            raise DataError(
                f"{whose}y has shape {y.shape}, but the stream began with {self._n_outputs} "
                "outputs per row: give every chunk the same"
            )
        return y.reshape(len(y), self._n_outputs)

    def target_entries(self) -> dict[str, Any]:
        return {"single_output": self._single_output}

    def restore_targets(self, reader: ArchiveReader, outputs: int) -> None:
        self._single_output = reader.entry("single_output", bool)
        self._n_outputs = outputs
        if self._single_output and outputs > 1:
            raise reader.wrong(f"it should have one output, but coefficients are for {outputs}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def check_finite_rows(X: Any, whose: str) -> None:
    """Refuse rows with NaN, inf, or numbers whose squares overflow. X may be sparse.

    whose: the beginning of the error message.
    """
    values = X.data if scipy.sparse.issparse(X) else X
    # One look at the rows is enough where the sum of squares is small.
    if values.flags.c_contiguous and np.vdot(values, values) <= LARGEST**2:
        return
    largest = np.maximum(values.max(initial=0.0), -values.min(initial=0.0))
    if largest <= LARGEST:
        return
    if np.isfinite(largest):
        raise DataError(
            f"{whose}X has values up to {largest:.1e}, whose squares overflow float64: scale the "
            "inputs, or leave such rows out"
        )
    numbers = np.arange(X.shape[0])[:, None]
    rows = np.broadcast_to(numbers, X.shape) if values is X else X.tocoo().row
    bad = np.unique(rows[~np.isfinite(values)])
    raise DataError(
        f"{whose}X has NaN or inf (infinite) values in {len(bad)} of {X.shape[0]} rows, the first "
        f"is row {bad[0]}: remove those rows or fill in the values before fitting"
    )
