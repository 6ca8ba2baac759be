"""Agents fit logistic regression without sending their rows: every solver against scikit-learn on all rows at once."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from peerlearn import (
    LBFGS,
    NEXT,
    Diffusion,
    GradientTracking,
    SimulatedNetwork,
    data,
    graphs,
    partition,
)
from peerlearn.local.margin_losses import LogisticLosses

cancer = data.load("breast-cancer")
X, y = (
    (cancer.X - cancer.X.mean(axis=0)) / cancer.X.std(axis=0),
    np.where(cancer.y == cancer.y[0], 1, -1),
)
alpha = 10.0
shares = partition.even(X, y, 10, seed=0)
losses = LogisticLosses([own for own, _ in shares], [own for _, own in shares])
together = LogisticRegression(C=1 / alpha, fit_intercept=False, tol=1e-8).fit(X, y).coef_[0]

solvers = {
    "L-BFGS over a tree": LBFGS(),
    "NEXT, Newton surrogate": NEXT("newton"),
    "NEXT, linear surrogate": NEXT("linear"),
    "tracking, accelerated": GradientTracking("chebyshev"),
    "tracking, plain": GradientTracking("plain"),
    "diffusion, roughly": Diffusion(tolerance=1.0),  # to 1e-5 it would never come
}

print(f"{'solver':<24}{'distance':>9}{'errors':>8}{'rounds':>8}{'MB':>7}")
for name, solver in solvers.items():
    network = SimulatedNetwork(graphs.erdos_renyi(10, 0.3, seed=0))
    found = solver.minimise(network, losses, alpha)
    w = found.coefficients[0]  # all agents have the same
    distance = np.linalg.norm(w - together) / np.linalg.norm(together)
    errors, sent = np.sum(np.sign(X @ w) != y), found.report.sent
    print(f"{name:<24}{distance:>9.0e}{errors:>8}{sent.rounds:>8,}{sent.megabytes:>7.2f}")
