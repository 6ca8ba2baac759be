"""What a trained reservoir says: its outputs, forced by known ones as long as those last, and by its own after them.

    y[n] = b'[1, x[n], h[n]]                 h[n+1] sees y[n] where outputs are fed back

All in the scale of the teacher. Several readouts b are read at once: without feedback from the same
states, with it each from its own, since what an agent feeds back is its own output.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peerlearn.arrays import Array
from peerlearn.errors import DataError
from peerlearn.local.reservoir import Reservoir

BEYOND = 1e100  # outputs that are larger are no outputs


def outputs(
    reservoir: Reservoir, b: Array, x: Sequence[Array], known: Sequence[Array]
) -> list[Array]:
    """Of every sequence, times x readouts x outputs.

    b: readouts x width x outputs. known: the scaled outputs of the first samples of each sequence.
    """
    if not reservoir.feedback:
        return forced(reservoir, b, x, None)[0]
    begun = [one[: len(d)] for one, d in zip(x, known, strict=True)]
    said, h = forced(reservoir, b, begun, known)
    rest = [one[len(d) :] for one, d in zip(x, known, strict=True)]
    y = np.stack([d[-1] if len(d) else np.zeros(b.shape[2]) for d in known])
    K = len(b)  # readouts, each with a loop of its own
    ran = reservoir.run(
        [one for one in rest for _ in range(K)],
        np.tile(b, (len(x), 1, 1)),
        h0=np.repeat(h, K, axis=0),
        y0=np.repeat(y, K, axis=0),
        limit=BEYOND,
    )
    for j, first in enumerate(ran.diverged.reshape(len(x), K).tolist()):
        _must_not_diverge([begin + len(known[j]) for begin in first if begin >= 0], f"sequence {j}")
    freely = [np.stack(ran.outputs[j * K : (j + 1) * K], axis=1) for j in range(len(x))]
    return [np.concatenate(parts) for parts in zip(said, freely, strict=True)]


def forecast(
    reservoir: Reservoir, b: Array, h: Array, y: Array, steps: int, scaling: float
) -> Array:
    """The next so many outputs, each of which, divided by the scaling, is the next input: steps x outputs.

    b: width x outputs; h: the state before the first of them; y: the output before it.
    """
    x = np.zeros((steps, len(y)))
    x[0] = y / scaling
    ran = reservoir.run([x], b[None], h0=h[None], y0=y[None], limit=BEYOND, next_input=1 / scaling)
    _must_not_diverge([begin for begin in ran.diverged.tolist() if begin >= 0], "the forecast")
    return ran.outputs[0]


def forced(
    reservoir: Reservoir, b: Array, x: Sequence[Array], d: Sequence[Array] | None
) -> tuple[list[Array], Array]:
    """The outputs while what is fed back is known, d, and the last state of every sequence."""
    K, _, M = b.shape
    said, h = [np.empty((len(one), K, M)) for one in x], np.zeros((len(x), reservoir.units))
    for j, times, rows in reservoir.blocks(x, d):
        said[j][times] = (rows @ b).transpose(
            1, 0, 2
        )  # one product per readout: its bits do not depend on the others
        h[j] = rows[-1, -reservoir.units :]
    return said, h


def _must_not_diverge(times: Sequence[int], where: str) -> None:
    if times:
        raise DataError(
            f"{where}: the loop of outputs that are fed back diverges, after {min(times)} samples they are beyond all "
            "numbers: train with some noise or a larger alpha, or with a smaller spectral_radius or feedback_scaling"
        )
