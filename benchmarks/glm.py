"""Claim: logistic regression over four hospitals gives the pooled coefficients and their standard
errors to 1e-10 in at most 10 sums and .1 MB; a meta-analysis of local fits gives other numbers.

Setting: FedHeart (FedHeart.npz in the folder that PEERLEARN_DATA names), the 740 complete rows of
10 columns, categories as indicators: 14 coefficients. Four agents on a ring, Newton to 1e-10. All
is counted: settings, classes, column moments, iterations, standard errors. The pooled fit is
computed here by iteratively reweighted least squares on all rows in extended precision. Rival:
inverse-variance weighted means of the hospitals' own fits, coefficient by coefficient, over those
hospitals that have one; distances are in pooled standard errors. A hospital without a finite fit is
named with the reason.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import console, holds, show

from peerlearn import LogisticClassifier, Newton, SimulatedNetwork, graphs
from peerlearn.algorithms import likelihood
from peerlearn.arrays import Array
from peerlearn.errors import DataError, NotConverged

HOSPITALS = ("Cleveland", "Hungary", "Switzerland", "Long Beach")
COLUMNS = ("age", "sex", "trestbps", "chol", "fbs", "thalach", "exang", "oldpeak")
INDICATORS = {"cp": (2, 3, 4), "restecg": (1, 2)}
SUMS, MEGABYTES, DISTANCE = 10, 0.1, 1e-10


@dataclass(frozen=True)
class Table:
    names: list[str]
    X: Array
    y: Array
    hospital: Array

    @classmethod
    def of_fed_heart(cls, folder: Path) -> Table:
        file = np.load(folder / "FedHeart.npz")
        column = dict(zip(file["columns"].tolist(), file["X"].T, strict=True))
        complete = ~np.isnan([column[name] for name in (*COLUMNS, *INDICATORS)]).any(axis=0)
        parts = {name: column[name] for name in COLUMNS}
        for name, values in INDICATORS.items():
            parts |= {f"{name}={value}": 1.0 * (column[name] == value) for value in values}
        X = np.column_stack([*parts.values()])[complete]
        return cls([*parts], X, file["y"][complete], file["center"][complete])

    def shares(self) -> list[tuple[Array, Array]]:
        return [(self.X[own], self.y[own]) for own in self._rows()]

    def _rows(self) -> list[Array]:
        return [np.flatnonzero(self.hospital == k) for k in range(len(HOSPITALS))]


def pooled(table: Table) -> tuple[Array, Array]:
    """Coefficients and standard errors of all rows in one place, by reweighted least squares."""
    mean, scale = table.X.mean(axis=0), table.X.std(axis=0)
    Z = np.column_stack([np.ones(len(table.X)), (table.X - mean) / scale]).astype(np.longdouble)
    w = np.zeros(Z.shape[1], np.longdouble)
    for _ in range(50):
        p = 1 / (1 + np.exp(-Z @ w))
        information = (Z.T * (p * (1 - p))) @ Z
        step = Z.T @ (table.y - p)
        w = w + np.linalg.solve(information.astype(float), step.astype(float))
    T = np.diag(np.append(1.0, 1 / scale))
    T[0, 1:] = -mean / scale
    covariance = T @ np.linalg.inv(information.astype(float)) @ T.T
    return T @ w.astype(float), np.sqrt(np.diag(covariance))


def meta_analysis(table: Table) -> tuple[Array, Array, list[str]]:
    """Weighted means of the hospitals' own coefficients, their errors, and who was left out."""
    numerator, denominator, left_out = 0.0, 0.0, []
    for name, (X, y) in zip(HOSPITALS, table.shares(), strict=True):
        try:
            own = LogisticClassifier(alpha=0).fit(X, y).summary()
        except DataError as error:
            left_out.append(f"{name}: {error}")
            continue
        numerator = numerator + own.coefficients / own.standard_errors**2
        denominator = denominator + 1 / own.standard_errors**2
    return numerator / denominator, 1 / np.sqrt(denominator), left_out


def count_sums() -> list[int]:
    """Count the calls of sums that the model makes beside those of the solver."""
    calls: list[int] = []
    plain = likelihood.sum_alike

    def counted(network: object, x: Array, averaging: object) -> Array:
        calls.append(x.size)
        return plain(network, x, averaging)

    likelihood.sum_alike = counted
    return calls


def main() -> None:
    folder = os.environ.get("PEERLEARN_DATA")
    if not folder or not (Path(folder) / "FedHeart.npz").exists():
        sys.exit("There is no FedHeart.npz: set PEERLEARN_DATA to the folder that has it.")
    warnings.simplefilter("ignore", NotConverged)  # hospitals without a finite fit are named
    table = Table.of_fed_heart(Path(folder))
    wanted, errors = pooled(table)
    network = SimulatedNetwork(graphs.ring(len(HOSPITALS)))
    calls = count_sums()
    start = time.perf_counter()
    model = LogisticClassifier(alpha=0, solver=Newton(1e-10), network=network).fit(table.shares())
    seconds = time.perf_counter() - start
    sums = model.report_.iterations + len(calls)
    found, robust = model.summary(), model.summary("sites")
    meta, meta_errors, left_out = meta_analysis(table)
    rows = [
        [name, *(f"{value:.4g}" for value in values), f"{abs(off):.1f}"]
        for name, *values, off in zip(
            ["intercept", *table.names],
            found.coefficients,
            found.standard_errors,
            robust.standard_errors,
            meta,
            meta_errors,
            (meta - wanted) / errors,
            strict=True,
        )
    ]
    columns = ["FedHeart", "coefficient", "error", "by sites", "meta", "its error", "errors off"]
    show(f"{len(table.y)} rows of four hospitals", columns, rows)
    for sentence in left_out:
        console.print(f"Not in the meta-analysis: {sentence}", highlight=False)
    off_coefficients = np.abs(found.coefficients / wanted - 1).max()
    off_errors = np.abs(found.standard_errors / errors - 1).max()
    measured = [
        ("sums", sums, SUMS),
        ("MB", model.report_.sent.megabytes, MEGABYTES),
        ("coefficients, largest relative distance", off_coefficients, DISTANCE),
        ("standard errors, largest relative distance", off_errors, DISTANCE),
    ]
    show(
        f"Over the network, {seconds:.2f} s",
        ["", "measured", "limit", ""],
        [
            [name, f"{value:.3g}", f"{limit:g}", holds(value, limit)]
            for name, value, limit in measured
        ],
    )
    worst = np.abs((meta - wanted) / errors).max()
    console.print(f"The meta-analysis is up to {worst:.1f} standard errors off.", highlight=False)


if __name__ == "__main__":
    main()
