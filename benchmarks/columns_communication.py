"""Claim: where the equations are badly conditioned, a sketch saves most of what conjugate gradients
on columns send.

Setting: 8 agents on erdos_renyi(8, 0.6), sums over a tree, until the coefficients are within 1e-4
of the centralised
ones by the solver's own bound. 100,000 generated rows with 6 columns and 100 features per agent,
alpha 1; and, where their files are, all rows of G50C, Garageband and Sylva with the thesis's
features and alpha. Rivals: conjugate gradients on the dual without a preconditioner, and sharing
ADMM cut off after 500 iterations. Limit, for the generated rows: a tenth of the dual's bytes.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from common import console, holds, show, some_rows

from peerlearn import (
    DualConjugateGradient,
    SharingADMM,
    SimulatedNetwork,
    SketchedConjugateGradient,
    data,
    graphs,
    partition,
)
from peerlearn.algorithms.columns import AutoColumns, ColumnSolver
from peerlearn.arrays import Array, one_blas_thread
from peerlearn.errors import DataError, NotConverged
from peerlearn.local.column_blocks import ColumnBlocks, FeatureMaps
from peerlearn.local.ridge import solve_ridge

AGENTS, TOLERANCE, LIMIT = 8, 1e-4, 0.1
SETS = {
    "G50C": (500, 8.0),
    "Garageband": (200, 2.0**-3),
    "Sylva": (450, 2.0**-5),
}  # features of all agents, alpha
SOLVERS: dict[str, ColumnSolver] = {
    "dual": DualConjugateGradient(TOLERANCE, max_iterations=3000),
    "sharing": SharingADMM(TOLERANCE, max_iterations=500),
    "sketched, features": SketchedConjugateGradient(TOLERANCE),
    "sketched, inputs": SketchedConjugateGradient(TOLERANCE, sketch="inputs"),
    "auto": AutoColumns(TOLERANCE),
}


@dataclass(frozen=True)
class Problem:
    """Blocks of features, targets, penalty, and the centralised coefficients."""

    blocks: ColumnBlocks
    Y: Array
    alpha: float
    centralised: Array

    @classmethod
    def of(cls, X: Array, Y: Array, hidden: int, alpha: float) -> Problem:
        maps = FeatureMaps((hidden,) * AGENTS, 0, "sigmoid", False)
        blocks = ColumnBlocks.of_inputs(
            maps, tuple(range(AGENTS)), partition.columns(X, AGENTS, seed=0)
        )
        H = np.hstack([blocks.block(k) for k in range(AGENTS)])
        return cls(blocks, Y, alpha, solve_ridge(H.T @ H, H.T @ Y, alpha))


def generated(rows: int) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, 6 * AGENTS))
    Y = np.sin(X @ rng.standard_normal((6 * AGENTS, 1))) + 0.1 * rng.standard_normal((rows, 1))
    return Problem.of(X, Y, 100, 1.0)


def of_file(name: str, folder: Path | None) -> Problem:
    dataset = data.load(name, folder)
    features, alpha = SETS[name]
    return Problem.of(*some_rows(dataset, len(dataset.X)), -(-features // AGENTS), alpha)


def run(solver: ColumnSolver, problem: Problem) -> tuple[float, ...]:
    """Distance to the centralised coefficients, iterations, rounds, MB, seconds."""
    network = SimulatedNetwork(graphs.erdos_renyi(AGENTS, 0.6, seed=0))
    start = perf_counter()
    solution = solver.solve_columns(network, problem.blocks, problem.Y, problem.alpha)
    seconds = perf_counter() - start
    away = np.vstack(solution.coefficients) - problem.centralised
    distance = float(np.linalg.norm(away) / np.linalg.norm(problem.centralised))
    sent = network.ledger.since()
    return distance, solution.report.iterations, sent.rounds, sent.megabytes, seconds


def row(name: str, found: Sequence[float], dual: float, limit: float | None) -> list[str]:
    distance, iterations, rounds, megabytes, seconds = found
    part = megabytes / dual
    cells = [
        name,
        f"{distance:.0e}",
        f"{iterations:,}",
        f"{rounds:,}",
        f"{megabytes:,.3g}",
        f"{seconds:.1f}",
    ]
    judged = limit is not None and name not in ("dual", "sharing")
    return (
        [*cells, f"{part:.3f}", f"{limit:g}", holds(part, limit)]
        if judged
        else [*cells, f"{part:.3f}", "", ""]
    )


def compare(name: str, problem: Problem, limit: float | None = None) -> None:
    with one_blas_thread():
        results = {kind: run(solver, problem) for kind, solver in SOLVERS.items()}
    table = [row(kind, found, results["dual"][3], limit) for kind, found in results.items()]
    columns = [
        "solver",
        "distance",
        "iterations",
        "rounds",
        "MB",
        "seconds",
        "of dual's MB",
        "limit",
        "",
    ]
    show(
        f"{name}: {problem.blocks.rows:,} rows, {len(problem.centralised)} features", columns, table
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000, help="generated ones")
    parser.add_argument(
        "--folder", type=Path, help="folder of the .npz files; default: the variable PEERLEARN_DATA"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore", NotConverged)  # the column of distances says so
    compare("generated", generated(options.rows), LIMIT)
    for name in SETS:
        try:
            problem = of_file(name, options.folder)
        except DataError as error:
            console.print(f"{name} is left out: {error}", highlight=False)
            continue
        compare(name, problem)


if __name__ == "__main__":
    main()
