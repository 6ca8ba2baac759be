"""Claim: with frozen features and one fixed penalty, 100 agents have the accuracy of the pooled
ridge to .3 points, and the same coefficients to 1e-12, however unequally classes are dealt.

Setting: CIFAR10_features (CIFAR10_features.npz in the folder that PEERLEARN_DATA names): 10,000
training images, 2,000 test images, 1,280 features of EfficientNet-lite0. alpha = 100, an intercept,
`Gram` over a tree of a random graph. Dirichlet's law with concentrations 100, .1 and .01. The
pooled ridge is scikit-learn's. Distances are the largest difference of any two coefficients.
`examples/cifar10-features.toml` is the same as a comparison, with a split of its own.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
from common import console, holds, show
from sklearn.linear_model import Ridge

from peerlearn import RVFLClassifier, SimulatedNetwork, graphs, partition

CONCENTRATIONS = (100.0, 0.1, 0.01)
AGENTS = 100
ALPHA = 100.0
POINTS, DISTANCE = 0.3, 1e-12


def main() -> None:
    folder = os.environ.get("PEERLEARN_DATA")
    if folder is None:
        sys.exit("set PEERLEARN_DATA to the folder of CIFAR10_features.npz")
    file = np.load(Path(folder) / "CIFAR10_features.npz")
    X, X_test = (file[name].astype(np.float64) for name in ("X", "X_test"))
    y, y_test = file["y"], file["y_test"]
    ridge = Ridge(ALPHA).fit(X, np.eye(10)[y])
    pooled = 100 * float(np.mean(ridge.predict(X_test).argmax(axis=1) == y_test))
    rows = []
    found = []
    for concentration in CONCENTRATIONS:
        shares = partition.dirichlet(X, y, AGENTS, concentration=concentration, seed=0)
        network = SimulatedNetwork(graphs.erdos_renyi(AGENTS, 0.1, seed=0))
        model = RVFLClassifier(alpha=ALPHA, features="columns", solver="gram", network=network)
        start = time.perf_counter()
        model.fit(shares)
        seconds = time.perf_counter() - start
        right = 100 * model.score(X_test, y_test)
        found.append(model.coefficients_[0])
        classes = np.mean([len(np.unique(own)) for _, own in shares])
        off = np.abs(model.coefficients_[-1] - ridge.coef_.T).max()
        rows.append(
            [
                f"{concentration:g}",
                f"{classes:.1f}",
                f"{right:.2f}",
                f"{pooled:.2f}",
                holds(abs(right - pooled), POINTS),
                f"{off:.1e}",
                f"{model.report_.bound:.0e}",
                f"{model.report_.sent.megabytes:,.0f}",
                f"{seconds:.0f}",
            ]
        )
    columns = ["concentration", "classes per agent", "right, %", "pooled ridge, %", ""]
    columns += ["off the ridge", "bound", "MB", "seconds"]
    show(f"CIFAR10_features over {AGENTS} agents, alpha {ALPHA:g}", columns, rows)
    apart = max(float(np.abs(one - other).max()) for one in found for other in found)
    console.print(f"coefficients apart: {apart:.1e}, limit {DISTANCE:g}: {holds(apart, DISTANCE)}")


if __name__ == "__main__":
    main()
