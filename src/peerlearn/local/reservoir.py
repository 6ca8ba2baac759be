"""A reservoir: a fixed recurrent layer that every agent draws alike, so it is never sent.

    h[n] = (1 - a) h[n-1] + a tanh(W_in [1; x[n]] + W h[n-1] + W_fb y[n-1] + v[n])
    h[-1] = 0, y[-1] = 0

a is the leak. y is the output that is fed back; during training the teacher d takes its place. v is
noise of mean zero, during training only. The readout sees the row [1, x[n], h[n]].

Jaeger, The echo state approach to analysing and training recurrent neural networks, 2001; thesis,
section 9.1.

Theory of operation. Time is a Python loop, so many sequences advance together in each step
(`Records`), in packs that fit in memory (`_packs`). W, W_fb and W_in are one matrix, so a step is
one product, sparse if less than half of the entries are not zero. All shapes that decide the bits
of a sequence are the same whatever other sequences there are.
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
from peerlearn.local.closed_loop import LoopOutputs, run_closed_loop
from peerlearn.local.lanes import LANES
from peerlearn.local.records import TIMES, Records
from peerlearn.local.sparse_product import SparseRows
from peerlearn.local.spectral_radius import spectral_radius as spectral_radius_of

SPARSE = 0.5  # fraction of nonzero entries below which a sparse product takes less time
HELD = 2**26  # bytes of states in memory at a time if there are many sequences


@dataclass(frozen=True)
class Reservoir:
    """Recurrent layer that maps x[0], ..., x[n] to the row [1, x[n], h[n]].

    Sequences advance together. The bits of one do not depend on the others.
    """

    W_in: Array  # units x (1 + inputs); the first column belongs to the constant input
    W: Array  # units x units
    W_fb: Array  # units x outputs; zeros if nothing is fed back
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
        """Draw W_in and W_fb uniform on [-scaling, scaling], and a sparse W.

        Nonzero entries of W are uniform on [-1, 1], and then scaled to the spectral radius.
        """
        rng = np.random.default_rng(seed)
        W_in = rng.uniform(-input_scaling, input_scaling, (units, 1 + inputs))
        W_fb = rng.uniform(-feedback_scaling, feedback_scaling, (units, outputs))
        W = rng.uniform(-1.0, 1.0, (units, units))
        W = W * (rng.random((units, units)) < density)
        if spectral_radius == 0:
            return cls(W_in, np.zeros_like(W), W_fb, leak)
        radius = spectral_radius_of(W)
        if radius == 0:
            raise InputError(
                f"{units} units of density {density} were drawn without a loop, so that no scaling "
                f"gives them a spectral radius of {spectral_radius}: raise density or n_reservoir, "
                "or change random_state"
            )
        return cls(W_in, W * (spectral_radius / radius), W_fb, leak)

    @property
    def units(self) -> int:
        """Number of units."""
        return len(self.W)

    @property
    def inputs(self) -> int:
        """Number of inputs, without the constant one."""
        return int(self.W_in.shape[1]) - 1

    @property
    def width(self) -> int:
        """Length of a row that the readout sees, B in the formulas."""
        return 1 + self.inputs + self.units

    @cached_property
    def feedback(self) -> bool:
        """Whether outputs are fed back."""
        return bool(self.W_fb.any())

    @property
    def fed_back(self) -> int:
        """Number of outputs that are fed back."""
        return self.W_fb.shape[1] if self.feedback else 0

    @cached_property
    def joined(self) -> Array | SparseRows:
        """[W, W_fb, W_in], sparse if that is quicker."""
        parts = [self.W, self.W_fb, self.W_in] if self.feedback else [self.W, self.W_in]
        A = np.hstack(parts)
        if np.count_nonzero(A) < SPARSE * A.size:
            return SparseRows.of(A)
        return A

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
        """Yield (sequence, times, the readout's rows at these times).

        All sequences of a pack advance by the same times before the next times of any.

        d: the scaled teachers, times x outputs, which are fed back: h[n] sees d[n-1]. h0, y0: state
        and scaled output before the first time, one row per sequence. owners: the agent of each
        sequence; those of an agent stand side by side. The order of an agent's blocks does not
        depend on the other agents. Rows are overwritten by the next block: use or copy them.
        """
        h0, y0 = self._before(len(x), h0, y0)
        for some in self._packs(range(len(x)) if owners is None else owners):
            records = self._records(x[some], h0[some], y0[some])
            teachers = d[some] if d is not None and self.feedback else None
            generators = noise[some] if noise and amplitude else None
            for times in records.blocks(x[some], teachers, generators, amplitude):
                for n in times:
                    records.step(n)
                for j, at, rows in records.rows():
                    yield some.start + j, at, rows

    def harvest(
        self, x: Sequence[Array], d: Sequence[Array] | None = None, **settings: Any
    ) -> list[Array]:
        """Return all rows of every sequence, times x width; settings are those of `blocks`.

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
    ) -> LoopOutputs:
        """Run a closed loop: y[n] = b' [1, x[n], h[n]] is fed back, and h[n+1] sees it.

        readouts: b of every sequence, sequences x width x outputs. limit: the largest output before
        a sequence counts as diverged. next_input: if given, x[n+1] is y[n] times this, whatever x
        holds from its second row on. That is a forecast.
        """
        h0, y0 = self._before(len(x), h0, y0)
        parts = []
        for some in self._packs(range(len(x))):
            records = self._records(x[some], h0[some], y0[some])
            parts.append(
                run_closed_loop(
                    records,
                    x[some],
                    readouts[some],
                    limit,
                    next_input,
                )
            )
        return LoopOutputs.join(parts)

    def _before(
        self,
        sequences: int,
        h0: Array | None,
        y0: Array | None,
    ) -> tuple[Array, Array]:
        """Return states and outputs before the first time, zeros by default."""
        h = np.zeros((sequences, self.units)) if h0 is None else h0
        y = np.zeros((sequences, self.fed_back))
        if y0 is not None and self.feedback:
            y = y0
        return h, y

    def _records(
        self,
        x: Sequence[Array],
        h0: Array,
        y0: Array,
    ) -> Records:
        sizes = (self.inputs, self.units, self.fed_back)
        return Records(
            self.joined,
            self.leak,
            sizes,
            [len(one) for one in x],
            h0,
            y0,
        )

    def _packs(self, owners: Sequence[int]) -> Iterator[slice]:
        """Yield slices of sequences that run together: as many as memory allows.

        How the sequences of an agent are divided does not depend on the other agents.
        """
        bytes_each = 8 * TIMES * (self.width + self.fed_back)
        stacks = max(HELD // bytes_each // LANES, 1)
        at_once = stacks * LANES
        start = stop = 0
        for _, own in groupby(owners):
            left = len(list(own))
            while left:
                piece = min(left, at_once)
                if stop + piece - start > at_once:
                    yield slice(start, stop)
                    start = stop
                stop += piece
                left -= piece
        if stop:
            yield slice(start, stop)
