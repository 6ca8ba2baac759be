"""Claim: eight agents learn a stream together in at most twice the time of recursive least squares
in one place.

Setting: 200,000 rows of Skin (three colour channels, two classes), or random ones where there is no
file, in chunks of
100; 300 features, alpha 1; 8 agents on erdos_renyi(8, 0.5), who average after every chunk over a
tree. Rival: the blockwise recursion as printed in the thesis (section 5.1), centrally, in plain
numpy, on the same features. Both with the machine's own threads and with one; by default 300 chunks
are timed several times over, with --all the whole stream once. Limit: 2 times the rival's time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from common import console, holds, milliseconds, ratio, show, timed
from threadpoolctl import threadpool_limits

from peerlearn import RVFLClassifier, SimulatedNetwork, data, graphs
from peerlearn.arrays import Array
from peerlearn.errors import DataError
from peerlearn.local.features import RandomFeatures

ROWS, CHUNK, AGENTS, HIDDEN, ALPHA, LIMIT = 200_000, 100, 8, 300, 1.0, 2.0
STREAMS = {"consensus": LIMIT, "exact": None, "rls": None, "lms": None}


def skin(folder: Path | None) -> tuple[Array, Array]:
    """Rows in random order: the file has one class after the other."""
    rng = np.random.default_rng(0)
    try:
        found = data.load("Skin_substitute", folder)
        picked = rng.permutation(len(found.X))[:ROWS]
        return found.X[picked], found.y[picked]
    except DataError:
        where = folder or "the folder that PEERLEARN_DATA should name"
        console.print(
            f"There is no Skin_substitute.npz in {where}: random rows stand in for it.",
            highlight=False,
        )
        X = rng.uniform(size=(ROWS, 3))
        noise = 0.1 * rng.standard_normal(ROWS)
        return X, np.where(X @ np.array([1.0, -2.0, 1.0]) + noise > 0, 1, -1)


def together(X: Array, y: Array, stream: str) -> Callable[[], RVFLClassifier]:
    network = SimulatedNetwork(graphs.erdos_renyi(AGENTS, 0.5, seed=0))

    def run() -> RVFLClassifier:
        model = RVFLClassifier(
            HIDDEN,
            ALPHA,
            fit_intercept=False,
            stream=stream,
            network=network,
            random_state=0,
            activation="sigmoid",
        )
        for start in range(0, len(X), CHUNK):
            model.partial_fit(X[start : start + CHUNK], y[start : start + CHUNK], classes=[-1, 1])
        return model

    return run


def centrally(X: Array, y: Array, features: RandomFeatures) -> Callable[[], Array]:
    """P <- P - P H'M^-1 H P,  b <- b + P H'(y - H b),  M = I + H P H'"""
    W, bias = features.W, features.b

    def run() -> Array:
        P, b, identity = np.eye(HIDDEN) / ALPHA, np.zeros(HIDDEN), np.eye(CHUNK)
        for start in range(0, len(X), CHUNK):
            H = 1 / (1 + np.exp(-(X[start : start + CHUNK] @ W + bias)))
            PH = P @ H.T
            P = P - PH @ np.linalg.solve(identity + H @ PH, PH.T)
            b = b + P @ (H.T @ (y[start : start + CHUNK] - H @ b))
        return b

    return run


def compare(X: Array, y: Array, threads: int | None, repeats: int) -> list[list[str]]:
    features = together(X[:CHUNK], y[:CHUNK], "consensus")().features_
    with threadpool_limits(threads):
        times = timed(
            {
                "central": centrally(X, y, features),
                **{name: together(X, y, name) for name in STREAMS},
            },
            repeats,
        )
    rival = times.pop("central")
    return [
        row(name, "all" if threads is None else str(threads), times[name], rival)
        for name in STREAMS
    ]


def row(name: str, threads: str, ours: Array, rival: Array) -> list[str]:
    r, limit = ratio(ours, rival), STREAMS[name]
    cells = [f'stream="{name}"', threads, milliseconds(ours), milliseconds(rival), f"{r:.2f}"]
    return [*cells, "", ""] if limit is None else [*cells, f"{limit:g}", holds(r, limit)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="folder of Skin_substitute.npz; default: the variable PEERLEARN_DATA",
    )
    parser.add_argument("--all", action="store_true", help="the whole stream, once")
    options = parser.parse_args()
    X, y = skin(options.folder)
    if not options.all:
        X, y = X[: 300 * CHUNK], y[: 300 * CHUNK]
    repeats = 1 if options.all else 5
    rows = compare(X, y, None, repeats) + compare(X, y, 1, repeats)
    columns = ["ours", "threads", "ours, ms", "rival, ms", "ours / rival", "limit", ""]
    show(
        f"A stream of {len(X):,} rows in chunks of {CHUNK}, {AGENTS} agents, {HIDDEN} features",
        columns,
        rows,
    )


if __name__ == "__main__":
    main()
