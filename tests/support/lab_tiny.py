"""A protocol that learns nothing, for tests of the runner: its numbers follow from a run's seeds,
and it can be told to fail, to warn, to take its time, or to die.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from pyarrow import ArrowInvalid
from pyarrow.parquet import read_table
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_info

from peerlearn.errors import NotConverged
from peerlearn.lab.description.comparison import Comparison, Data, Model, Net
from peerlearn.lab.description.trial import Outcome
from peerlearn.network.base import Counts
from tests.support.pages import ROOT
from tests.support.waiting import PATIENCE

SECONDS = ("seconds", "total_seconds")


def killed(trial):
    os.kill(os.getpid(), signal.SIGKILL)


def fails(trial):
    raise ValueError("the matrix\nis singular")


def no_memory(trial):
    raise MemoryError


def warns(trial):
    for _ in range(2):
        warnings.warn("3 iterations were too few", NotConverged, stacklevel=1)


def exits(trial):
    sys.exit(3)


TROUBLES = {
    "exits": exits,
    "killed": killed,
    "fails": fails,
    "no memory": no_memory,
    "warns": warns,
}


@dataclass(frozen=True)
class Tiny:
    """Runs of the second fold of a model that is named like a trouble have it, unless the file
    `healed` is there.
    """

    healed: str = ""
    name: ClassVar = "tiny"
    measures: ClassVar = {
        "draw": "a number of the run's own seed",
        "common": "one of numpy's common generator",
    }
    curves: ClassVar = {"walk": "three numbers"}

    def refuses(self, data, model):
        return "it has no hands" if model.name == "refuses" else ""

    def run(self, trial):
        assert trial.model.name != "refuses", "what is not applicable is not run"
        time.sleep(float(os.environ.get("TINY_PAUSE", 0)))
        if (
            trial.fold == 1
            and trial.model.name in TROUBLES
            and not Path(self.healed or "nowhere").exists()
        ):
            TROUBLES[trial.model.name](trial)
        rng, common = np.random.default_rng(trial.seed("model")), check_random_state(None)
        threads = max(each["num_threads"] for each in threadpool_info())
        return Outcome(
            seconds=0.5,
            values={"draw": rng.random(), "common": common.random(), "threads": threads},
            agents={"draw": rng.random(3)},
            curves={"walk": ([1, 2, 4], rng.random(3))},
            sent=Counts(2, 3, 4),
            converged=True,
            iterations=7,
            note=str(os.getpid()) if os.environ.get("TINY_NOTE") else "",
        )


def tiny(*models, agents=(4, 5), data=("a", "b"), folds=3, repetitions=2, healed="", **more):
    """Three models on two data sets over two networks, and all in one place."""
    return Comparison(
        data=tuple(Data(name) for name in data),
        models=(
            Model("one place", where="centralised"),
            *(Model(name) for name in models or ("m", "n")),
        ),
        networks=tuple(Net("ring", "ring", number, swept={"agents": number}) for number in agents),
        protocol=Tiny(healed),
        folds=folds,
        repetitions=repetitions,
        **more,
    )


def table(results):
    """Rows without what depends on the clock."""
    return [
        {name: value for name, value in row.items() if name not in SECONDS} for row in results.rows
    ]


@contextmanager
def started(folder, jobs, pause=0.05, **arguments):
    """run(tiny(**arguments), folder, jobs=jobs) in a process group of its own, killed at
    the end.
    """
    script = f"run(tiny(**{json.dumps(arguments)}), {str(folder)!r}, jobs={jobs})"
    imports = (
        "from peerlearn.lab.runs.run import make_runs as run; "
        "from tests.support.lab_tiny import tiny; "
    )
    process = subprocess.Popen(
        [sys.executable, "-c", imports + script],
        cwd=ROOT,
        env={
            **os.environ,
            "TINY_PAUSE": str(pause),
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        },
        start_new_session=True,
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def rows_on_disk(folder):
    return len(list((folder / "runs").glob("[0-9a-f]*.parquet")))


def watched():
    """How much was kept, done and failed in the end, and a watch that tells."""
    told = {}
    return told, lambda progress: told.update(
        kept=progress.kept, done=progress.done, failed=progress.failed
    )


def kept(folder):
    """How many runs have a row on disk; a file may go while one looks, for another that holds the
    same.
    """
    found = set()
    for file in (folder / "runs").glob("*.parquet"):
        with suppress(OSError, ArrowInvalid):
            found.update(read_table(file, columns=["run"]).column("run").to_pylist())
    return len(found)


def wait_for(what):
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline, f"it did not happen within {PATIENCE} s"
        time.sleep(0.03)
