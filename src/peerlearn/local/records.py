"""Sequences that advance together, a stack of LANES side by side.

    s = [h[n-1]; y[n-1]; 1; x[n]],      z = [W, W_fb, W_in] s,      h[n] = (1 - a) h[n-1] + a tanh(z + v[n])

s has a column per sequence, as one product serves all; what the readout sees has a row [1, x[n],
h[n]] per time, held for some times. The bits of a product depend on its shape: every product is of
LANES sequences, the last ones filled up with idle lanes. So the bits of a sequence do not depend on
how many others there are, nor on its place among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter

import numpy as np

from peerlearn.arrays import Array
from peerlearn.local.lanes import LANES
from peerlearn.local.sparse_product import SparseRows, aligned

TIMES = 256  # steps whose rows are held at a time


class Records:
    """joined: [W, W_fb, W_in]. Sequences with more steps have the first lanes."""

    def __init__(
        self,
        joined: Array | SparseRows,
        leak: float,
        sizes: tuple[int, int, int],
        lengths: Sequence[int],
        h0: Array,
        y0: Array,
    ) -> None:
        self.joined, self.leak = joined, leak
        inputs, units, fed_back = sizes
        self.lengths = np.array(lengths, dtype=np.intp)
        self.order = np.argsort(-self.lengths, kind="stable")  # lane -> sequence
        self.longest, self.going = max(lengths), len(lengths)
        self.start = 0  # the first time that is held
        stacks, held = -(-len(lengths) // LANES), min(TIMES, self.longest)
        self.s, self.z = (
            aligned(stacks, units + fed_back + 1 + inputs, LANES),
            aligned(stacks, units, LANES),
        )
        self.s[:, units + fed_back] = 1.0
        self.h, self.x = self.s[:, :units], self.s[:, units + fed_back + 1 :]
        self.y = self.s[:, units : units + fed_back]
        self.seen = np.zeros((stacks * LANES, held, 1 + inputs + units))
        self.seen[:, :, 0] = 1.0
        self.teachers = np.zeros((stacks * LANES, held, fed_back))
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
        """All times, some at a time, with inputs, teachers and noise in place."""
        inputs, units = self.x.shape[1], self.h.shape[1]
        self.v = None if noise is None else np.zeros((*self.seen.shape[:2], units))
        for start in range(0, self.longest, TIMES):
            self.start = start
            for lane, j, times in self._held():
                here = times.stop - times.start
                self.seen[lane, :here, 1 : 1 + inputs] = x[j][times]
                if d is not None:
                    self.teachers[lane, :here] = d[j][times]
                if self.v is not None and noise is not None:
                    self.v[lane, :here] = noise[j].uniform(-amplitude, amplitude, (here, units))
            yield range(start, min(start + TIMES, self.longest))

    def step(self, n: int) -> None:
        """h[n] of every sequence that has not ended; the teachers are fed back."""
        while self.lengths[self.order[self.going - 1]] <= n:
            self.going -= 1
        stacks, inputs = -(-self.going // LANES), self.x.shape[1]
        seen, s, z, h = (
            self.seen[:, n - self.start],
            self.s[:stacks],
            self.z[:stacks],
            self.h[:stacks],
        )
        self._to_lanes(self.x, seen[:, 1 : 1 + inputs])
        if isinstance(self.joined, SparseRows):
            self.joined.times(s, z)
        else:
            np.matmul(self.joined, s, out=z)
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
        """y: one row per lane"""
        self._to_lanes(self.y, y)

    def rows(self) -> Iterator[tuple[int, slice, Array]]:
        """(sequence, times, its rows of the readout) of the times that are held, by sequence."""
        for lane, j, times in sorted(self._held(), key=itemgetter(1)):
            yield j, times, self.seen[lane, : times.stop - times.start]

    def _held(self) -> Iterator[tuple[int, int, slice]]:
        """(lane, sequence, its times) of the sequences that have not ended."""
        for lane, j in enumerate(self.order.tolist()):
            stop = min(self.start + TIMES, int(self.lengths[j]))
            if stop > self.start:
                yield lane, j, slice(self.start, stop)

    def _to_lanes(self, part: Array, rows: Array) -> None:
        """One row per lane, idle lanes without, into the columns of s."""
        stacks = len(rows) // LANES
        part[:stacks] = _by_lane(rows[: stacks * LANES])
        if stacks < len(part):
            part[stacks, :, : len(rows) - stacks * LANES] = rows[stacks * LANES :].T


def _by_lane(rows: Array) -> Array:
    """lanes x anything -> stacks x anything x LANES, a view"""
    return rows.reshape(len(rows) // LANES, LANES, rows.shape[1]).transpose(0, 2, 1)
