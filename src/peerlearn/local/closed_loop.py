"""A reservoir that hears itself: what the readout says is fed back, or is the next input.

    y[n] = b' [1, x[n], h[n]],      h[n+1] sees y[n] through W_fb;      in a forecast also x[n+1] = c y[n]

A loop that is not stable does not end in wrong numbers: where an output is beyond a limit, the time
is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peerlearn.arrays import Array, Indices
from peerlearn.local.records import Records


@dataclass(frozen=True)
class Ran:
    """What came out of a closed loop; where a sequence diverged, its outputs are NaN from there on."""

    outputs: list[Array]  # times x outputs, scaled as the teacher was
    diverged: Indices  # per sequence the first time that its output was beyond the limit, or -1

    @classmethod
    def joined(cls, parts: Sequence[Ran]) -> Ran:
        return cls(
            [y for part in parts for y in part.outputs],
            np.concatenate([part.diverged for part in parts]),
        )


def closed_loop(
    records: Records, x: Sequence[Array], b: Array, limit: float, next_input: float | None
) -> Ran:
    """b: sequences x width x outputs. next_input: c, where x[n+1] is not given but c y[n]."""
    order = records.order  # lane -> sequence
    b, lengths = b[order], records.lengths[order]
    y = np.zeros((len(x), max(lengths), b.shape[2]))
    diverged = np.full(len(x), -1, dtype=np.intp)
    for times in records.blocks(x, None, None, 0.0):
        for n in times:
            seen = records.seen[: len(x), n - records.start]
            if next_input is not None and n > 0:
                seen[:, 1 : 1 + y.shape[2]] = next_input * y[:, n - 1]
            records.step(n)
            with np.errstate(over="ignore", invalid="ignore"):
                y[:, n] = (seen[:, None] @ b)[:, 0]
            diverged[~(np.abs(y[:, n]) <= limit).all(axis=1) & (diverged < 0) & (n < lengths)] = n
            y[(diverged >= 0) | (n >= lengths), n] = (
                0.0  # what is beyond a limit, or an end, is not fed back
            )
            records.feed_back(y[:, n, : records.y.shape[1]])
    for lane in np.flatnonzero(diverged >= 0):
        y[lane, diverged[lane] :] = np.nan
    place = np.argsort(order)
    return Ran([y[lane, : lengths[lane]] for lane in place], diverged[place])
