"""Inner loops of a round: the sparse mixing step, and the copy of rows that are sent.

Theory of operation:

`sparse_step` computes out <- a C x + b x + c before, the step that all rounds of `mix` and `recur`
are made of. C is stored in compressed sparse rows: the neighbors of agent k, and k itself, are
indices[indptr[k] : indptr[k + 1]], in ascending agent number, with their weights in `data`.

Every engine must give the same bits, so the order of additions is part of the contract: sums begin
at 0.0 and add one neighbor after the other. Adding four neighbors per pass over the row keeps that
order for each entry, and saves passes over memory. Do not reorder the additions, and do not let the
compiler do so (no fastmath). `plain_step` does the same with numpy; a test compares the bits.

Long rows are summed in blocks of columns, so that the running sums stay in the processor's cache.
Rows are taken as slices before the loops over their entries. With `x[j, i]` inside a loop, numba
has to allow for a negative i, and the loop is not vectorised: the same sums then take two to five
times as long.
"""

from __future__ import annotations

import numpy as np

from peerlearn.arrays import Array, Indices
from peerlearn.compiled import compiled

BLOCK = 1024  # columns summed at a time
PLAIN_BLOCK = 1 << 14  # the same for plain_step, where each pass is a call of numpy


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
    """Compute out_k <- a sum_j C_kj x_j + b x_k + c before_k for C in compressed sparse rows.

    `out` may be the same array as `before`. Nothing is allocated except one block of a row.
    """
    width = x.shape[1]
    sums = np.empty(min(width, BLOCK))
    for left in range(0, width, BLOCK):
        right = min(left + BLOCK, width)
        n = right - left
        total = sums[:n]
        for k in range(out.shape[0]):
            total[:] = 0.0
            p = indptr[k]
            end = indptr[k + 1]
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
                x0 = x[indices[p], left:right]
                w0 = data[p]
                for i in range(n):
                    total[i] += w0 * x0[i]
            own = x[k, left:right]
            old = before[k, left:right]
            new = out[k, left:right]
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
        row = x[k, :width]
        copy = out[k, :width]
        for i in range(width):
            value = row[i]
            copy[i] = value
            odd |= value - value != 0.0  # NaN - NaN and inf - inf are NaN
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
    """Compute the same as `sparse_step`, to the last bit, without compiled code.

    It is for processes that host one agent. Their rounds take far longer than their sums, and
    importing numba takes half a second and 60 MB.
    """
    for k in range(len(out)):
        for left in range(0, x.shape[1], PLAIN_BLOCK):
            block = slice(left, left + PLAIN_BLOCK)
            total = np.zeros(x[k, block].size)
            for p in range(indptr[k], indptr[k + 1]):
                total += data[p] * x[indices[p], block]
            if a != 1.0:
                total *= a
            if b != 0.0 or c != 0.0:
                total += b * x[k, block]
            if c != 0.0:
                total += c * before[k, block]
            out[k, block] = total
