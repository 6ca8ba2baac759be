"""What is done with every number of a round, compiled: the sparse mixing step, and the copy of rows that are sent.

Rows are taken as slices before the loops over their entries. With `x[j, i]` inside a loop, numba
has to allow for a negative i, and the loop is not vectorised: the same sums then take two to five
times as long.
"""

from __future__ import annotations

import numpy as np

from peerlearn.arrays import Array, Indices
from peerlearn.compiled import compiled

BLOCK = 1024  # columns at a time: what is added up stays in the cache, also where rows are long
PLAIN_BLOCK = 1 << 14  # the same where each pass is a call of numpy


@compiled
def sparse_step(
    indptr: Indices,
    indices: Indices,
    data: Array,
    x: Array,
    before: Array,
    out: Array,
    a: float,
    b: float,
    c: float,
) -> None:
    """out_k <- a sum_j C_kj x_j + b x_k + c before_k for a C in compressed rows; `out` may be `before`.

    Neighbors are added in the order in which they stand, up to four per pass over the row, so that
    the sum has the same bits as a row-by-row product. Nothing is allocated except one block of a
    row.
    """
    width = x.shape[1]
    sums = np.empty(min(width, BLOCK))
    for left in range(0, width, BLOCK):
        right = min(left + BLOCK, width)
        n = right - left
        total = sums[:n]
        for k in range(out.shape[0]):
            total[:] = 0.0
            p, end = indptr[k], indptr[k + 1]
            while p + 4 <= end:
                x0, x1 = x[indices[p], left:right], x[indices[p + 1], left:right]
                x2, x3 = x[indices[p + 2], left:right], x[indices[p + 3], left:right]
                w0, w1, w2, w3 = data[p], data[p + 1], data[p + 2], data[p + 3]
                for i in range(n):
                    t = total[i] + w0 * x0[i] + w1 * x1[i]
                    total[i] = t + w2 * x2[i] + w3 * x3[i]
                p += 4
            if p + 2 <= end:
                x0, x1 = x[indices[p], left:right], x[indices[p + 1], left:right]
                w0, w1 = data[p], data[p + 1]
                for i in range(n):
                    total[i] = total[i] + w0 * x0[i] + w1 * x1[i]
                p += 2
            if p < end:
                x0, w0 = x[indices[p], left:right], data[p]
                for i in range(n):
                    total[i] += w0 * x0[i]
            own, old, new = x[k, left:right], before[k, left:right], out[k, left:right]
            if c != 0.0:
                for i in range(n):
                    new[i] = a * total[i] + b * own[i] + c * old[i]
            elif b != 0.0:
                for i in range(n):
                    new[i] = a * total[i] + b * own[i]
            else:
                for i in range(n):
                    new[i] = a * total[i]


@compiled
def copy_and_check(x: Array, out: Array) -> bool:
    """Copy the rows of x to out and return whether all their numbers are finite."""
    width = x.shape[1]
    odd = False
    for k in range(x.shape[0]):
        row, copy = x[k, :width], out[k, :width]
        for i in range(width):
            value = row[i]
            copy[i] = value
            odd |= value - value != 0.0  # NaN and infinite numbers alone differ from themselves
    return not odd


def plain_step(
    indptr: Indices,
    indices: Indices,
    data: Array,
    x: Array,
    before: Array,
    out: Array,
    a: float,
    b: float,
    c: float,
) -> None:
    """Do what sparse_step does, to the last bit, without compiled code.

    For a process that hosts one agent: its rounds take far longer than its sums, and numba takes
    half a second to
    import and 60 MB.
    """
    for k in range(len(out)):
        for left in range(0, x.shape[1], PLAIN_BLOCK):
            block = slice(left, left + PLAIN_BLOCK)
            total = np.zeros_like(x[k, block])
            for p in range(indptr[k], indptr[k + 1]):
                total += data[p] * x[indices[p], block]
            total *= a
            if b != 0.0 or c != 0.0:
                total += b * x[k, block]
            if c != 0.0:
                total += c * before[k, block]
            out[k, block] = total
