"""Claim: running a comparison costs less than 5 % more than its runs by themselves.

Setting: chapter 4's comparison (experiments/ch4-agents.toml) at its quick size, with generated g50c
where G50C is not
at hand: seven models, up to 20 agents. Charged to the runner: keys and seeds, the description,
graphs, a Parquet file
per run, their merging, the table of all, and reading it again. One job, one thread, CPU seconds; a
folder of its own each time; what runs keep in memory is there before. Rivals: the runs' own time in
the same pass, which no other work on the machine disturbs; and the same runs in a plain loop over
the protocol, in turns with the lab. Limit: 1.05 times the rival's time.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from common import holds, milliseconds, ratio, show
from threadpoolctl import threadpool_limits

from peerlearn.arrays import Array
from peerlearn.errors import NotConverged
from peerlearn.lab import Comparison, Data, Model, read
from peerlearn.lab.description.trial import Outcome, Protocol, Trial
from peerlearn.lab.runs.run import make_runs as run

FILE = Path(__file__).parent.parent / "experiments" / "ch4-agents.toml"
REPEATS, LIMIT = 7, 1.05


class Timed:
    """A protocol that knows how long its runs took."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol, self.seconds = protocol, 0.0
        self.name, self.measures, self.curves = protocol.name, protocol.measures, protocol.curves

    def refuses(self, data: Data, model: Model) -> str:
        return self.protocol.refuses(data, model)

    def run(self, trial: Trial) -> Outcome:
        start = time.process_time()
        outcome = self.protocol.run(trial)
        self.seconds += time.process_time() - start
        return outcome


def lab(comparison: Comparison) -> tuple[float, float]:
    """Seconds of everything, and of the runs alone."""
    timed = Timed(comparison.protocol)
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        results = run(replace(comparison, protocol=timed), folder, jobs=1)
        seconds = time.process_time() - start
    assert {row["status"] for row in results.rows} == {"done"}
    return seconds, timed.seconds


def loop(comparison: Comparison) -> float:
    start = time.process_time()
    for trial in comparison.trials():
        comparison.protocol.run(trial)
    return time.process_time() - start


def cells(rival: str, runs: int, ours: Array, theirs: Array) -> list[str]:
    found, more = ratio(ours, theirs), float(np.median(ours - theirs)) / runs
    times = (milliseconds(ours), milliseconds(theirs), f"{1e3 * more:.1f}")
    return [rival, f"{runs}", *times, f"{found:.3f}", f"{LIMIT}", holds(found, LIMIT)]


def main() -> None:
    warnings.simplefilter("ignore", NotConverged)  # models as printed do not
    comparison = read(FILE, size="quick", without_missing=True)
    runs = len(list(comparison.trials()))
    with threadpool_limits(1):
        turns = [(*lab(comparison), loop(comparison)) for _ in range(REPEATS + 1)]
    ours, own, plain = np.array(turns[1:]).T  # the first compiles, and fills caches
    columns = ["rival", "runs", "lab, ms", "rival, ms", "more per run, ms", "ratio", "limit", ""]
    rows = [
        cells("its own runs, same pass", runs, ours, own),
        cells("a plain loop, in turns", runs, ours, plain),
    ]
    show("The lab beside its runs: chapter 4's comparison, one job", columns, rows)


if __name__ == "__main__":
    main()
