"""What the benchmarks share: fair timing, one plain table, and the data they learn from."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from peerlearn import data, partition
from peerlearn.arrays import Array
from peerlearn.data import DataSet
from peerlearn.errors import DataError
from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import LeastSquares

console = Console(width=None if sys.stdout.isatty() else 120)


def timed(tasks: Mapping[str, Callable[[], object]], repeats: int = 9) -> dict[str, Array]:
    """Seconds of every run of every task. Tasks take turns, so that a slow moment of the machine
    hits all of them.

    Each runs once more before, uncounted: compiled kernels and cold caches are not what is
    measured.
    """
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats + 1):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - start)
    return {name: np.array(runs[1:]) for name, runs in seconds.items()}


def ratio(ours: Array, rival: Array) -> float:
    """Our time over the rival's in the same turn; the median over turns is blind to noise that hits
    both.
    """
    return float(np.median(ours / rival))


def milliseconds(seconds: Array) -> str:
    value = 1e3 * float(np.median(seconds))
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def holds(value: float, limit: float) -> str:
    """Whether a value that should be small is small enough."""
    return "[green]holds[/]" if value <= limit else "[red]MISSED[/]"


def spread(errors: Array) -> float:
    """One standard error of the mean."""
    return float(errors.std(ddof=1) / np.sqrt(len(errors))) if len(errors) > 1 else 0.0


def show(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """One table: the first column is text, numbers stand right."""
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def g50c(folder: Path | None = None) -> DataSet:
    """The thesis's own file where there is one, else the same law drawn anew, and a sentence that
    says so.
    """
    try:
        return data.load("G50C", folder)
    except DataError:
        where = folder or "the folder that PEERLEARN_DATA should name"
        console.print(
            f"There is no G50C.npz in {where}, so generated g50c stands in for it.", highlight=False
        )
        return data.load("g50c")


@dataclass(frozen=True)
class Readout:
    """A ridge problem over agents, and the answer that all rows in one place would give."""

    problems: LeastSquares
    alpha: float
    centralised: Array  # B x M

    @classmethod
    def of(
        cls, X: Array, Y: Array, *, agents: int, alpha: float, hidden: int = 500, seed: int = 0
    ) -> Readout:
        features = RandomFeatures.draw(X.shape[1], hidden, seed=seed)
        shares = partition.even(X, Y, agents, seed=seed)
        together = LeastSquares.of_inputs(features, [X], [Y]).ridge(np.array([alpha]))[0]
        return cls(
            LeastSquares.of_inputs(features, [x for x, _ in shares], [y for _, y in shares]),
            alpha,
            together,
        )

    def error(self, coefficients: Array) -> float:
        """Of the agent that is worst: its relative distance to the centralised coefficients."""
        distances = np.linalg.norm(coefficients - self.centralised, axis=(1, 2))
        return float(distances.max() / np.linalg.norm(self.centralised))


def some_rows(dataset: DataSet, rows: int, seed: int = 0) -> tuple[Array, Array]:
    """Inputs and targets of rows picked at random: -1 and +1 for two classes, else one column per
    class.
    """
    picked = np.random.default_rng(seed).permutation(len(dataset.X))[:rows]
    classes, codes = np.unique(dataset.y[picked], return_inverse=True)
    targets = 2.0 * codes[:, None] - 1.0 if len(classes) == 2 else np.eye(len(classes))[codes]
    return dataset.X[picked], targets
