"""Chunks of a stream: the new rows of each hosted agent, in stacks that are computed together.

Agents with similar numbers of rows are stacked, and agents without new rows are left out. Rows of
zeros fill up the stack and change nothing. How far an agent is filled up depends on its own rows
alone, so its bits do not depend on which agents live in the same process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import issparse

from peerlearn.arrays import Array, Indices
from peerlearn.local.features import FeatureMap, RandomFeatures
from peerlearn.local.least_squares import round_up


@dataclass(frozen=True)
class Chunk:
    """The new rows of some agents."""

    agents: Indices  # their positions among the hosted ones
    rows: Indices  # n_k, how many each has
    H: Array  # agents x rows x B
    Y: Array  # agents x rows x M

    @classmethod
    def of_rows(cls, H: Sequence[Array], Y: Sequence[Array]) -> list[Chunk]:
        """Return the chunks of each agent's features and targets."""
        chunks = []
        for agents, rows, (features, targets) in _stack(H, Y):
            chunks.append(cls(agents, rows, features, targets))
        return chunks

    @classmethod
    def of_inputs(
        cls,
        features: FeatureMap,
        X: Sequence[Array],
        Y: Sequence[Array],
    ) -> list[Chunk]:
        """Return the chunks of each agent's inputs and targets."""
        if not isinstance(features, RandomFeatures) or any(issparse(x) for x in X):
            return cls.of_rows([features(x) for x in X], Y)
        chunks = []
        for agents, rows, (inputs, targets) in _stack(X, Y):
            H = features.map_stack(inputs)
            # The features of a row of zeros are not zero.
            H[np.arange(H.shape[1]) >= rows[:, None]] = 0.0
            chunks.append(cls(agents, rows, H, targets))
        return chunks

    def with_constant(self) -> Chunk:
        """Return the chunk with a feature that is 1 in every row, before all others."""
        constant = np.arange(self.H.shape[1]) < self.rows[:, None]
        return replace(self, H=np.concatenate([constant[:, :, None], self.H], axis=2))


def _stack(
    X: Sequence[Array], Y: Sequence[Array]
) -> list[tuple[Indices, Indices, tuple[Array, Array]]]:
    """Return groups of (agents, their numbers of rows, their stacks of X and Y)."""
    rows = np.array([len(x) for x in X], dtype=np.intp)
    heights = round_up(rows)
    groups = []
    for height in np.unique(heights[rows > 0]).tolist():
        agents = np.flatnonzero(heights == height)
        shape = (len(agents), height)
        inputs = np.zeros((*shape, X[0].shape[1]))
        targets = np.zeros((*shape, Y[0].shape[1]))
        for i, k in enumerate(agents.tolist()):
            inputs[i, : rows[k]] = X[k]
            targets[i, : rows[k]] = Y[k]
        groups.append((agents, rows[agents], (inputs, targets)))
    return groups
