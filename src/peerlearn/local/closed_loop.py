"""A reservoir in a closed loop: the output of the readout is fed back, or is the next input.

    y[n] = b' [1, x[n], h[n]]
    h[n+1] sees y[n] through W_fb; in a forecast also x[n+1] = c y[n]

An unstable loop does not return wrong numbers: it reports the time at which an output exceeds a
limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peerlearn.arrays import Array, Indices
from peerlearn.local.records import Records


@dataclass(frozen=True)
class LoopOutputs:
    """Outputs of a closed loop. After a sequence diverged, its outputs are NaN."""

    outputs: list[Array]  # times x outputs, scaled as the teacher was
    diverged: Indices  # per sequence the first time that its output was beyond the limit, or -1

    @classmethod
    def join(cls, parts: Sequence[LoopOutputs]) -> LoopOutputs:
        """Return the outputs of all sequences of the parts."""
        outputs = [y for part in parts for y in part.outputs]
        return cls(outputs, np.concatenate([part.diverged for part in parts]))


def run_closed_loop(
    records: Records,
    x: Sequence[Array],
    b: Array,
    limit: float,
    next_input: float | None,
) -> LoopOutputs:
    """Run all sequences with their own outputs fed back.

    b: sequences x width x outputs. next_input: c, or None if all inputs are given.
    """
    order = records.order  # lane -> sequence
    b = b[order]
    lengths = records.lengths[order]
    M = b.shape[2]
    y = np.zeros((len(x), max(lengths), M))
    diverged = np.full(len(x), -1, dtype=np.intp)
    for times in records.blocks(x, None, None, 0.0):
        for n in times:
            seen = records.seen[: len(x), n - records.start]
            if next_input is not None and n > 0:
                seen[:, 1 : 1 + M] = next_input * y[:, n - 1]
            records.step(n)
            with np.errstate(over="ignore", invalid="ignore"):
                y[:, n] = (seen[:, None] @ b)[:, 0]
            ended = n >= lengths
            within = np.abs(y[:, n]) <= limit  # False for NaN
            beyond = ~within.all(axis=1)
            diverged[beyond & (diverged < 0) & ~ended] = n
            # An output beyond the limit, or after the end, is not fed back.
            y[(diverged >= 0) | ended, n] = 0.0
            records.feed_back(y[:, n, : records.y.shape[1]])
    for lane in np.flatnonzero(diverged >= 0):
        y[lane, diverged[lane] :] = np.nan
    place = np.argsort(order)
    outputs = [y[lane, : lengths[lane]] for lane in place]
    return LoopOutputs(outputs, diverged[place])
