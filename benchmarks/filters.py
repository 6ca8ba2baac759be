"""Claim: filters that learn together take a small part of the time of a known library's lone
filter.

Setting: 10 agents on erdos_renyi(10, 0.6), order 5, 25,000 samples of a Wiener system each, one
round after every
sample, one BLAS thread. Rival: padasip's LMS, one agent, in the same run. Compared are
agent-samples per second. Limits: diffusion LMS at least 40 times the rival's, the diffused spline
filter as in the thesis (LMS, combine then adapt, visited spans) at least 20 times. The other rows
have no limit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import padasip
from common import console, holds, ratio, show, timed
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from peerlearn import LMSFilter, SimulatedNetwork, SplineFilter, graphs
from peerlearn.arrays import Array
from peerlearn.data import wiener

AGENTS, SAMPLES, ORDER, STEP = 10, 25_000, 5, 0.005
BEFORE = {"cooperation": "combine-then-adapt"}
OURS = {
    "diffusion LMS": (LMSFilter(), 40.0),
    "spline filter, LMS, spans (thesis)": (
        SplineFilter(update="lms", exchange="span", **BEFORE),
        20.0,
    ),
    "spline filter, LMS, all control points": (SplineFilter(update="lms"), None),
    "spline filter, NLMS": (SplineFilter(update="nlms"), None),
    "spline filter, RLS": (SplineFilter(), None),
    "spline filter, RLS, a round in 256 samples": (SplineFilter(every=256), None),
}


def rival(x: Array, d: Array) -> Callable[[], Array]:
    """One agent, on the rows that padasip wants."""
    padded = np.concatenate([np.zeros(ORDER - 1), x])
    rows = np.lib.stride_tricks.sliding_window_view(padded, ORDER)[:, ::-1].copy()

    def run() -> Array:
        outputs: Array = padasip.filters.FilterLMS(n=ORDER, mu=STEP, w=np.eye(ORDER)[0]).run(
            d, rows
        )[0]
        return outputs

    return run


def main() -> None:
    system = wiener(agents=AGENTS, samples=SAMPLES)
    network = SimulatedNetwork(graphs.erdos_renyi(AGENTS, 0.6, seed=0))
    lone = rival(system.x[0], system.d[0])
    check = LMSFilter(step_size=STEP).run(system.x[0], system.d[0]).outputs[0]
    console.print(
        f"padasip's outputs and ours differ by {np.abs(lone() - check).max():.1e}", highlight=False
    )
    models = {name: clone(model).set_params(network=network) for name, (model, _) in OURS.items()}
    ours = {name: partial(model.run, system.x, system.d) for name, model in models.items()}
    with threadpool_limits(1):
        times = timed({"padasip": lone, **ours}, repeats=5)
    theirs = times.pop("padasip")
    rows = [["padasip's LMS, one agent", f"{SAMPLES / np.median(theirs) / 1e6:.2f}", "", "", ""]]
    for name, seconds in times.items():
        quicker, limit = AGENTS / ratio(seconds, theirs), OURS[name][1]
        cells = [name, f"{AGENTS * SAMPLES / np.median(seconds) / 1e6:.2f}", f"{quicker:.0f}"]
        rows.append(
            [*cells, "", ""] if limit is None else [*cells, f"{limit:g}", holds(-quicker, -limit)]
        )
    columns = ["filter", "million agent-samples / s", "times the rival", "limit", ""]
    show(f"{AGENTS} agents, {SAMPLES:,} samples, order {ORDER}", columns, rows)


if __name__ == "__main__":
    main()
