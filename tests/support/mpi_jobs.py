"""Jobs of several ranks on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.pages import ROOT

SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # more ranks than cores
    "OMP_NUM_THREADS": "1",
}


def start(
    ranks: int | None, *program: str, timeout: float = 1500
) -> subprocess.CompletedProcess[str]:
    """python *program on so many ranks, or without mpiexec for None."""
    job = (
        [] if ranks is None else [str(Path(sys.executable).with_name("mpiexec")), "-n", str(ranks)]
    )
    try:
        return subprocess.run(
            [*job, sys.executable, "-W", "error", *program],
            cwd=ROOT,
            env={**os.environ, **SETTINGS, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired as late:  # mpiexec was killed, and its ranks end with it
        raise AssertionError(
            f"the job had not ended after {timeout:g} s: {late.stdout!r} {late.stderr!r}"
        ) from None


def run(ranks: int | None, *program: str) -> str:
    """What a job that must end well has printed."""
    done = start(ranks, *program)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
