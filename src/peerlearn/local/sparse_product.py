"""A sparse matrix times LANES columns: the matrix, and memory that products are quick in.

    z[c, i] = sum over j of A[i, j] s[c, j],      s[c, j] and z[c, i] the numbers of LANES sequences, stacks c of them

The product itself is in register_product.py.
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
        sparse = scipy.sparse.csr_array(A)
        entries = np.diff(sparse.indptr)
        ends = np.concatenate([[0], np.cumsum(-(-entries // CHAINS) * CHAINS)]).astype(np.intp)
        places = np.arange(sparse.nnz) + np.repeat(ends[:-1] - sparse.indptr[:-1], entries)
        columns, values = np.zeros(ends[-1], dtype=np.int32), np.zeros(ends[-1])
        columns[places], values[places] = sparse.indices, sparse.data
        return cls(ends, columns, values)

    def times(self, s: Array, z: Array) -> None:
        """s: stacks x columns x LANES -> z: stacks x rows x LANES"""
        # This imports numba, which takes half a second.
        from peerlearn.local.register_product import multiply

        multiply(self.ends, self.columns, self.values, s, z)


def aligned(*shape: int) -> Array:
    """Zeros whose lanes do not lie across two lines of the cache: half the time of a product."""
    size, line = int(np.prod(shape)), 64
    memory = np.zeros(8 * size + line, dtype=np.uint8)
    start = -memory.ctypes.data % line
    return memory[start : start + 8 * size].view(np.float64).reshape(shape)
