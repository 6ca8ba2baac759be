"""Chunks of a stream: the new rows of each hosted agent, some of them none, as stacks that are worked on together.

Agents with like numbers of rows are stacked; zero rows fill up and change nothing. How far an agent
is filled up depends on its own rows alone, so that its bits do not depend on which agents live in
the same process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peerlearn.arrays import Array, Indices
from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import padded


@dataclass(frozen=True)
class Chunk:
    """The new rows of some agents."""

    agents: Indices  # their place among the hosted ones
    rows: Indices  # n_k, how many each has
    H: Array  # agents x rows x B
    Y: Array  # agents x rows x M

    @classmethod
    def of_rows(cls, H: Sequence[Array], Y: Sequence[Array]) -> list[Chunk]:
        """From each agent's features and targets."""
        return [cls(agents, rows, *stacks) for agents, rows, stacks in _stacked(H, Y)]

    @classmethod
    def of_inputs(
        cls, features: RandomFeatures, X: Sequence[Array], Y: Sequence[Array]
    ) -> list[Chunk]:
        """From each agent's inputs and targets."""
        chunks = []
        for agents, rows, (inputs, targets) in _stacked(X, Y):
            H = features.stacked(inputs)
            H[np.arange(H.shape[1]) >= rows[:, None]] = (
                0.0  # the features of a row of zeros are not zero
            )
            chunks.append(cls(agents, rows, H, targets))
        return chunks


def _stacked(
    X: Sequence[Array], Y: Sequence[Array]
) -> list[tuple[Indices, Indices, tuple[Array, Array]]]:
    rows = np.array([len(x) for x in X], dtype=np.intp)
    heights = padded(rows)
    groups = []
    for height in np.unique(heights[rows > 0]).tolist():
        agents = np.flatnonzero(heights == height)
        inputs, targets = (np.zeros((len(agents), height, Z[0].shape[1])) for Z in (X, Y))
        for i, k in enumerate(agents.tolist()):
            inputs[i, : rows[k]], targets[i, : rows[k]] = X[k], Y[k]
        groups.append((agents, rows[agents], (inputs, targets)))
    return groups
