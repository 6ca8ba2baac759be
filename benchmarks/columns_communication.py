"""Claim: for many rows a sketch saves most of what conjugate gradients on columns have to send.

Setting: 8 agents with 6 columns and 100 features each on erdos_renyi(8, 0.6), 100,000 generated rows, alpha 1; sums
over a tree, until the coefficients are within 1e-4 of the centralised ones by the solver's own bound. Rivals: conjugate
gradients on the dual without a preconditioner, and sharing ADMM cut off after 300 iterations. Limit: a tenth of the
dual's bytes.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from time import perf_counter

import numpy as np
from common import holds, show

from peerlearn import DualConjugateGradient, SharingADMM, SimulatedNetwork, SketchedConjugateGradient, graphs
from peerlearn.algorithms.columns import AutoColumns, ColumnSolver
from peerlearn.arrays import Array
from peerlearn.errors import NotConverged
from peerlearn.local.column_blocks import ColumnBlocks, FeatureMaps
from peerlearn.local.ridge import solve_ridge
from peerlearn.local.threads import one_blas_thread

AGENTS, COLUMNS, HIDDEN, ALPHA, TOLERANCE, LIMIT = 8, 6, 100, 1.0, 1e-4, 0.1
SOLVERS: dict[str, ColumnSolver] = {
    "dual": DualConjugateGradient(TOLERANCE, max_iterations=2000),
    "sharing": SharingADMM(TOLERANCE, max_iterations=300),
    "sketched, features": SketchedConjugateGradient(TOLERANCE),
    "sketched, inputs": SketchedConjugateGradient(TOLERANCE, sketch="inputs"),
    "auto": AutoColumns(TOLERANCE),
}


def problem(rows: int) -> tuple[ColumnBlocks, Array, Array]:
    """Blocks of features, targets, and the centralised coefficients."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, AGENTS * COLUMNS))
    Y = np.sin(X @ rng.standard_normal((AGENTS * COLUMNS, 1))) + 0.1 * rng.standard_normal((rows, 1))
    maps = FeatureMaps((HIDDEN,) * AGENTS, 0, "sigmoid", False)
    blocks = ColumnBlocks.of_inputs(maps, tuple(range(AGENTS)), np.split(X, AGENTS, axis=1))
    H = np.hstack([blocks.block(k) for k in range(AGENTS)])
    return blocks, Y, solve_ridge(H.T @ H, H.T @ Y, ALPHA)


def run(solver: ColumnSolver, blocks: ColumnBlocks, Y: Array, centralised: Array) -> tuple[float, ...]:
    """Distance to the centralised coefficients, iterations, rounds, MB, seconds."""
    network = SimulatedNetwork(graphs.erdos_renyi(AGENTS, 0.6, seed=0))
    start = perf_counter()
    solution = solver.solve_columns(network, blocks, Y, ALPHA)
    seconds = perf_counter() - start
    found = np.vstack(solution.coefficients)
    distance = float(np.linalg.norm(found - centralised) / np.linalg.norm(centralised))
    sent = network.ledger.since()
    return distance, solution.report.iterations, sent.rounds, sent.megabytes, seconds


def row(name: str, found: Sequence[float], dual: float) -> list[str]:
    distance, iterations, rounds, megabytes, seconds = found
    cells = [name, f"{distance:.0e}", f"{iterations:,}", f"{rounds:,}", f"{megabytes:,.0f}", f"{seconds:.1f}"]
    if name in ("dual", "sharing"):
        return [*cells, "", "", ""]
    return [*cells, f"{megabytes / dual:.3f}", f"{LIMIT:g}", holds(megabytes / dual, LIMIT)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args().rows
    warnings.simplefilter("ignore", NotConverged)  # the column of distances says so
    with one_blas_thread():
        given = problem(rows)
        results = {name: run(solver, *given) for name, solver in SOLVERS.items()}
    table = [row(name, found, results["dual"][3]) for name, found in results.items()]
    columns = ["solver", "distance", "iterations", "rounds", "MB", "seconds", "of dual's MB", "limit", ""]
    show(f"{rows:,} rows, {AGENTS} agents with {COLUMNS} columns, to {TOLERANCE:g}", columns, table)


if __name__ == "__main__":
    main()
