"""Targets and outputs: what y becomes before a solver sees it, and what its outputs mean.

`LabelTargets` and `NumberTargets` say it of classifiers and of regressors.
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

LARGEST = 1e100  # of what is learned from: sums of squares stay numbers


class Targets(ABC):
    """Mixin of models that predict targets: what becomes of y, and what outputs mean.

    Outputs are f(x), M numbers per row. They are what solvers learn, and what `agent_outputs`
    gives.
    """

    def predict(self, X: ArrayLike) -> Any:
        """Return the prediction of each row, by the first hosted agent's coefficients."""
        return self.decode(self.agent_outputs(X, slice(1))[0])

    def agent_predictions(self, X: ArrayLike) -> Any:
        """As `predict`, one line per hosted agent, by what that agent knows: agents x rows, or x rows x outputs."""
        return np.stack([self.decode(outputs) for outputs in self.agent_outputs(X)])

    def agent_scores(self, X: ArrayLike, y: ArrayLike) -> Array:
        """As `score`, one number per hosted agent."""
        return self._score_agents(y, self.agent_predictions(X))

    def _score_agents(self, y: Any, predictions: Any) -> Array:
        """Return the score of each line of predictions."""
        return np.array([self._measure(y, predicted) for predicted in predictions])

    @abstractmethod
    def agent_outputs(self, X: ArrayLike, agents: slice = slice(None)) -> Sequence[Array] | Array:
        """Return f(X) as each of these hosted agents knows it: rows x M each."""

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
        """Fix what all chunks must have in common; return what of it must be alike at every agent, by name."""

    @abstractmethod
    def encode_chunk(self, targets: Any, whose: str) -> Array:
        """Return targets of a chunk as rows x M numbers, if they fit what was fixed.

        whose: how the sentence begins if they do not.
        """

    @abstractmethod
    def target_entries(self) -> dict[str, Any]:
        """Return what a saved file says of the targets beside the classes."""

    @abstractmethod
    def restore_targets(self, reader: ArchiveReader, outputs: int) -> None:
        """Set what `decode` needs from a file whose coefficients are for so many outputs."""


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
    rows = (
        X.tocoo().row if values is not X else np.broadcast_to(np.arange(len(X))[:, None], X.shape)
    )
    bad = np.unique(rows[~np.isfinite(values)])
    raise DataError(
        f"{whose}X has NaN or inf (infinite) values in {len(bad)} of {X.shape[0]} rows, the first is row {bad[0]}: "
        "remove those rows or fill in the values before fitting"
    )
