"""Claim: an average over 50 agents costs no more than the bare matrix products it is made of.

Setting: erdos_renyi(50, 0.2), 1000 numbers per agent, relative error 1e-6, metropolis weights, one
BLAS thread.
Rivals, all plain and with the rounds that plain mixing needs: `for _ in range(n): X = W @ X` in
numpy (limit: 1.5
times its time, for every way of ours to the same accuracy); tvopt's
`average_consensus`; decent-bench, which has no averaging, as an algorithm of its own classes that
sends and mixes and does nothing else (limit: a tenth of the time of either). A rival that is not
installed is left out and named. Rivals are handed W and the number of rounds; ours the spectrum and
diameter, which are in a network's description and whose time is told apart. "First" is the first
average over a network, "again" any later one.
"""

from __future__ import annotations

from functools import partial

import networkx as nx
import numpy as np
from common import console, holds, milliseconds, ratio, show, timed
from rivals import decent_bench_average, tvopt_average
from threadpoolctl import threadpool_limits

from peerlearn import SimulatedNetwork, average, graphs
from peerlearn.arrays import Array
from peerlearn.rounds import plain_rounds

REPEATS, TOLERANCE = 15, 1e-6
KINDS = (
    ("plain", "bound"),
    ("plain", "messages"),
    ("chebyshev", "bound"),
    ("chebyshev", "messages"),
)
LIMIT_NUMPY, LIMIT_OTHERS = 1.5, 0.1


def numpy_loop(W: Array, X: Array, rounds: int) -> Array:
    for _ in range(rounds):
        X = W @ X
    return X


def described(graph: nx.Graph) -> SimulatedNetwork:
    """A network over which nothing was averaged yet, but whose description is complete."""
    network = SimulatedNetwork(graph)
    _ = network.spectrum, network.diameter
    return network


def against_numpy(graph: nx.Graph, X: Array, method: str, stopping: str) -> list[list[str]]:
    ours = partial(average, x=X, tolerance=TOLERANCE, method=method, stopping=stopping)
    known, new = described(graph), iter([described(graph) for _ in range(REPEATS + 1)])
    ours(known)
    rounds = known.ledger.rounds
    rival = partial(
        numpy_loop, known.weights.toarray(), X, plain_rounds(known.contraction, TOLERANCE)
    )
    times = timed(
        {"first": lambda: ours(next(new)), "rival": rival, "again": lambda: ours(known)}, REPEATS
    )
    return [
        row(
            f"{method}, {stopping}, {call}",
            rounds,
            times[call],
            "numpy loop",
            times["rival"],
            LIMIT_NUMPY,
        )
        for call in ("first", "again")
    ]


def against_others(graph: nx.Graph, X: Array) -> list[list[str]]:
    ours = partial(average, x=X, tolerance=TOLERANCE, method="plain")
    known, new = described(graph), iter([described(graph) for _ in range(2 * REPEATS + 2)])
    answer, rounds, rows = ours(known), known.ledger.rounds, []
    for name, prepare in (("tvopt", tvopt_average), ("decent-bench", decent_bench_average)):
        try:
            rival = prepare(graph, X, rounds)
        except ImportError as missing:
            console.print(f"{name} is not compared: {missing}.", highlight=False)
            continue
        np.testing.assert_allclose(rival(), answer, atol=1e-10)
        times = timed({"ours": lambda: ours(next(new)), "rival": rival}, REPEATS)
        rows.append(
            row("plain, bound, first", rounds, times["ours"], name, times["rival"], LIMIT_OTHERS)
        )
    return rows


def row(what: str, rounds: int, ours: Array, name: str, rival: Array, limit: float) -> list[str]:
    r = ratio(ours, rival)
    return [
        what,
        f"{rounds}",
        milliseconds(ours),
        name,
        milliseconds(rival),
        f"{r:.3g}",
        f"{limit:g}",
        holds(r, limit),
    ]


def main() -> None:
    graph = graphs.erdos_renyi(50, 0.2)
    X = np.random.default_rng(0).standard_normal((50, 1000))
    with threadpool_limits(1):
        rows = [line for kind in KINDS for line in against_numpy(graph, X, *kind)] + against_others(
            graph, X
        )
    columns = ["average", "rounds", "ours, ms", "rival", "rival, ms", "ours / rival", "limit", ""]
    description = milliseconds(timed({"": lambda: described(graph)}, REPEATS)[""])
    show("Average over 50 agents, 1000 numbers each, to 1e-6", columns, rows)
    console.print(
        f"Making a network, with spectrum and diameter, takes {description} ms, once.",
        highlight=False,
    )


if __name__ == "__main__":
    main()
