"""Claim: 1,000,000 rows x 1,280 features that a function computes never lie in memory: the peak is
below 1.5 GB besides the rows themselves.

Setting: 1,000,000 rows of 64 columns, ten classes, given as shares to 10 agents on a ring. The
function multiplies 64 columns by a fixed matrix and takes the positive part. alpha is given, and
then chosen by cross-validation. All features together would take 10.2 GB. Each case runs in a
process of its own; the peak is its largest resident memory, without X and y.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time

import numpy as np
from common import console, holds, show

from peerlearn import RVFLClassifier, SimulatedNetwork, graphs
from peerlearn.arrays import Array

ROWS = 1_000_000
COLUMNS = 64
FEATURES = 1280
AGENTS = 10
LIMIT = 1.5  # GB
W = np.random.default_rng(0).standard_normal((COLUMNS, FEATURES)) / 8


def positive_part(rows: Array) -> Array:
    H = rows @ W
    np.maximum(H, 0, out=H)
    return H


def measure(alpha: str) -> None:
    """Print the peak in GB, the seconds of fit, and the share of rows that are right."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((ROWS, COLUMNS))
    y = np.argmax(X[:, :10] ** 2, axis=1)
    own = (X.nbytes + y.nbytes) / 1e9
    shares = list(zip(np.array_split(X, AGENTS), np.array_split(y, AGENTS), strict=True))
    model = RVFLClassifier(
        features=positive_part,
        alpha=alpha if alpha == "auto" else float(alpha),
        network=SimulatedNetwork(graphs.ring(AGENTS)),
        random_state=0,
    )
    start = time.perf_counter()
    model.fit(shares)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(peak - own, seconds, model.score(X[:10_000], y[:10_000]), sep="\n")


def main() -> None:
    rows = []
    for alpha in ("1.0", "auto"):
        done = subprocess.run(
            [sys.executable, __file__, alpha],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        peak, seconds, score = map(float, done.stdout.split())
        rows.append(
            [alpha, f"{peak:.2f}", f"{LIMIT}", holds(peak, LIMIT), f"{seconds:.0f}", f"{score:.3f}"]
        )
    show(
        f"{ROWS:,} rows x {FEATURES:,} features over {AGENTS} agents",
        ["alpha", "peak without X, GB", "limit", "", "seconds", "right"],
        rows,
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1])
    else:
        main()
        console.print(f"all features together: {ROWS * FEATURES * 8 / 1e9:.1f} GB")
