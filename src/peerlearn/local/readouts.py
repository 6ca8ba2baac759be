"""Outputs of a trained reservoir: with known outputs fed back first, then with its own.

    y[n] = b'[1, x[n], h[n]]                 h[n+1] sees y[n] where outputs are fed back

All outputs are in the scale of the teacher. Several readouts b are computed at once. Without
feedback they share the same states. With feedback each readout needs its own states, since an agent
feeds back its own outputs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peerlearn.arrays import Array
from peerlearn.errors import DataError
from peerlearn.local.reservoir import Reservoir

LIMIT = 1e100  # a larger output means that the loop diverges


def outputs(
    reservoir: Reservoir,
    b: Array,
    x: Sequence[Array],
    known: Sequence[Array],
) -> list[Array]:
    """Return the outputs of every sequence, times x readouts x outputs.

    b: readouts x width x outputs. known: the scaled outputs of the first samples of each sequence.
    """
    if not reservoir.feedback:
        return run_forced(reservoir, b, x, None)[0]
    start = []
    rest = []
    last = []  # the output before the rest
    for one, d in zip(x, known, strict=True):
        start.append(one[: len(d)])
        rest.append(one[len(d) :])
        last.append(d[-1] if len(d) else np.zeros(b.shape[2]))
    forced, h = run_forced(reservoir, b, start, known)
    K = len(b)  # readouts, each with a loop of its own
    loops = reservoir.run(
        [one for one in rest for _ in range(K)],
        np.tile(b, (len(x), 1, 1)),
        h0=np.repeat(h, K, axis=0),
        y0=np.repeat(np.stack(last), K, axis=0),
        limit=LIMIT,
    )
    diverged = loops.diverged.reshape(len(x), K)
    for j, first in enumerate(diverged.tolist()):
        times = [begin + len(known[j]) for begin in first if begin >= 0]
        _check_stable(times, f"sequence {j}")
    results = []
    for j, begin in enumerate(forced):
        free = np.stack(loops.outputs[j * K : (j + 1) * K], axis=1)
        results.append(np.concatenate([begin, free]))
    return results


def forecast(
    reservoir: Reservoir,
    b: Array,
    h: Array,
    y: Array,
    steps: int,
    scaling: float,
) -> Array:
    """Return the next outputs, steps x outputs; each, divided by the scaling, is the next input.

    If the loop diverges, outputs are NaN from there on.

    b: width x outputs; h: the state before the first output; y: the output before it.
    """
    x = np.zeros((steps, len(y)))
    x[0] = y / scaling
    loop = reservoir.run(
        [x],
        b[None],
        h0=h[None],
        y0=y[None],
        limit=LIMIT,
        next_input=1 / scaling,
    )
    return loop.outputs[0]


def run_forced(
    reservoir: Reservoir,
    b: Array,
    x: Sequence[Array],
    d: Sequence[Array] | None,
) -> tuple[list[Array], Array]:
    """Return the outputs while known outputs d are fed back, and every sequence's last state."""
    K, _, M = b.shape
    outputs = [np.empty((len(one), K, M)) for one in x]
    h = np.zeros((len(x), reservoir.units))
    for j, times, rows in reservoir.blocks(x, d):
        # One product per readout: the bits of one do not depend on the others.
        outputs[j][times] = (rows @ b).transpose(1, 0, 2)
        h[j] = rows[-1, -reservoir.units :]
    return outputs, h


def _check_stable(times: Sequence[int], where: str) -> None:
    """Refuse outputs that diverged at some time."""
    if times:
        raise DataError(
            f"{where}: the loop of outputs that are fed back diverges, after {min(times)} samples "
            f"they are above {LIMIT:g}: train with some noise or a larger alpha, or with a smaller "
            "spectral_radius or feedback_scaling"
        )
