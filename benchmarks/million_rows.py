"""Claim: models of 1,000,000 rows x 100 columns over 100 simulated agents take at most twice the
time of scikit-learn in one place, and at most 3 copies of X in memory.

Setting: LogisticClassifier() beside LogisticRegression(), and RVFLClassifier with 500 features and
alpha 1 beside the same features and Ridge(). Each is at its defaults, and both use all cores. Rows
lie in one table, so that dealing them to the agents is part of our time. Three tables: columns that
are independent and standard normal, which are the easiest there are for scikit-learn's L-BFGS; as
many columns that share ten factors; and numbers, skewed numbers and indicators, as tables of sites
have them. Tasks take turns, and ratios are medians over turns. Copies of X are the peak of a
process that has X and fits one model, Python and all libraries included. The last column is the
largest distance of a coefficient to the exact answer, relative to the largest coefficient; that of
scikit-learn follows from where its defaults stop.

    python benchmarks/million_rows.py [rows] [turns]
"""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from common import console, holds, milliseconds, ratio, show, timed
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge

from peerlearn import LogisticClassifier, RVFLClassifier, SimulatedNetwork, graphs
from peerlearn.arrays import Array
from peerlearn.local.features import RandomFeatures

AGENTS, COLUMNS, HIDDEN = 100, 100, 500
TIMES, COPIES = 2.0, 3.0
TABLES = ("independent", "ten factors", "mixed")
FEATURES = RandomFeatures.draw(COLUMNS, HIDDEN, seed=0)


def table_of(kind: str, rows: int) -> tuple[Array, Array]:
    """Rows of a kind, and labels by a logistic model."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, COLUMNS))
    if kind == "ten factors":
        mixing = rng.standard_normal((10, COLUMNS))
        for part in np.array_split(X, 100):  # so that the peak of memory is that of the fit
            part += rng.standard_normal((len(part), 10)) @ mixing
        X /= np.sqrt(1 + (mixing**2).sum(axis=0))
    if kind == "mixed":
        np.exp(X[:, 40:70], out=X[:, 40:70])
        X[:, 70:] = X[:, 70:] < rng.uniform(-1.5, 1.5, 30)
    centre, scale = X[:10_000].mean(axis=0), X[:10_000].std(axis=0)
    w = rng.standard_normal(COLUMNS) / scale
    f = X @ w - centre @ w
    f *= 1.5 / f.std()
    return X, (rng.random(rows) < 1 / (1 + np.exp(-f - 0.3))).astype(int)


def network() -> SimulatedNetwork:
    return SimulatedNetwork(graphs.ring(AGENTS))


def logistic(X: Array, y: Array) -> LogisticClassifier:
    return LogisticClassifier(network=network(), random_state=0).fit(X, y)


def rival_logistic(X: Array, y: Array) -> LogisticRegression:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # its defaults end after 100 iterations
        return LogisticRegression().fit(X, y)


def rvfl(X: Array, y: Array) -> RVFLClassifier:
    model = RVFLClassifier(HIDDEN, 1.0, activation="sigmoid", network=network(), random_state=0)
    return model.fit(X, y)


def rival_rvfl(X: Array, y: Array) -> Ridge:
    return Ridge(1.0, copy_X=False).fit(FEATURES(X), 2.0 * y - 1.0)


MODELS: dict[str, tuple[Callable[[Array, Array], object], Callable[[Array, Array], object]]] = {
    "LogisticClassifier": (logistic, rival_logistic),
    "RVFLClassifier": (rvfl, rival_rvfl),
}


def peak(model: str, rows: int) -> float:
    """Copies of X at the peak of a process that fits the model on the first table."""
    ended = subprocess.run(
        [sys.executable, __file__, "peak", model, str(rows)], capture_output=True, text=True
    )
    if ended.returncode:
        sys.exit(ended.stderr)
    return float(ended.stdout)


def measure_peak(model: str, rows: int) -> float:
    """Copies of X at the peak of this process, from here on."""
    X, y = table_of(TABLES[0], rows)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    MODELS[model][0](X, y)
    status = Path("/proc/self/status").read_text()
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return 1024 * int(kilobytes) / X.nbytes


def distance(found: Array, wanted: Array) -> str:
    return f"{np.abs(found - wanted).max() / np.abs(wanted).max():.0e}"


def compare(model: str, kind: str, rows: int, turns: int, copies: float) -> list[list[str]]:
    """Rows of the table of results: ours, and scikit-learn's."""
    ours, rival = MODELS[model]
    X, y = table_of(kind, rows)
    seconds = timed({"ours": lambda: ours(X, y), "rival": lambda: rival(X, y)}, turns)
    times = ratio(seconds["ours"], seconds["rival"])
    own = [milliseconds(seconds["ours"]), f"{times:.2f}", holds(times, TIMES)]
    other = [milliseconds(seconds["rival"]), "", ""]
    if model == "LogisticClassifier":
        exact = LogisticClassifier(solver="newton", network=network(), random_state=0)
        exact = exact.set_params(solver__tolerance=1e-10).fit(X, y).coefficients_[0, :, 0]
        own.append(distance(ours(X, y).coefficients_[0, :, 0], exact))
        other.append(distance(rival(X, y).coef_[0], exact))
    else:
        own.append("")
        other.append("")
    own += [f"{copies:.2f}", holds(copies, COPIES)]
    return [[model, kind, *own], ["scikit-learn", kind, *other, "", ""]]


def main() -> None:
    if sys.argv[1:2] == ["peak"]:
        print(measure_peak(sys.argv[2], int(sys.argv[3])))
        return
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    entries: list[list[str]] = []
    for model in MODELS:
        copies = peak(model, rows)
        for kind in TABLES if model == "LogisticClassifier" else TABLES[:1]:
            entries += compare(model, kind, rows, turns, copies)
    columns = ["", "table", "ms", "times", "<= 2", "distance", "copies of X", "<= 3"]
    show(f"{rows:,} rows x {COLUMNS} columns over {AGENTS} agents", columns, entries)
    console.print(f"Medians of {turns} turns.", highlight=False)


if __name__ == "__main__":
    main()
