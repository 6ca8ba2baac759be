"""Claim: 10,000 agents mix as fast as a sparse product allows, and an average needs little memory
beside its input.

Setting: scale_free(10_000, 5), which gives agents ten neighbors on average; 1000 numbers each, 80
MB in all.
Rival of one round, `network.mix(X)`: scipy's CSR product `W @ X` of the same matrix (limit: twice
its time). Memory: at the peak of an average at most three times X, with the X that was given
(tracemalloc, which sees numpy). Stopping by messages has no such limit: it also keeps the last
certified x and the residual.
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
from common import holds, milliseconds, ratio, show, timed

from peerlearn import SimulatedNetwork, average, graphs
from peerlearn.arrays import Array

AGENTS, NEIGHBORS, NUMBERS = 10_000, 10, 1000
TOLERANCE = 1e-2  # coarse, to be short: from the fourth round on buffers are what they are
LIMIT_TIME, LIMIT_MEMORY = 2.0, 3.0
SMALL_CHANGE = 0.01  # of X: norms and indices, one number per agent
WAYS = (
    ("plain", "bound"),
    ("plain", "messages"),
    ("chebyshev", "bound"),
    ("chebyshev", "messages"),
    ("tree", "bound"),
)


def one_round(network: SimulatedNetwork, X: Array) -> list[str]:
    W = network.weights
    np.testing.assert_allclose(network.mix(X), W @ X, atol=1e-12)
    times = timed({"ours": lambda: network.mix(X), "rival": lambda: W @ X}, repeats=9)
    r = ratio(times["ours"], times["rival"])
    return [
        "one round",
        milliseconds(times["ours"]),
        milliseconds(times["rival"]),
        f"{r:.2f}",
        holds(r, LIMIT_TIME),
    ]


def memory(network: SimulatedNetwork, X: Array, method: str, stopping: str) -> list[str]:
    before, start = network.ledger.rounds, time.perf_counter()
    tracemalloc.start()
    average(network, X, tolerance=TOLERANCE, method=method, stopping=stopping)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    seconds, copies = time.perf_counter() - start, 1 + peak / X.nbytes
    verdict = "-" if stopping == "messages" else holds(copies, LIMIT_MEMORY + SMALL_CHANGE)
    rounds = network.ledger.rounds - before
    return [f"{method}, {stopping}", f"{rounds}", f"{seconds:.2g}", f"{copies:.2f}", verdict]


def main() -> None:
    network = SimulatedNetwork(graphs.scale_free(AGENTS, NEIGHBORS // 2))
    X = np.random.default_rng(0).standard_normal((AGENTS, NUMBERS))
    what = f"{AGENTS:,} agents, {NUMBERS} numbers each"
    columns = ["", "ours, ms", "scipy CSR, ms", "ours / rival", f"limit {LIMIT_TIME:g}"]
    show(f"Mixing {what}", columns, [one_round(network, X)])
    _ = network.spectrum, network.diameter  # part of the description, not of an average
    columns = ["average", "rounds", "seconds", "peak, times X", f"limit {LIMIT_MEMORY:g}"]
    show(
        f"Memory of an average of {what}, to {TOLERANCE:g}",
        columns,
        [memory(network, X, *way) for way in WAYS],
    )


if __name__ == "__main__":
    main()
