"""A reservoir: a fixed recurrent layer that every agent draws alike, so that it is never sent.

    h[n] = (1 - a) h[n-1] + a tanh(W_in [1; x[n]] + W h[n-1] + W_fb y[n-1] + v[n]),      h[-1] = 0, y[-1] = 0

a is the leak, y the output that is fed back (while learning the teacher d in its place), v noise of
mean zero while learning. The readout sees the row [1, x[n], h[n]].

Jaeger, The echo state approach to analysing and training recurrent neural networks, 2001; thesis,
section 9.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np

from peerlearn.arrays import HUGE, Array
from peerlearn.errors import InputError
from peerlearn.local.closed_loop import Ran, closed_loop
from peerlearn.local.lanes import LANES
from peerlearn.local.records import TIMES, Records
from peerlearn.local.sparse_product import SparseRows
from peerlearn.local.spectral_radius import spectral_radius as spectral_radius_of

SPARSE = 0.5  # of the entries: below it a sparse product takes less time
HELD = 2**26  # bytes of states that are held at a time where sequences are many


@dataclass(frozen=True)
class Reservoir:
    """x[0], ..., x[n] -> [1, x[n], h[n]]. Sequences advance together; the bits of one do not depend on the others."""

    W_in: Array  # units x (1 + inputs); the first column belongs to the constant input
    W: Array  # units x units
    W_fb: Array  # units x outputs; zeros where nothing is fed back
    leak: float = 1.0

    @classmethod
    def draw(
        cls,
        inputs: int,
        outputs: int,
        *,
        units: int,
        spectral_radius: float,
        density: float,
        input_scaling: float,
        feedback_scaling: float,
        leak: float,
        seed: int,
    ) -> Reservoir:
        """W_in and W_fb uniform on [-scaling, scaling]; W uniform on [-1, 1] where it is not zero, then rescaled."""
        rng = np.random.default_rng(seed)
        W_in = rng.uniform(-input_scaling, input_scaling, (units, 1 + inputs))
        W_fb = rng.uniform(-feedback_scaling, feedback_scaling, (units, outputs))
        W = rng.uniform(-1.0, 1.0, (units, units)) * (rng.random((units, units)) < density)
        if spectral_radius == 0:
            return cls(W_in, np.zeros_like(W), W_fb, leak)
        drawn = spectral_radius_of(W)
        if drawn == 0:
            raise InputError(
                f"{units} units of density {density} were drawn without a loop, so that no scaling gives them a "
                f"spectral radius of {spectral_radius}: raise density or n_reservoir, or change random_state"
            )
        return cls(W_in, W * (spectral_radius / drawn), W_fb, leak)

    @property
    def units(self) -> int:
        return len(self.W)

    @property
    def inputs(self) -> int:
        return int(self.W_in.shape[1]) - 1

    @property
    def width(self) -> int:
        """Of a row that the readout sees: B in the formulas."""
        return 1 + self.inputs + self.units

    @cached_property
    def feedback(self) -> bool:
        return bool(self.W_fb.any())

    @property
    def fed_back(self) -> int:
        """How many outputs are."""
        return self.W_fb.shape[1] if self.feedback else 0

    @cached_property
    def joined(self) -> Array | SparseRows:
        """[W, W_fb, W_in], sparse where that is quicker"""
        A = np.hstack([self.W, self.W_fb, self.W_in] if self.feedback else [self.W, self.W_in])
        return SparseRows.of(A) if np.count_nonzero(A) < SPARSE * A.size else A

    def blocks(
        self,
        x: Sequence[Array],
        d: Sequence[Array] | None = None,
        *,
        noise: Sequence[np.random.Generator] | None = None,
        amplitude: float = 0.0,
        h0: Array | None = None,
        y0: Array | None = None,
        owners: Sequence[int] | None = None,
    ) -> Iterator[tuple[int, slice, Array]]:
        """(sequence, times, the readout's rows at these times), some times of every sequence before the next of any.

        d: the scaled teachers, times x outputs, forced: h[n] sees d[n-1]. h0, y0: state and scaled
        output before the
        first time, one row per sequence. owners: whose each sequence is, those of an agent side by
        side; the order of an agent's blocks does not depend on the other agents. Rows are
        overwritten by the next: use or copy them.
        """
        h0, y0 = self._before(len(x), h0, y0)
        for some in self._packs(range(len(x)) if owners is None else owners):
            records = self._records(x[some], h0[some], y0[some])
            teachers = d[some] if d is not None and self.feedback else None
            for times in records.blocks(
                x[some], teachers, noise[some] if noise and amplitude else None, amplitude
            ):
                for n in times:
                    records.step(n)
                for j, at, rows in records.rows():
                    yield some.start + j, at, rows

    def harvest(
        self, x: Sequence[Array], d: Sequence[Array] | None = None, **settings: Any
    ) -> list[Array]:
        """All rows of every sequence, times x width; settings are those of `blocks`.

        The last state of sequence j is harvest(...)[j][-1, -units:].
        """
        H = [np.empty((len(one), self.width)) for one in x]
        for j, at, rows in self.blocks(x, d, **settings):
            H[j][at] = rows
        return H

    def run(
        self,
        x: Sequence[Array],
        readouts: Array,
        *,
        h0: Array | None = None,
        y0: Array | None = None,
        limit: float = HUGE,
        next_input: float | None = None,
    ) -> Ran:
        """A closed loop: y[n] = b' [1, x[n], h[n]] is fed back, and h[n+1] sees it.

        readouts: b of every sequence, sequences x width x outputs. limit: the largest output that
        is still believed.
        next_input: where given, x[n+1] is y[n] times this, whatever x says from its second row on:
        a forecast.
        """
        h0, y0 = self._before(len(x), h0, y0)
        return Ran.joined(
            [
                closed_loop(
                    self._records(x[some], h0[some], y0[some]),
                    x[some],
                    readouts[some],
                    limit,
                    next_input,
                )
                for some in self._packs(range(len(x)))
            ]
        )

    def _before(self, sequences: int, h0: Array | None, y0: Array | None) -> tuple[Array, Array]:
        h = np.zeros((sequences, self.units)) if h0 is None else h0
        return h, np.zeros((sequences, self.fed_back)) if y0 is None or not self.feedback else y0

    def _records(self, x: Sequence[Array], h0: Array, y0: Array) -> Records:
        sizes = (self.inputs, self.units, self.fed_back)
        return Records(self.joined, self.leak, sizes, [len(one) for one in x], h0, y0)

    def _packs(self, owners: Sequence[int]) -> Iterator[slice]:
        """Sequences that run together: as many as memory allows, and how those of an agent are divided is its own."""
        at_once = max(HELD // (8 * TIMES * (self.width + self.fed_back)) // LANES, 1) * LANES
        start = stop = 0
        for _, own in groupby(owners):
            left = len(list(own))
            while left:
                piece = min(left, at_once)
                if stop + piece - start > at_once:
                    yield slice(start, stop)
                    start = stop
                stop, left = stop + piece, left - piece
        if stop:
            yield slice(start, stop)
