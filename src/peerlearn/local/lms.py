"""Least mean squares: one small step per row, no matrix to remember.

    b <- b + mu h (y - h'b)'                    LMS
    b <- b + mu h (y - h'b)' / h'h              normalised (NLMS): 0 < mu < 2 is stable whatever the features

Widrow and Hoff, Adaptive switching circuits, 1960; Nagumo and Noda, A learning method for system
identification, 1967.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peerlearn.arrays import Array, Indices
from peerlearn.compiled import compiled
from peerlearn.local.chunks import Chunk


def descend(b: Array, chunks: Sequence[Chunk], step: float, normalised: bool) -> Array:
    """Every agent's b after the rows of its chunk, one after the other."""
    moved = b.copy()
    for chunk in chunks:
        _row_by_row(moved, chunk.agents, chunk.rows, chunk.H, chunk.Y, step, normalised)
    return moved


@compiled
def _row_by_row(
    b: Array, agents: Indices, rows: Indices, H: Array, Y: Array, step: float, normalised: bool
) -> None:
    B, M = b.shape[1], b.shape[2]
    error = np.empty(M)
    for i in range(len(agents)):
        own = b[agents[i]]
        for n in range(rows[i]):
            h = H[i, n]
            size = 0.0
            error[:] = Y[i, n]
            for j in range(B):
                size += h[j] * h[j]
                for m in range(M):
                    error[m] -= h[j] * own[j, m]
            mu = step
            if normalised:
                mu = step / size if size > 0.0 else 0.0
            for j in range(B):
                for m in range(M):
                    own[j, m] += mu * h[j] * error[m]
