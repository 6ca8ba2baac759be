"""Least mean squares: one small step per row, and no matrix to store.

    b <- b + mu h (y - h'b)'                    LMS
    b <- b + mu h (y - h'b)' / h'h              normalised (NLMS): stable for 0 < mu < 2

Widrow and Hoff, Adaptive switching circuits, 1960; Nagumo and Noda, A learning method for system
identification, 1967.

Every row needs the b of the row before, so the rows of an agent cannot be computed together. The
loop over them is compiled. It adds in the order of the features, so its bits do not depend on
which agents are in the same stack.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peerlearn.arrays import Array, Indices
from peerlearn.compiled import compiled
from peerlearn.local.chunks import Chunk


def descend(
    b: Array,
    chunks: Sequence[Chunk],
    step: float,
    normalised: bool,
) -> Array:
    """Return every agent's b after the rows of its chunk, one after the other."""
    result = b.copy()
    for chunk in chunks:
        _step_through_rows(
            result,
            chunk.agents,
            chunk.rows,
            chunk.H,
            chunk.Y,
            step,
            normalised,
        )
    return result


@compiled
def _step_through_rows(
    b: Array,
    agents: Indices,
    rows: Indices,
    H: Array,
    Y: Array,
    step: float,
    normalised: bool,
) -> None:
    """Change b in place. h'h and the error are summed in the same pass over the features."""
    B = b.shape[1]
    M = b.shape[2]
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
