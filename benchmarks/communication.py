"""Claim: agents reach the centralised ridge coefficients to 1e-4 with few rounds and bytes.

Setting: 50 agents, 500 random features; G50C (440 rows, alpha 8) and digits (1437 rows, ten
outputs, alpha 1). Every
solver on a random and on a ring graph: what it sent in all, and how far the worst agent then is
from the answer that
all rows in one place give. MB count payload over the whole network.
Rival: consensus ADMM as the thesis prints it, stopped after its 300 iterations; it never gets
there.
Limits, G50C on erdos_renyi(50, 0.2), one and the same solver: gossip 200 rounds and 400 MB; on a
tree 60 rounds, 8 MB. A figure of error against MB goes to the folder --output.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import networkx as nx
from common import Readout, console, g50c, holds, show, some_rows
from communication_figure import draw
from rich.progress import track
from threadpoolctl import threadpool_limits

from peerlearn import ADMM, ConjugateGradient, Consensus, Gram, SimulatedNetwork, data, graphs
from peerlearn.algorithms import Solver
from peerlearn.errors import NotConverged
from peerlearn.local.penalties import Ridge

TARGET = 1e-4
TOLERANCES = (1e-1, 1e-2, 1e-3, TARGET, 1e-5)
ITERATIONS = dict(
    zip(TOLERANCES, (10, 30, 100, 300, 300), strict=True)
)  # of the printed ADMM, which heeds no other
RANDOM = "Erdős-Rényi 0.2"
Case = tuple[str, str, str, float]  # data set, graph, solver, tolerance
LIMITS = {"Chebyshev": (200, 400), "tree": (60, 8)}  # rounds, MB

SOLVERS: dict[str, Callable[[float], Solver]] = {
    "ADMM as printed": lambda tolerance: ADMM(
        variant="thesis", max_iterations=ITERATIONS[tolerance]
    ),
    "Consensus, Chebyshev": lambda _: Consensus(averaging="chebyshev"),
    "Consensus, tree": lambda _: Consensus(averaging="tree"),
}
for how, method in (("Chebyshev", "chebyshev"), ("tree", "tree")):
    SOLVERS |= {
        f"ADMM, {how}": lambda tolerance, by=method: ADMM(tolerance, averaging=by),
        f"Gram, {how}": lambda tolerance, by=method: Gram(tolerance, averaging=by),
        f"CG synthetic, {how}": lambda tolerance, by=method: ConjugateGradient(
            tolerance, averaging=by
        ),
        f"CG local, {how}": lambda tolerance, by=method: ConjugateGradient(
            tolerance, 1000, "local", by
        ),
        f"CG bare, {how}": lambda tolerance, by=method: ConjugateGradient(
            tolerance, 1000, "none", by
        ),
    }


@dataclass(frozen=True)
class Run:
    """What one solver sent, how far it came, and what it thought of it."""

    rounds: int
    megabytes: float
    error: float
    iterations: int
    seconds: float
    converged: bool

    @classmethod
    def of(cls, solver: Solver, graph: nx.Graph, readout: Readout) -> Run:
        network, start = SimulatedNetwork(graph), time.perf_counter()
        solution = solver.solve(network, readout.problems, Ridge(readout.alpha))
        seconds, report = time.perf_counter() - start, solution.report
        error = readout.error(solution.coefficients)
        return cls(
            report.sent.rounds,
            report.sent.megabytes,
            error,
            report.iterations,
            seconds,
            report.converged,
        )

    def row(self, name: str) -> list[str]:
        reached, said = "yes" if self.error <= TARGET else "NO", "yes" if self.converged else "NO"
        return [
            name,
            f"{self.rounds:,}",
            f"{self.megabytes:,.2f}",
            f"{self.error:.1e}",
            reached,
            said,
            f"{self.iterations:,}",
            f"{self.seconds:.2f}",
        ]


def limit_row(way: str, runs: dict[str, Run]) -> list[str]:
    """The best solver of a way of summing, by how well it keeps both limits at once."""
    rounds, megabytes = LIMITS[way]

    def worse_of_both(name: str) -> float:
        return max(runs[name].rounds / rounds, runs[name].megabytes / megabytes)

    reached = [name for name in runs if name.endswith(way) and runs[name].error <= TARGET]
    best = min(reached, key=worse_of_both)
    run = runs[best]
    return [
        best,
        f"{run.rounds}",
        f"{rounds}",
        f"{run.megabytes:.3g}",
        f"{megabytes}",
        holds(worse_of_both(best), 1.0),
    ]


def cases(sets: Iterable[str], links: Iterable[str]) -> list[Case]:
    """Everything to the target; on the random graph also to other tolerances, for the curves."""
    every = product(sets, links, SOLVERS, TOLERANCES)
    return [case for case in every if case[3] == TARGET or (case[1] == RANDOM and _on_curve(*case))]


def _on_curve(of: str, _: str, name: str, tolerance: float) -> bool:
    if name.startswith("Consensus"):
        return False  # one average, whatever the tolerance
    return not (of == "digits" and name.startswith("ADMM")) or tolerance == 1e-2  # ten seconds each


def report(runs: Mapping[Case, Run], sets: Iterable[str], links: Iterable[str]) -> None:
    columns = [
        "solver",
        "rounds",
        "MB",
        "true error",
        "reached",
        "converged",
        "iterations",
        "seconds",
    ]
    for of, graph in product(sets, links):
        rows = [runs[of, graph, name, TARGET].row(name) for name in SOLVERS]
        show(f"{of} on {graph}: to {TARGET:g} of the centralised coefficients", columns, rows)
    at_target = {name: runs["G50C", RANDOM, name, TARGET] for name in SOLVERS}
    rows = [limit_row(way, at_target) for way in LIMITS]
    show(f"Best on G50C, {RANDOM}", ["solver", "rounds", "limit", "MB", "limit", ""], rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output", type=Path, default=Path("benchmark-results"), help="folder of the figure"
    )
    output = parser.parse_args().output
    warnings.simplefilter("ignore", NotConverged)  # the table says it
    readouts = {
        "G50C": Readout.of(*some_rows(g50c(), 440), agents=50, alpha=8.0),
        "digits": Readout.of(*some_rows(data.load("digits"), 1437), agents=50, alpha=1.0),
    }
    links = {RANDOM: graphs.erdos_renyi(50, 0.2), "ring": graphs.ring(50)}
    runs: dict[Case, Run] = {}
    curves: dict[str, dict[str, list[tuple[float, float]]]] = {
        of: {name: [] for name in SOLVERS} for of in readouts
    }
    with threadpool_limits(1):
        for of, graph, name, tolerance in track(cases(readouts, links), "solving", console=console):
            run = Run.of(SOLVERS[name](tolerance), links[graph], readouts[of])
            runs[of, graph, name, tolerance] = run
            if graph == RANDOM:
                curves[of][name].append((run.megabytes, run.error))
    report(runs, readouts, links)
    console.print(f"Figure: {draw(curves, TARGET, output)}", highlight=False)


if __name__ == "__main__":
    main()
