"""Targets of regressors: numbers, one or several per row, which need no encoding."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from peerlearn.arrays import Array
from peerlearn.errors import DataError
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.targets import Targets
from peerlearn.network.base import Network


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

    def begin_stream(self, targets: Sequence[Any], classes: Any) -> Mapping[str, Any]:
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
