"""An average over 50 agents, 1000 numbers each, to 1e-6: by 50 processes with mutual TLS, and by 2
MPI ranks.

    python benchmarks/averaging_processes.py

The one comparable system, disropt over MPI, was measured at 23 s for this, after 28 s of starting.
Peers may take 30 s after they have started; MPI has to be 20 times faster than disropt.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from common import console, holds, show
from engine_processes import answer, mpi_job, prepare, start
from engine_workers import AGENTS

LIMITS = {"peers, 50 processes": 30.0, "mpi, 2 ranks": 23.0 / 20}


def peers() -> tuple[dict[str, float], float]:
    """Seconds of each method by the slowest agent, and of everything."""
    with tempfile.TemporaryDirectory() as name:
        folder, began = Path(name) / "agents", time.perf_counter()
        prepare(folder, AGENTS)
        processes = [start("average-peer", k, AGENTS, folder) for k in range(AGENTS)]
        try:
            told = [json.loads(answer(process)) for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
        return {
            method: max(each[method] for each in told) for method in told[0]
        }, time.perf_counter() - began


def main() -> None:
    apart, everything = peers()
    seconds = {"peers, 50 processes": apart, "mpi, 2 ranks": json.loads(mpi_job(2, "average-mpi"))}
    rows = [
        [engine, method, f"{taken:.4g}", f"{LIMITS[engine]:.3g}", holds(taken, LIMITS[engine])]
        for engine, by_method in seconds.items()
        for method, taken in by_method.items()
    ]
    show(
        "Average over 50 agents, 1000 numbers each, to 1e-6",
        ["engine", "method", "seconds", "limit", ""],
        rows,
    )
    console.print(
        f"All 50 processes together, with starting them, took {everything:.0f} s.", highlight=False
    )


if __name__ == "__main__":
    main()
