"""Claim: running a reservoir over many sequences and training its readout takes a quarter of
reservoirpy's time.

Setting: NARMA-10, 50 sequences of 2000 samples; 300 units, density .25, spectral radius .9, ridge
with alpha 1e-3 on
[1, x[n], h[n]]; one BLAS thread, one worker. Rival: reservoirpy's ESN on the very same matrices,
with its constant as an input so that it solves the same problem, once with W as an array and once
sparse as it draws them itself; the quicker of the two counts in every turn. States must be equal to
1e-12. Limit: ours / rival at most 0.25.

Needs reservoirpy: pip install reservoirpy
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from common import console, holds, milliseconds, ratio, show, timed
from threadpoolctl import threadpool_limits

from peerlearn import data
from peerlearn.arrays import Array
from peerlearn.local.harvest import Blocks, harvest_problems
from peerlearn.local.reservoir import Reservoir

SEQUENCES, LENGTH, UNITS, DENSITY, ALPHA = 50, 2000, 300, 0.25, 1e-3
LIMIT, EQUAL = 0.25, 1e-12


def ours(reservoir: Reservoir, x: list[Array], y: list[Array]) -> Callable[[], Array]:
    owners = [0] * len(x)

    def train() -> Array:
        def blocks() -> Blocks:
            return reservoir.blocks(x, y, owners=owners)

        problems, _ = harvest_problems(blocks, y, owners, washout=0, width=reservoir.width)
        return problems.ridge(np.array([ALPHA]))[0]

    return train


def rival(reservoir: Reservoir, W: Any, x: list[Array], y: list[Array]) -> Callable[[], Any]:
    from reservoirpy import ESN
    from reservoirpy.nodes import Reservoir as RivalReservoir
    from reservoirpy.nodes import Ridge

    inputs = [np.hstack([np.ones((len(one), 1)), one]) for one in x]
    nodes = RivalReservoir(W=W, Win=reservoir.W_in, lr=reservoir.leak)
    esn = ESN(reservoir=nodes, readout=Ridge(ridge=ALPHA, fit_bias=False), input_to_readout=True)
    esn.initialize(inputs, y)

    def train() -> Any:
        esn.reset()  # else sequences start where the last ones ended
        return esn.fit(inputs, y, workers=1)

    return train


def distances(reservoir: Reservoir, x: list[Array], y: list[Array]) -> tuple[float, float]:
    """Of the states, and of what the two readouts say; the largest over all samples."""
    H, b = reservoir.harvest(x), ours(reservoir, x, y)()
    esn = rival(reservoir, reservoir.W, x, y)()
    esn.reset()
    states = esn.reservoir.run([h[:, :2] for h in H], workers=1)
    esn.reset()
    outputs = esn.run([h[:, :2] for h in H], workers=1)
    between = max(float(np.abs(h[:, 2:] - s).max()) for h, s in zip(H, states, strict=True))
    return between, max(float(np.abs(h @ b - o).max()) for h, o in zip(H, outputs, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    inputs, targets = data.narma10(SEQUENCES, LENGTH, seed=0)
    x, y = (
        [np.asarray(one).reshape(LENGTH, 1) for one in inputs],
        [one.reshape(LENGTH, 1) for one in targets],
    )
    reservoir = Reservoir.draw(
        *(1, 1),
        units=UNITS,
        spectral_radius=0.9,
        density=DENSITY,
        input_scaling=0.5,
        feedback_scaling=0.0,
        leak=1.0,
        seed=0,
    )
    with threadpool_limits(1):
        states, outputs = distances(reservoir, x, y)
        tasks = {
            "states and readout": ours(reservoir, x, y),
            "W as an array": rival(reservoir, reservoir.W, x, y),
            "W sparse": rival(reservoir, scipy.sparse.csr_array(reservoir.W), x, y),
            "states alone": lambda: sum(len(rows) for _, _, rows in reservoir.blocks(x)),
        }
        times = timed(tasks, options.repeats)
    quicker = np.minimum(times["W as an array"], times["W sparse"])
    r = ratio(times["states and readout"], quicker)
    show(
        f"{SEQUENCES} sequences x {LENGTH}, {UNITS} units, one BLAS thread",
        ["", "ms", "ours / rival", "limit", ""],
        [
            [
                "ours, states and readout",
                milliseconds(times["states and readout"]),
                f"{r:.3f}",
                f"{LIMIT:g}",
                holds(r, LIMIT),
            ],
            ["ours, states alone", milliseconds(times["states alone"]), "", "", ""],
            ["reservoirpy, W as an array", milliseconds(times["W as an array"]), "", "", ""],
            ["reservoirpy, W sparse", milliseconds(times["W sparse"]), "", "", ""],
        ],
    )
    console.print(
        (
            f"largest distance of states {states:.1e} (limit {EQUAL:g}: "
            f"{holds(states, EQUAL)}), of outputs {outputs:.1e}"
        ),
        highlight=False,
    )


if __name__ == "__main__":
    main()
