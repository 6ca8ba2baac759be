"""Claim: echo state networks that agents train together have the centralised error, however many
the agents are.

Setting: thesis, section 9.4. 50 sequences of 2000 samples, 300 units, 3 folds, settings of its
table 9.1, alpha 1e-3,
random graphs with p = 0.25, 5 to 25 agents that share the training sequences. NRMSE on the test
sequences, closed loop where outputs are fed back (N10), and one standard deviation over folds; of
`local`, the mean over agents. `its share`: local with alpha / L, an agent's share of alpha. ADMM:
rho 0.01 and 400 iterations as in the thesis, averages by a tree. The thesis's N10 is the product;
EXTPOLY depends on the draw. Rival: the centralised network. Limit: gram and conjugate gradients
within 1 % of it, since the noise in the states of a sequence is drawn anew with its place; on the
same states they are equal.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import console, holds, show
from esn_tasks import TASKS, Task
from rich.progress import track
from sklearn.model_selection import KFold

from peerlearn import ADMM, ESNRegressor, SimulatedNetwork, graphs
from peerlearn.arrays import Array
from peerlearn.data.series import Series
from peerlearn.errors import NotConverged

FOLDS, UNITS, ALPHA, LIMIT = 3, 300, 1e-3, 1.0  # percent
SIZES = (5, 10, 15, 20, 25)
ADMM_ESN = ADMM(1e-12, 400, rho=0.01, relaxation=1.0, averaging="tree", vote_every=400)
SOLVERS: dict[str, Any] = {
    "local": "local",
    "its share": "local",
    "admm": ADMM_ESN,
    "gram": "gram",
    "cg": "cg",
}


def folds(series: Series, seed: int) -> Iterator[tuple[Series, Series]]:
    """Training and test sequences."""
    x, y = series
    for train, test in KFold(FOLDS, shuffle=True, random_state=seed).split(x):
        yield (
            ([x[j] for j in train], [y[j] for j in train]),
            ([x[j] for j in test], [y[j] for j in test]),
        )


def errors(
    task: Task, train: Series, test: Series, sizes: tuple[int, ...], seed: int
) -> Iterator[float]:
    """The NRMSE of the centralised network, then of all solvers with each number of agents."""
    yield (
        ESNRegressor(UNITS, alpha=ALPHA, fit_intercept=False, random_state=seed, **task.settings)
        .fit(*train)
        .nrmse(*test)
    )
    for agents in sizes:
        for name, solver in SOLVERS.items():
            network = SimulatedNetwork(graphs.erdos_renyi(agents, 0.25, seed=seed))
            alpha = ALPHA / agents if name == "its share" else ALPHA
            model = ESNRegressor(
                UNITS,
                alpha=alpha,
                fit_intercept=False,
                solver=solver,
                network=network,
                random_state=seed,
                **task.settings,
            ).fit(*train)
            yield (
                float(model.agent_nrmse(*test).mean()) if solver == "local" else model.nrmse(*test)
            )


def table(name: str, found: Array, sizes: tuple[int, ...], thesis: float | None) -> None:
    """found: folds x (1 + sizes * solvers)"""
    centralised, rest = found[:, 0], found[:, 1:].reshape(len(found), len(sizes), len(SOLVERS))
    rows = []
    for i, solver in enumerate(SOLVERS):
        gaps = 100 * (rest[:, :, i].mean(axis=0) / centralised.mean() - 1)
        cells = [f"{rest[:, j, i].mean():.4f} {gap:+.2f}%" for j, gap in enumerate(gaps)]
        judged = solver in ("gram", "cg")
        rows.append(
            [
                solver,
                *cells,
                f"{LIMIT:g}%" if judged else "",
                holds(np.abs(gaps).max(), LIMIT) if judged else "",
            ]
        )
    printed = f", thesis {thesis:g}" if thesis else ""
    title = f"{name}: centralised {centralised.mean():.4f} ± {centralised.std():.4f}{printed}"
    show(title, ["agents", *map(str, sizes), "limit", ""], rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="5 and 25 agents only, and the first fold"
    )
    parser.add_argument(
        "--runs",
        type=int,
        default=1,
        help="of all folds, each with its own data; the thesis has 15",
    )
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    options = parser.parse_args()
    warnings.simplefilter("ignore", NotConverged)  # of the 400 iterations
    sizes = (5, 25) if options.quick else SIZES
    for name in options.tasks:
        task, found = TASKS[name], []
        for run in range(options.runs):
            every = list(folds(task.series(50, 2000, seed=run + 1), run))[
                : 1 if options.quick else FOLDS
            ]
            for fold, (train, test) in enumerate(
                track(every, name, console=console, transient=True)
            ):
                found.append(list(errors(task, train, test, sizes, FOLDS * run + fold)))
        table(name, np.array(found), sizes, task.thesis)


if __name__ == "__main__":
    main()
