"""What secret sums cost, and how exact their totals are.

    python benchmarks/secret.py                all three, some minutes
    python benchmarks/secret.py bytes          one of bytes, time, exactness

bytes: RVFLRegressor by Gram, 50 agents on a random graph, 500 features, with keys, certificates and
signatures, beside the same without secrecy, which sends triangles of R factors. At most 5 % more.

time: the same between processes over mutual TLS, with 1,000 rows per agent. Both are timed in
turns, by the slowest agent. At most 2 times as long.

exactness: the total that the root decodes beside the exact sum of all agents' float64 numbers, as a
part of sqrt(G_ii G_jj). At most 2e-16.

The last column is holds or MISSED.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import holds, ratio, show
from engine_processes import answer, prepare
from engine_workers import peer
from threadpoolctl import threadpool_limits

from peerlearn import Network, RVFLRegressor, SimulatedNetwork, graphs, maximum
from peerlearn.algorithms.readout.secret_gram import Columns
from peerlearn.algorithms.secret_sums import open_session
from peerlearn.arrays import Array
from peerlearn.local.features import RandomFeatures
from peerlearn.secret.fixed_point import (
    decode_entries,
    encode_diagonal,
    entry_exponents,
    exponents_of,
)

AGENTS = 50
FEATURES = 500
INPUTS = 20
TURNS = 3
MOST_BYTES = 1.05  # of those without secrecy
MOST_TIME = 2.0
MOST_ERROR = 2e-16


def rows_of(agent: int, rows: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(agent)
    X = rng.standard_normal((rows, INPUTS))
    return X, X.sum(axis=1) + rng.standard_normal(rows)


def graph(agents: int) -> object:
    return graphs.erdos_renyi(agents, min(1.0, 10 / agents), seed=0)


def fit(network: Network, rows: int) -> RVFLRegressor:
    model = RVFLRegressor(
        FEATURES,
        features="fixed",
        alpha=1.0,
        solver="gram",
        direct_links=False,
        network=network,
        random_state=0,
    )
    return model.fit([rows_of(agent, rows) for agent in network.hosted])


def compare_bytes() -> None:
    rows = FEATURES + 20  # so that every R factor is a whole triangle
    plain = fit(SimulatedNetwork(graph(AGENTS)), rows).report_.sent
    secret = fit(SimulatedNetwork(graph(AGENTS), secrecy="sums"), rows).report_.sent
    times = secret.bytes / plain.bytes
    show(
        f"Bytes, {AGENTS} agents, {FEATURES} features",
        ["", "MB", "rounds", "of without", "limit", ""],
        [
            ["without secrecy", f"{plain.megabytes:.2f}", str(plain.rounds), "", "", ""],
            [
                "secret sums",
                f"{secret.megabytes:.2f}",
                str(secret.rounds),
                f"{times:.4f}",
                f"{MOST_BYTES}",
                holds(times, MOST_BYTES),
            ],
        ],
    )


def work(agent: int, agents: int, folder: Path, rows: int) -> None:
    """Print the seconds of each turn without and with secrecy, as one agent over TLS."""
    seconds: dict[str, list[float]] = {"plain": [], "secret": []}
    with threadpool_limits(1), peer(agent, graph(agents), folder) as network:
        for _ in range(TURNS + 1):  # the first is not counted
            for way, taken in seconds.items():
                maximum(network, [0.0])  # all agents are here
                start = time.perf_counter()
                network.keep_secrets("sums" if way == "secret" else None, 1)
                fit(network, rows)
                network.secrecy = None
                taken.append(time.perf_counter() - start)
        print(json.dumps({way: taken[1:] for way, taken in seconds.items()}), flush=True)


def compare_time(agents: int = AGENTS, rows: int = 1000) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "agents"
        prepare(folder, agents)
        command = [sys.executable, __file__, "agent"]
        given = [str(agents), str(folder), str(rows)]
        processes = [
            subprocess.Popen([*command, str(k), *given], stdout=subprocess.PIPE, text=True)
            for k in range(agents)
        ]
        try:
            answers = [json.loads(answer(process)) for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
    slowest = {way: np.max([each[way] for each in answers], axis=0) for way in answers[0]}
    times = ratio(slowest["secret"], slowest["plain"])
    show(
        f"Time over TLS, {agents} processes, {rows} rows each, {FEATURES} features",
        ["", "seconds", "of without", "limit", ""],
        [
            ["without secrecy", f"{np.median(slowest['plain']):.3g}", "", "", ""],
            [
                "secret sums",
                f"{np.median(slowest['secret']):.3g}",
                f"{times:.3g}",
                f"{MOST_TIME:g}",
                holds(times, MOST_TIME),
            ],
        ],
    )


def worst_error(agents: int, rows: int) -> float:
    """Error of the worst entry of a total, as a part of its diagonal scale."""
    features = RandomFeatures.draw(INPUTS, FEATURES, seed=0)
    columns = Columns(FEATURES, 1, intercept=True)
    given = [rows_of(agent, rows) for agent in range(agents)]
    grams = [columns.gram(features, X, y[:, None]) for X, y in given]
    session = open_session(SimulatedNetwork(graph(agents), secrecy="sums"))
    words = np.stack([encode_diagonal(np.diagonal(own), agents) for own in grams])
    diagonal = session.sum_to_root("diagonal", words)
    p = session.answer(diagonal, columns.width, lambda D: exponents_of(D).astype(float))[0]
    i, j = columns.entries
    e = entry_exponents(*p.astype(np.int64)[np.array([i, j])])
    parts = np.stack([own[i, j] for own in grams])
    total = session.sum_to_root("Gram", session.encode(parts, e)[:, :, None], e.tobytes())
    found = decode_entries(total[:, 0], e)
    exact = np.sqrt([math.fsum(own[k, k] for own in grams) for k in range(columns.width)])
    errors = [
        abs(math.fsum([*of_agents, -sum_of_all]))  # fsum rounds once, so this is the true error
        for of_agents, sum_of_all in zip(parts.T.tolist(), found.tolist(), strict=True)
    ]
    return float(np.max(np.array(errors) / (exact[i] * exact[j])))


def compare_exactness() -> None:
    table = []
    for agents in (3, 10, AGENTS, 200):
        worst = worst_error(agents, rows=40)
        table.append([str(agents), f"{worst:.2e}", f"{MOST_ERROR:g}", holds(worst, MOST_ERROR)])
    show(
        f"Worst error of {FEATURES} features' totals, as a part of sqrt(G_ii G_jj)",
        ["agents", "error", "limit", ""],
        table,
    )


def main() -> None:
    named = {"bytes": compare_bytes, "time": compare_time, "exactness": compare_exactness}
    if sys.argv[1:2] == ["agent"]:
        agent, agents, folder, rows = sys.argv[2:]
        work(int(agent), int(agents), Path(folder), int(rows))
        return
    for name in sys.argv[1:] or named:
        named[name]()


if __name__ == "__main__":
    main()
