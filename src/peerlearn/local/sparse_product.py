"""A sparse matrix times stacks of LANES columns: the matrix, and memory for quick products.

    z[c, i] = sum over j of A[i, j] s[c, j]       s[c, j], z[c, i]: numbers of LANES sequences
                                                  c: stacks of LANES sequences

The LANES numbers of one j lie side by side and fill a vector register, so one instruction works on
LANES sequences at once. Rows of A are padded with zeros to multiples of CHAINS entries, so that the
loop over them needs no special case at the end. The product itself is in register_product.py,
which is imported late because it needs numba.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from peerlearn.arrays import Array, Indices
from peerlearn.local.lanes import CHAINS


@dataclass(frozen=True)
class SparseRows:
    """Rows of a sparse matrix, each filled up with zeros to a multiple of CHAINS entries."""

    ends: Indices  # row i has entries ends[i] .. ends[i + 1]
    columns: NDArray[np.int32]
    values: Array

    @classmethod
    def of(cls, A: Array) -> SparseRows:
        """Return the rows of a dense matrix."""
        sparse = scipy.sparse.csr_array(A)
        entries = np.diff(sparse.indptr)
        padded = -(-entries // CHAINS) * CHAINS
        ends = np.concatenate([[0], np.cumsum(padded)]).astype(np.intp)
        shifts = ends[:-1] - sparse.indptr[:-1]
        places = np.arange(sparse.nnz) + np.repeat(shifts, entries)
        columns = np.zeros(ends[-1], dtype=np.int32)
        columns[places] = sparse.indices
        values = np.zeros(ends[-1])
        values[places] = sparse.data
        return cls(ends, columns, values)

    def multiply(self, s: Array, z: Array) -> None:
        """Write A s to z. s: stacks x columns x LANES; z: stacks x rows x LANES."""
        # Late, because it imports numba, which takes half a second.
        from peerlearn.local.register_product import multiply

        multiply(
            self.ends,
            self.columns,
            self.values,
            s,
            z,
        )


def allocate_aligned(*shape: int) -> Array:
    """Return zeros whose lanes do not cross cache lines, which halves the time of a product."""
    size = int(np.prod(shape))
    line = 64  # bytes
    memory = np.zeros(8 * size + line, dtype=np.uint8)
    start = -memory.ctypes.data % line
    return memory[start : start + 8 * size].view(np.float64).reshape(shape)
