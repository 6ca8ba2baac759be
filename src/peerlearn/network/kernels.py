"""The sparse mixing step, compiled: one pass over the neighbors, nothing allocated but one block of a row."""

from __future__ import annotations

import numpy as np

from peerlearn.arrays import Array, Indices
from peerlearn.compiled import compiled

BLOCK = 1024  # columns at a time: what is added up stays in the cache, also where rows are long


@compiled
def sparse_step(
    indptr: Indices, indices: Indices, data: Array, x: Array, before: Array, out: Array, a: float, b: float, c: float
) -> None:
    """out_k <- a sum_j C_kj x_j + b x_k + c before_k for a C in compressed rows; `out` may be `before`.

    Neighbors are added in the order in which they stand, four per pass over the row, so that the sum has the same bits
    as a row-by-row product.
    """
    width = x.shape[1]
    total = np.empty(min(width, BLOCK))
    for left in range(0, width, BLOCK):
        right = min(left + BLOCK, width)
        for k in range(out.shape[0]):
            total[:] = 0.0
            p, end = indptr[k], indptr[k + 1]
            while p + 4 <= end:
                j0, j1, j2, j3 = indices[p], indices[p + 1], indices[p + 2], indices[p + 3]
                w0, w1, w2, w3 = data[p], data[p + 1], data[p + 2], data[p + 3]
                for i in range(left, right):
                    t = total[i - left] + w0 * x[j0, i] + w1 * x[j1, i]
                    total[i - left] = t + w2 * x[j2, i] + w3 * x[j3, i]
                p += 4
            while p < end:
                j, w = indices[p], data[p]
                for i in range(left, right):
                    total[i - left] += w * x[j, i]
                p += 1
            if c != 0.0:
                for i in range(left, right):
                    out[k, i] = a * total[i - left] + b * x[k, i] + c * before[k, i]
            elif b != 0.0:
                for i in range(left, right):
                    out[k, i] = a * total[i - left] + b * x[k, i]
            else:
                for i in range(left, right):
                    out[k, i] = a * total[i - left]
