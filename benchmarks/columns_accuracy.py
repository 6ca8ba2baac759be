"""Claim: agents that each hold an eighth of the columns classify as well as if all columns were in
one place.

Setting: chapter 6. 8 agents on erdos_renyi(8, 0.6), B/8 hidden units each, 3 folds, B and alpha of
the thesis's table
4.2. `sharing`: VP-ADMM-RVFL with the corrected update, rho = 0.1 and 200 iterations as in the
thesis. Errors in percent and one standard deviation over folds and repetitions; of `local`, the
mean over agents. Beside them the thesis's table 6.1; its local row is an artefact of its code (on
G50C theory says 28 %). Rival: the centralised model with B units. Limit: `auto` within one point of
it.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from common import console, holds, show
from rich.progress import track
from sklearn.model_selection import StratifiedKFold

from peerlearn import (
    RVFLClassifier,
    SharingADMM,
    SimulatedNetwork,
    VerticalRVFLClassifier,
    data,
    graphs,
)
from peerlearn.arrays import Array
from peerlearn.data import DataSet
from peerlearn.errors import DataError, NotConverged

FOLDS, AGENTS, LIMIT = 3, 8, 1.0
SETS = {  # hidden units, alpha, and the thesis's errors in percent
    "Garageband": (
        200,
        2.0**-3,
        {"centralised": 41.32, "local": 82.79, "ensemble": 61.01, "sharing": 41.34},
    ),
    "Sylva": (
        450,
        2.0**-5,
        {"centralised": 1.18, "local": 49.80, "ensemble": 6.04, "sharing": 1.22},
    ),
    "G50C": (500, 8.0, {"centralised": 5.80, "local": 49.51, "ensemble": 10.98, "sharing": 5.80}),
}
SOLVERS = {
    "local": "local",
    "ensemble": "ensemble",
    "sharing": SharingADMM(rho=0.1, relaxation=1.0, max_iterations=200),
    "dual": "dual",
    "auto": "auto",
}


def runs(dataset: DataSet, repetitions: int) -> Iterator[tuple[int, Array, Array]]:
    """Every repetition and fold: a seed, the training rows and the test rows."""
    for repetition in range(repetitions):
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=repetition)
        for fold, (train, test) in enumerate(folds.split(dataset.X, dataset.y)):
            yield repetition * FOLDS + fold, train, test


def run(
    name: str, dataset: DataSet, seed: int, train: Array, test: Array
) -> tuple[float, float, float]:
    """The mean error of all agents in percent, the MB that training took, and its iterations."""
    hidden, alpha, _ = SETS[dataset.name]
    model: RVFLClassifier | VerticalRVFLClassifier
    if name == "centralised":
        model = RVFLClassifier(
            hidden, alpha, fit_intercept=False, random_state=seed, activation="sigmoid"
        )
    else:
        network = SimulatedNetwork(graphs.erdos_renyi(AGENTS, 0.6, seed=seed))
        units, solver = -(-hidden // AGENTS), SOLVERS[name]
        model = VerticalRVFLClassifier(
            units,
            alpha,
            fit_intercept=False,
            solver=solver,
            network=network,
            random_state=seed,
        )
    scores = model.fit(dataset.X[train], dataset.y[train]).agent_scores(
        dataset.X[test], dataset.y[test]
    )
    return (
        100 * (1 - float(np.mean(scores))),
        model.report_.sent.megabytes,
        float(model.report_.iterations),
    )


def row(name: str, found: Array, centralised: float, printed: dict[str, float]) -> list[str]:
    errors, (_, megabytes, iterations) = found[:, 0], found.mean(axis=0)
    thesis = f"{printed[name]:.2f}" if name in printed else ""
    cells = [
        name,
        f"{errors.mean():.2f} ± {errors.std():.2f}",
        thesis,
        f"{iterations:,.0f}",
        f"{megabytes:,.3g}",
    ]
    if name != "auto":
        return [*cells, "", ""]
    return [*cells, f"+ {LIMIT:g}", holds(float(errors.mean()) - centralised, LIMIT)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folder", type=Path, help="folder of the .npz files; default: the variable PEERLEARN_DATA"
    )
    parser.add_argument(
        "--repetitions", type=int, default=2, help="of all folds; the thesis has 15"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore", NotConverged)  # of the 200 iterations
    for name, (_, _, printed) in SETS.items():
        try:
            dataset = data.load(name, options.folder)
        except DataError as error:
            console.print(f"{name} is left out: {error}", highlight=False)
            continue
        kinds = ["centralised", *SOLVERS]
        every = track(list(runs(dataset, options.repetitions)), name, console=console)
        table = np.array([[run(kind, dataset, *each) for kind in kinds] for each in every])
        rows = [
            row(kind, table[:, i], float(table[:, 0, 0].mean()), printed)
            for i, kind in enumerate(kinds)
        ]
        title = f"{name}: error in percent, {FOLDS} folds x {options.repetitions}"
        show(title, ["solver", "error", "thesis", "iterations", "MB sent", "limit", ""], rows)


if __name__ == "__main__":
    main()
