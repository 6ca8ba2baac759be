"""Claim: agents reach a stationary point of the S3VM of G50C, |grad| < 1e-5, in fewer than 100
rounds, all counted.

Setting: G50C scaled to [-1, 1], 40 labelled and 455 unlabelled rows on 25 agents, C1 = C2 = 1, s =
5, b = 0; random
graphs (Erdős-Rényi 0.25, four of them: the median) and a ring, Metropolis weights. MB count payload
over the whole network; the gradient is computed from all rows in one place, at the agent that is
worst. Rivals: diffusion and NEXT with the steps of the thesis, one plain round per iteration;
diffusion also with its step times the number of agents. They stop after 4,000 iterations. Limit:
NEXT with the Newton surrogate, automatic steps, 100 rounds on the random graphs.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
from common import console, g50c, holds, show
from rich.progress import track
from threadpoolctl import threadpool_limits

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms.smooth import (
    LBFGS,
    NEXT,
    Diffusion,
    GradientTracking,
    SmoothSolver,
    StepRule,
)
from peerlearn.arrays import Array
from peerlearn.errors import NotConverged
from peerlearn.local.margin_losses import S3VMLosses

AGENTS, LABELLED, UNLABELLED = 25, 40, 455
TARGET, MOST = 1e-5, 4000
LIMIT = 100
NEWTON = "NEXT, Newton"

SOLVERS: dict[str, SmoothSolver] = {
    "diffusion, thesis": Diffusion(step=StepRule(1.0, 0.55), tolerance=TARGET, max_iterations=MOST),
    "diffusion, N times its step": Diffusion(
        step=StepRule(25.0, 0.55), tolerance=TARGET, max_iterations=MOST
    ),
    "NEXT, thesis": NEXT("exact", StepRule(0.6, 0.8), tolerance=TARGET, max_iterations=MOST),
    "NEXT, tuned by hand (0.9, 0.51)": NEXT(
        "exact", StepRule(0.9, 0.51), tolerance=TARGET, max_iterations=MOST
    ),
    "NEXT, exact": NEXT("exact", tolerance=TARGET),
    "NEXT, linear": NEXT("linear", tolerance=TARGET),
    NEWTON: NEXT("newton", tolerance=TARGET),
    "NEXT, Newton, plain mixing": NEXT("newton", mixing="plain", tolerance=TARGET),
    "tracking, plain": GradientTracking("plain", tolerance=TARGET),
    "tracking, Chebyshev": GradientTracking("chebyshev", tolerance=TARGET),
    "L-BFGS over a tree": LBFGS(tolerance=TARGET),
}


@dataclass(frozen=True)
class Problem:
    """What the agents have, and all of it in one place."""

    losses: S3VMLosses
    together: S3VMLosses

    @classmethod
    def of_g50c(cls) -> Problem:
        dataset, rng = g50c(), np.random.default_rng(0)
        X = 2 * (dataset.X - dataset.X.min(axis=0)) / np.ptp(dataset.X, axis=0) - 1
        classes, codes = np.unique(dataset.y, return_inverse=True)
        rows = rng.permutation(len(X))
        labelled = np.concatenate(
            [rows[codes[rows] == c][: LABELLED // len(classes)] for c in range(len(classes))]
        )
        unlabelled = np.setdiff1d(rows, labelled, assume_unique=True)[:UNLABELLED]
        y = np.zeros(len(X))
        y[labelled] = 2.0 * codes[labelled] - 1.0
        used, m = (
            rng.permutation(np.concatenate([labelled, unlabelled])),
            X[unlabelled].mean(axis=0),
        )

        def losses(parts: Sequence[Array]) -> S3VMLosses:
            inputs, targets = [X[own] for own in parts], [y[own] for own in parts]
            return S3VMLosses(inputs, targets, m, labelled=LABELLED, unlabelled=UNLABELLED)

        return cls(losses(np.array_split(used, AGENTS)), losses([used]))

    def gradient(self, coefficients: Array) -> float:
        return max(
            float(np.linalg.norm(self.together.gradient(w[None])[0] + w)) for w in coefficients
        )


@dataclass(frozen=True)
class Run:
    rounds: int
    messages: int
    megabytes: float
    gradient: float
    seconds: float

    @classmethod
    def of(cls, solver: SmoothSolver, graph: nx.Graph, problem: Problem) -> Run:
        network, start = SimulatedNetwork(graph), time.perf_counter()
        found = solver.minimise(network, problem.losses, 1.0)
        seconds, sent = time.perf_counter() - start, found.report.sent
        return cls(
            sent.rounds,
            sent.messages,
            sent.megabytes,
            problem.gradient(found.coefficients),
            seconds,
        )


def row(name: str, runs: Sequence[Run]) -> list[str]:
    """The run in the middle, by rounds, of those on several graphs."""
    run = sorted(runs, key=lambda one: one.rounds)[len(runs) // 2]
    reached = f"{run.rounds:,}" if run.gradient <= TARGET else f"never within {run.rounds:,}"
    worst = max(one.gradient for one in runs)
    return [
        name,
        reached,
        f"{run.messages:,}",
        f"{run.megabytes:,.1f}",
        f"{worst:.1e}",
        f"{run.seconds:.2f}",
    ]


def report(runs: Mapping[tuple[str, str], Sequence[Run]], kinds: Sequence[str]) -> None:
    for kind in kinds:
        columns = ["solver", "rounds", "messages", "MB", "worst |grad|", "seconds"]
        rows = [row(name, runs[kind, name]) for name in SOLVERS]
        show(f"S3VM of G50C over {AGENTS} agents, {kind}: to |grad| < {TARGET:g}", columns, rows)
    worst = max(one.rounds for one in runs[kinds[0], NEWTON])
    rows = [[NEWTON, f"{worst}", f"{LIMIT}", holds(worst, LIMIT)]]
    show(f"Most rounds on one of the graphs, {kinds[0]}", ["solver", "rounds", "limit", ""], rows)


def main() -> None:
    warnings.simplefilter("ignore", NotConverged)  # the table says it
    problem = Problem.of_g50c()
    kinds = {
        "Erdős-Rényi 0.25": [graphs.erdos_renyi(AGENTS, 0.25, seed=s) for s in range(4)],
        "ring": [graphs.ring(AGENTS)],
    }
    runs: dict[tuple[str, str], list[Run]] = {
        (kind, name): [] for kind in kinds for name in SOLVERS
    }
    with threadpool_limits(1):
        for kind, name in track(list(runs), "solving", console=console):
            runs[kind, name] = [Run.of(SOLVERS[name], graph, problem) for graph in kinds[kind]]
    report(runs, list(kinds))


if __name__ == "__main__":
    main()
