"""Claim: agents that keep their rows classify from few labels as well as if all rows were in one
place.

Setting: chapter 7. 7 agents on erdos_renyi(7, 0.5), max-degree weights, columns to [-1, 1], the
thesis's parameters
(of G50C also the robust ones of the errata: width 1.5, gamma_A 1e-3) and sizes of labelled,
unlabelled and test sets; labels in equal numbers per class. `landmarks`: exact distances.
`exchange`: the thesis's, patterns and entries, then completion by diffusion with momentum. Errors
are fractions, with one standard error over runs; beside them the thesis's table 7.3. Rival: the
centralised model on the same rows. Limits: the distributed errors within one standard error of it,
COIL20 end to end within 10 s, and 100 times fewer bytes than an exchange and 1500 iterations of
diffusion.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import console, holds, show, spread
from rich.progress import track

from peerlearn import (
    DiffusionCompletion,
    Exchange,
    LapKRRClassifier,
    SimulatedNetwork,
    data,
    graphs,
    partition,
)
from peerlearn.arrays import Array, Indices
from peerlearn.data.scaling import Scaling
from peerlearn.errors import DataError, NotConverged

AGENTS, SECONDS, FEWER = 7, 10.0, 100.0


@dataclass(frozen=True)
class Setting:
    """One row of the thesis's tables 7.1 and 7.2, and its errors: centralised,
    distributed, local.
    """

    file: str
    model: dict[str, Any]
    exchange: Exchange
    labelled: int
    unlabelled: int
    tested: int
    thesis: tuple[float, float, float]


def printed(width: float, n: int, gamma_A: float, gamma_I: float, power: int) -> dict[str, Any]:
    return {
        "width": width,
        "n_neighbors": n,
        "gamma_A": gamma_A,
        "gamma_I": gamma_I,
        "power": power,
    }


FEW, SOME, MANY = (
    Exchange(0.035, 0.035, 100, 100),
    Exchange(0.025, 0.025, 100, 100),
    Exchange(0.02, 0.025, 150, 150),
)
COIL = printed(0.6, 2, 1e-6, 1.0, 1)
SETTINGS = {
    "2Moons": Setting(
        "2Moons", printed(0.03, 6, 2.0**-5, 4.0, 1), FEW, 14, 186, 200, (0.005, 0.01, 0.41)
    ),
    "BCI": Setting("BCI", printed(1.0, 5, 1e-6, 1.0, 2), SOME, 14, 286, 100, (0.49, 0.49, 0.54)),
    "G50C": Setting(
        "G50C", printed(17.5, 50, 1e-6, 1e-2, 5), MANY, 50, 314, 186, (0.07, 0.12, 0.45)
    ),
    "G50C, robust": Setting(
        "G50C", printed(1.5, 50, 1e-3, 1e-2, 5), MANY, 50, 314, 186, (0.07, 0.12, 0.45)
    ),
    "COIL20": Setting("COIL20", COIL, MANY, 40, 1000, 400, (0.13, 0.13, 0.78)),
    "COIL2": Setting("COIL2", COIL, MANY, 40, 1000, 400, (0.10, 0.10, 0.43)),
}
WAYS = {
    "centralised": 0,
    "landmarks": 1,
    "exchange": 1,
    "local": 2,
}  # and which of the thesis's errors is theirs


def split(y: Array, setting: Setting, seed: int) -> tuple[Indices, Indices, Indices]:
    """Labelled rows, as many of each class, unlabelled and test rows."""
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(y))
    each = setting.labelled // len(np.unique(y))
    labelled = np.concatenate([shuffled[y[shuffled] == label][:each] for label in np.unique(y)])
    rest = shuffled[~np.isin(shuffled, labelled)]
    return labelled, rest[: setting.unlabelled], rest[setting.unlabelled :][: setting.tested]


def run(way: str, setting: Setting, X: Array, y: Array, seed: int) -> tuple[float, float, float]:
    """The mean error of all agents, the MB that training took, and seconds of training and
    prediction.
    """
    labelled, unlabelled, test = split(y, setting, seed)
    network = SimulatedNetwork(graphs.erdos_renyi(AGENTS, 0.5, seed=0), weights="max-degree")
    model = LapKRRClassifier(
        **setting.model,
        distances=setting.exchange if way == "exchange" else way if way != "centralised" else None,
        completion=DiffusionCompletion(),
        network=None if way == "centralised" else network,
        random_state=seed,
    )
    some = np.concatenate([y[labelled], np.full(len(unlabelled), -1)])
    start = time.perf_counter()
    scores = model.fit(X[np.concatenate([labelled, unlabelled])], some).agent_scores(
        X[test], y[test]
    )
    return 1 - float(np.mean(scores)), model.report_.sent.megabytes, time.perf_counter() - start


def row(way: str, found: Array, centralised: Array, setting: Setting) -> list[str]:
    errors, megabytes, seconds = found.T
    cells = [way, f"{errors.mean():.4f} ± {spread(errors):.4f}", f"{setting.thesis[WAYS[way]]:g}"]
    cells += [f"{megabytes.mean():,.3g}", f"{seconds.mean():.2f}"]
    if way in ("centralised", "local"):
        return [*cells, ""]
    return [
        *cells,
        holds(abs(float(errors.mean() - centralised.mean())), max(spread(centralised), 1e-12)),
    ]


def printed_megabytes(setting: Setting, X: Array, y: Array) -> float:
    """Of the exchange and 1500 iterations of diffusion: what the second of two sends, every other
    sends too.
    """
    labelled, unlabelled, _ = split(y, setting, seed=0)
    network = SimulatedNetwork(graphs.erdos_renyi(AGENTS, 0.5, seed=0), weights="max-degree")
    rows = X[np.concatenate([labelled, unlabelled])]
    known = setting.exchange.share(
        network, [x for x, _ in partition.even(rows, rows, AGENTS)], seed=0
    )
    exchanged, sent = network.ledger.mark().megabytes, []
    for iterations in (1, 2):
        mark = network.ledger.mark()
        DiffusionCompletion(
            rank=min(X.shape[1], known.places.N - 1), iterations=iterations
        ).complete(network, known, 0)
        sent.append(network.ledger.since(mark).megabytes)
    return exchanged + 1500 * (sent[1] - sent[0])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folder", type=Path, help="folder of the .npz files; default: the variable PEERLEARN_DATA"
    )
    parser.add_argument("--runs", type=int, default=10, help="the thesis has 25")
    parser.add_argument(
        "--sets", nargs="*", default=list(SETTINGS), choices=list(SETTINGS), help="which data sets"
    )
    parser.add_argument("--exchange", action="store_true", help="of the COIL sets too: hours")
    options = parser.parse_args()
    warnings.simplefilter(
        "ignore", NotConverged
    )  # of completions that are cut at their number of iterations
    for name in options.sets:
        setting = SETTINGS[name]
        try:
            dataset = data.load(setting.file, options.folder, scaled=False)
        except DataError as error:
            console.print(f"{name} is left out: {error}", highlight=False)
            continue
        X = Scaling.of(dataset.X, (-1.0, 1.0)).apply(dataset.X)
        y = np.unique(dataset.y, return_inverse=True)[1]
        ways = [way for way in WAYS if way != "exchange" or options.exchange or "COIL" not in name]
        every = track(range(options.runs), name, console=console)
        table = np.array([[run(way, setting, X, y, seed) for way in ways] for seed in every])
        rows = [row(way, table[:, i], table[:, 0, 0], setting) for i, way in enumerate(ways)]
        show(
            f"{name}: error as a fraction, {options.runs} runs",
            ["way", "error", "thesis", "MB sent", "seconds", "as centralised"],
            rows,
        )
        ours, printed = table[:, 1, 1].mean(), printed_megabytes(setting, X, y)
        console.print(
            "An exchange and 1500 iterations of diffusion would send "
            f"{printed:,.0f} MB, landmarks {ours:,.3g}: "
            f"{printed / ours:,.0f} times fewer (limit {FEWER:g}: {holds(FEWER, printed / ours)})"
        )
        if name == "COIL20":
            seconds = float(table[:, 1, 2].mean())
            console.print(
                f"End to end in {seconds:.1f} s (limit {SECONDS:g}: {holds(seconds, SECONDS)})"
            )


if __name__ == "__main__":
    main()
