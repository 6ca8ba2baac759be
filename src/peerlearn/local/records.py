"""States of sequences that advance together, in stacks of LANES sequences.

    s = [h[n-1]; y[n-1]; 1; x[n]]
    z = [W, W_fb, W_in] s
    h[n] = (1 - a) h[n-1] + a tanh(z + v[n])

s has one column per sequence, a lane, so that one product serves LANES of them. The readout needs
the rows [1, x[n], h[n]] of one sequence side by side in time. They are collected in `seen` for
TIMES steps, and then handed out by `rows`.

The bits of a product depend on its shape. So every product has LANES sequences, and idle lanes fill
up the last stack. The bits of a sequence then do not depend on how many others there are, nor on
its place among them. Longer sequences come first: a stack is left out once all its sequences have
ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter

import numpy as np

from peerlearn.arrays import Array
from peerlearn.local.lanes import LANES
from peerlearn.local.sparse_product import SparseRows, allocate_aligned

TIMES = 256  # steps whose rows are in memory at a time


class Records:
    """States and rows of sequences that advance together.

    matrix: [W, W_fb, W_in]. sizes: inputs, units and outputs that are fed back. h0, y0: state and
    output before the first time, one row per sequence.
    """

    def __init__(
        self,
        matrix: Array | SparseRows,
        leak: float,
        sizes: tuple[int, int, int],
        lengths: Sequence[int],
        h0: Array,
        y0: Array,
    ) -> None:
        inputs, units, fed_back = sizes
        self.matrix = matrix
        self.leak = leak
        self.lengths = np.array(lengths, dtype=np.intp)
        self.order = np.argsort(-self.lengths, kind="stable")  # lane -> sequence
        self.longest = max(lengths)
        self.going = len(lengths)  # sequences that have not ended
        self.start = 0  # the first time of the block in memory
        stacks = -(-len(lengths) // LANES)
        times = min(TIMES, self.longest)
        self.s = allocate_aligned(stacks, units + fed_back + 1 + inputs, LANES)
        self.z = allocate_aligned(stacks, units, LANES)
        self.s[:, units + fed_back] = 1.0
        self.h = self.s[:, :units]
        self.y = self.s[:, units : units + fed_back]
        self.x = self.s[:, units + fed_back + 1 :]
        self.seen = np.zeros((stacks * LANES, times, 1 + inputs + units))
        self.seen[:, :, 0] = 1.0
        self.teachers = np.zeros((stacks * LANES, times, fed_back))
        self.v: Array | None = None
        self._to_lanes(self.h, h0[self.order])
        self._to_lanes(self.y, y0[self.order])

    def blocks(
        self,
        x: Sequence[Array],
        d: Sequence[Array] | None,
        noise: Sequence[np.random.Generator] | None,
        amplitude: float,
    ) -> Iterator[range]:
        """Yield all times, some at a time, with inputs, teachers and noise in place."""
        inputs = self.x.shape[1]
        units = self.h.shape[1]
        self.v = None
        if noise is not None:
            self.v = np.zeros((*self.seen.shape[:2], units))
        for start in range(0, self.longest, TIMES):
            self.start = start
            for lane, j, times in self._lanes_in_block():
                here = times.stop - times.start
                self.seen[lane, :here, 1 : 1 + inputs] = x[j][times]
                if d is not None:
                    self.teachers[lane, :here] = d[j][times]
                if self.v is not None and noise is not None:
                    self.v[lane, :here] = noise[j].uniform(-amplitude, amplitude, (here, units))
            yield range(start, min(start + TIMES, self.longest))

    def step(self, n: int) -> None:
        """Compute h[n] of every sequence that has not ended, and feed the teachers back."""
        while self.lengths[self.order[self.going - 1]] <= n:
            self.going -= 1
        stacks = -(-self.going // LANES)
        inputs = self.x.shape[1]
        seen = self.seen[:, n - self.start]
        s = self.s[:stacks]
        z = self.z[:stacks]
        h = self.h[:stacks]
        self._to_lanes(self.x, seen[:, 1 : 1 + inputs])
        if isinstance(self.matrix, SparseRows):
            self.matrix.multiply(s, z)
        else:
            np.matmul(self.matrix, s, out=z)
        if self.v is not None:
            z += _by_lane(self.v[: stacks * LANES, n - self.start])
        if self.leak == 1.0:
            np.tanh(z, out=h)
        else:
            np.tanh(z, out=z)
            z *= self.leak
            h *= 1.0 - self.leak
            h += z
        _by_lane(seen[: stacks * LANES, 1 + inputs :])[:] = h
        self.feed_back(self.teachers[:, n - self.start])

    def feed_back(self, y: Array) -> None:
        """Make y, one row per lane, the outputs that the next step sees."""
        self._to_lanes(self.y, y)

    def rows(self) -> Iterator[tuple[int, slice, Array]]:
        """Yield (sequence, times, its rows for the readout) of the block, in order of sequences."""
        for lane, j, times in sorted(self._lanes_in_block(), key=itemgetter(1)):
            yield j, times, self.seen[lane, : times.stop - times.start]

    def _lanes_in_block(self) -> Iterator[tuple[int, int, slice]]:
        """Yield (lane, sequence, its times) of sequences with times in the block."""
        for lane, j in enumerate(self.order.tolist()):
            stop = min(self.start + TIMES, int(self.lengths[j]))
            if stop > self.start:
                yield lane, j, slice(self.start, stop)

    def _to_lanes(self, part: Array, rows: Array) -> None:
        """Write one row per lane, without idle lanes, to the columns of `part`, a view of s."""
        stacks = len(rows) // LANES
        part[:stacks] = _by_lane(rows[: stacks * LANES])
        if stacks < len(part):
            part[stacks, :, : len(rows) - stacks * LANES] = rows[stacks * LANES :].T


def _by_lane(rows: Array) -> Array:
    """Return lanes x anything as a view, stacks x anything x LANES."""
    stacks = len(rows) // LANES
    return rows.reshape(stacks, LANES, rows.shape[1]).transpose(0, 2, 1)
