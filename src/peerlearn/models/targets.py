"""Targets and outputs: how y becomes numbers for a solver, and how outputs become predictions.

`LabelTargets` implements it for classifiers, `NumberTargets` for regressors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from peerlearn.arrays import Array
from peerlearn.errors import DataError
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.network.base import Network

LARGEST = 1e100  # largest number that models accept: sums of squares stay finite


class Targets(ABC):
    """Mixin of models that predict targets. It encodes y as numbers and decodes outputs.

    Outputs are f(x), M numbers per row. Solvers learn them, and `agent_outputs` returns them.
    """

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
    def begin_stream(self, targets: Sequence[Any], classes: Any) -> Mapping[str, Any]:
        """Fix the form of the targets for all chunks of a stream.

        Return those settings that all agents must share, by name.
        """

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


def check_finite_rows(X: Any, whose: str) -> None:
    """Refuse rows with NaN, inf, or numbers whose squares overflow. X may be sparse.

    whose: the beginning of the error message.
    """
    values = X.data if scipy.sparse.issparse(X) else X
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
