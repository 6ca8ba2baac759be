"""Rounds per second of the three engines, beside the bare transport doing the same bytes in the
same run.

    python benchmarks/engines.py

Agents in a ring, each a process or a rank of its own, exchange rows of 4 KB and 4 MB and mix them.
The rival of peers is grpc.aio with mutual TLS, that of MPI a neighborhood collective of mpi4py,
that of simulation numpy's C @ X; all do the same product. A round of ours, with header, checks,
exactly-once delivery and ledger, may take 1.5 times as long on MPI and between peers; against
numpy, whose round of a few agents takes two microseconds, nothing is claimed.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from common import console, holds, ratio, show, timed
from engine_processes import answer, mpi_job, prepare, start, turn
from threadpoolctl import threadpool_limits

from peerlearn import SimulatedNetwork, graphs
from peerlearn.arrays import Array

LIMIT = 1.5
SIZES = {"4 KB": 512, "4 MB": 524_288}  # numbers in a row
ROUNDS = {
    "peers": {"4 KB": 400, "4 MB": 12},
    "mpi": {"4 KB": 2000, "4 MB": 40},
    "simulation": {"4 KB": 2000, "4 MB": 5},
}
WAYS = ("mix", "recur")  # a call per round, or one call for all
TURNS = 7


def peers(agents: int) -> Iterator[list[str]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "ring"
        prepare(folder, agents)
        ours, raw = (
            [start(mode, k, agents, folder) for k in range(agents)] for mode in ("peer", "raw-grpc")
        )
        try:
            for process in ours + raw:
                answer(process)  # "ready"
            for size, width in SIZES.items():
                for way in WAYS:
                    rounds, seconds = ROUNDS["peers"][size], defaultdict(list)
                    for n in range(TURNS + 1):  # the first turn is not counted
                        for who, processes in (("ours", ours), ("raw", raw)):
                            taken = turn(processes, width, rounds, way)
                            if n:
                                seconds[who].append(taken)
                    yield line(
                        "peers",
                        agents,
                        size,
                        way,
                        rounds,
                        np.array(seconds["ours"]),
                        np.array(seconds["raw"]),
                    )
        finally:
            for process in ours + raw:
                assert process.stdin is not None
                process.stdin.close()
            time.sleep(0.5)
            for process in ours + raw:
                process.kill()
                process.wait()


def mpi(agents: int) -> Iterator[list[str]]:
    cases = [(size, way) for size in SIZES for way in WAYS]
    asked = ";".join(f"{SIZES[size]},{ROUNDS['mpi'][size]},{way},{TURNS}" for size, way in cases)
    seconds = defaultdict(list)
    for told in mpi_job(agents, "mpi", asked).splitlines():
        width, _, way, ours, raw = told.split()
        seconds[int(width), way].append((float(ours), float(raw)))
    for size, way in cases:
        ours, raw = np.array(seconds[SIZES[size], way]).T
        yield line("mpi", agents, size, way, ROUNDS["mpi"][size], ours, raw)


def simulation(agents: int) -> Iterator[list[str]]:
    network = SimulatedNetwork(graphs.ring(agents))
    C = network.weights.toarray()
    for size, width in SIZES.items():
        X, rounds = (
            np.random.default_rng(0).standard_normal((agents, width)),
            ROUNDS["simulation"][size],
        )

        def mix(X: Array = X, rounds: int = rounds) -> None:
            for _ in range(rounds):
                X = network.mix(X)

        def raw(X: Array = X, rounds: int = rounds) -> None:
            for _ in range(rounds):
                X = C @ X

        def recur(X: Array = X, rounds: int = rounds) -> None:
            network.recur(X, np.tile([1.0, 0.0, 0.0], (rounds, 1)))

        for way, ours in (("mix", mix), ("recur", recur)):
            seconds = timed({"ours": ours, "raw": raw}, TURNS)
            yield line(
                "simulation", agents, size, way, rounds, seconds["ours"], seconds["raw"], limit=None
            )


def line(
    engine: str,
    agents: int,
    size: str,
    way: str,
    rounds: int,
    ours: Array,
    raw: Array,
    limit: float | None = LIMIT,
) -> list[str]:
    r, a_round = ratio(ours, raw), float(np.median(ours)) / rounds
    sent = 2 * agents * 8 * SIZES[size] / a_round / 1e6  # every agent of a ring sends to two
    bare, verdict = (
        rounds / float(np.median(raw)),
        (f"{limit:g}", holds(r, limit)) if limit else ("-", ""),
    )
    numbers = [f"{1 / a_round:,.0f}", f"{sent:,.0f}", f"{bare:,.0f}", f"{r:.2f}"]
    return [engine, f"{agents}", size, way, *numbers, *verdict]


def main() -> None:
    columns = [
        "engine",
        "agents",
        "row",
        "call",
        "rounds/s",
        "MB/s",
        "bare, rounds/s",
        "ours / bare",
        "limit",
        "",
    ]
    with threadpool_limits(1):
        rows = [
            each
            for engine in (simulation, mpi, peers)
            for agents in (4, 8)
            for each in engine(agents)
        ]
    show("Rounds on a ring, one agent per process (simulation: all in one)", columns, rows)
    console.print(
        "'mix' is one call per round; 'recur' is one call for all rounds, as averages make it.",
        highlight=False,
    )


if __name__ == "__main__":
    main()
