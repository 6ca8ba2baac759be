"""Test error of RVFL with differential privacy against epsilon; docs/privacy.md has the figure.

    python benchmarks/private.py [FIGURE.png]

Ten and a hundred agents of which a tenth may collude, delta 1e-5, means of 3 deals (1 of
CIFAR10_features). Beside the error in secret sums, that of the same mechanism with a trusted
curator, who adds the noise once, and that of sites which protect their sums alone, each with all
the noise that epsilon needs (local). Columns are scaled by their ranges, which count as known.
Data sets that are not bundled are read from the folder that PEERLEARN_DATA names.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
from common import console, show
from matplotlib.figure import Figure

from peerlearn import DifferentialPrivacy, RVFLClassifier, SimulatedNetwork, data, graphs
from peerlearn.algorithms.differential_privacy import GRID
from peerlearn.algorithms.readout.private_gram import (
    plan_gram_noise,
    solve_noisy,
    split_total,
    sum_products,
)
from peerlearn.secret.discrete_gaussian import draw_discrete_gaussian

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
AGENTS = (10, 100)
DEALS = {"breast-cancer": 3, "Adult_substitute": 3, "CIFAR10_features": 1}
DELTA = 1e-5
ALPHA = 1e-3
# Data set, and settings of the features.
SETS: dict[str, dict[str, Any]] = {
    "breast-cancer": {"n_hidden": 50, "activation": "tanh"},
    "Adult_substitute": {"n_hidden": 50, "activation": "tanh"},
    "CIFAR10_features": {"n_hidden": 100, "activation": "tanh"},
}


class Task:
    """One deal of a data set into training and test rows."""

    def __init__(self, name: str, deal: int) -> None:
        loaded = data.load(name)
        least = loaded.X.min(axis=0)
        width = np.maximum(loaded.X.max(axis=0) - least, 1e-12)
        X = 2 * (loaded.X - least) / width - 1
        rows = np.random.default_rng(deal).permutation(len(X))
        test, train = np.split(rows, [len(X) // 4])
        self.train = X[train], loaded.y[train]
        self.test = X[test], loaded.y[test]
        self.settings = {
            **SETS[name],
            "classes": np.unique(loaded.y).tolist(),
            "alpha": ALPHA,
            "solver": "gram",
            "fit_intercept": False,
            "random_state": deal,
        }
        secret = SimulatedNetwork(graphs.complete(3), secrecy="sums")
        private = DifferentialPrivacy(1000.0)
        self.model = RVFLClassifier(**self.settings, differential_privacy=private, network=secret)
        self.model.fit(*self.train)  # sets features and classes
        Y = self.model._encode_codes(np.searchsorted(self.model.classes_, self.train[1]))
        self.sums = sum_products(self.model.features_, self.train[0], Y, 1.0, intercept=False)
        self.outputs = Y.shape[1]

    def error_of(self, model: RVFLClassifier) -> float:
        return 100 * (1 - model.score(*self.test))

    def error_in_secret(self, epsilon: float, agents: int) -> float:
        """Return the error of the real thing, over a simulated network."""
        graph = graphs.erdos_renyi(agents, 0.3, seed=0)
        network = SimulatedNetwork(graph, secrecy="sums", colluders=agents // 10)
        private = DifferentialPrivacy(epsilon, DELTA)
        model = RVFLClassifier(**self.settings, differential_privacy=private, network=network)
        return self.error_of(model.fit(*self.train))

    def error_with(self, epsilon: float, agents: int, colluders: int, seed: int) -> float:
        """Return the error of the same mechanism: one agent is a curator, L - 1 colluders local."""
        among: Any = SimpleNamespace(size=agents, colluders=colluders)
        plan = plan_gram_noise(DifferentialPrivacy(epsilon, DELTA), among, intercept=False)
        noisy = []
        for part, own in enumerate(self.sums):
            # The noise of all agents, drawn at once.
            deviation = round(plan.total_deviation(part))
            key = np.random.default_rng([seed, part]).bytes(32)
            noisy.append(own.ravel() + draw_discrete_gaussian(key, deviation, own.size))
        width = self.model.features_.width
        G, P = split_total(np.concatenate(noisy), width, self.outputs)
        _, b = solve_noisy(G, P, ALPHA, plan.total_deviation(0) / GRID**2)
        self.model.coefficients_ = b[None]
        self.model.intercept_ = np.zeros((1, self.outputs))
        return self.error_of(self.model)

    def error_without_noise(self) -> float:
        width = self.model.features_.width
        whole = np.concatenate([own.ravel() for own in self.sums])
        G, P = split_total(whole, width, self.outputs)
        b = np.linalg.solve(G + ALPHA * np.eye(width), P)
        self.model.coefficients_ = b[None]
        self.model.intercept_ = np.zeros((1, self.outputs))
        return self.error_of(self.model)


def measure(name: str) -> tuple[float, dict[str, list[float]]]:
    """Return the error without noise, and errors by mechanism, one for each epsilon."""
    tasks = [Task(name, deal) for deal in range(DEALS[name])]
    found: dict[str, list[float]] = {}
    for L in AGENTS:
        for key, error in {
            f"secret, {L} agents": lambda task, e, n, L=L: task.error_in_secret(e, L),
            f"local, {L} agents": lambda task, e, n, L=L: task.error_with(e, L, L - 1, n + 1000),
        }.items():
            found[key] = [
                float(np.mean([error(task, e, n) for n, task in enumerate(tasks)]))
                for e in EPSILONS
            ]
    found["curator"] = [
        float(np.mean([task.error_with(e, 1, 0, n) for n, task in enumerate(tasks)]))
        for e in EPSILONS
    ]
    return float(np.mean([task.error_without_noise() for task in tasks])), found


def main() -> None:
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    axes = figure.subplots(1, len(SETS))
    for ax, name in zip(axes, SETS, strict=True):
        plain, found = measure(name)
        rows = [
            (key, *(f"{error:.1f}" for error in errors)) for key, errors in sorted(found.items())
        ]
        title = f"{name}: error in percent by epsilon; {plain:.1f} without noise"
        show(title, ("", *map(str, EPSILONS)), rows)
        for key, errors in found.items():
            style = "--" if key == "curator" else (":" if key.startswith("local") else "-")
            ax.semilogx(EPSILONS, errors, style, marker="o", markersize=3, label=key)
        ax.axhline(plain, color="grey", linewidth=0.8)
        ax.set(title=name, xlabel="epsilon")
    axes[0].set_ylabel("test error, %")
    axes[0].legend(frameon=False, fontsize=8)
    if len(sys.argv) > 1:
        figure.savefig(sys.argv[1], dpi=110)
        console.print(f"Figure {sys.argv[1]}", highlight=False)


if __name__ == "__main__":
    main()
