"""
Logistic regression
===================

Agents fit logistic regression without sending rows. Six solvers are compared with scikit-learn's
answer from all rows in one place.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from peerlearn import SimulatedNetwork, data, graphs, partition
from peerlearn.algorithms.smooth import LBFGS, NEXT, Diffusion, GradientTracking
from peerlearn.local.margin_losses import LogisticLosses

cancer = data.load("breast-cancer")
X = StandardScaler().fit_transform(cancer.X)
y = np.where(cancer.y == cancer.y[0], 1, -1)
alpha = 10.0
shares = partition.even(X, y, 10, seed=0)
losses = LogisticLosses([own for own, _ in shares], [own for _, own in shares])
target = LogisticRegression(C=1 / alpha, fit_intercept=False, tol=1e-8).fit(X, y).coef_[0]
solvers = {"L-BFGS over a tree": LBFGS(), "NEXT, Newton surrogate": NEXT("newton")}
solvers |= {"NEXT, linear surrogate": NEXT("linear"), "tracking": GradientTracking("chebyshev")}
solvers |= {"tracking, plain": GradientTracking("plain"), "diffusion": Diffusion(tolerance=1.0)}
rounds = []
print(f"{'solver':<24}{'distance':>9}{'errors':>8}{'rounds':>8}{'MB':>7}")
for name, solver in solvers.items():  # diffusion is for rough answers: it gets another tolerance
    network = SimulatedNetwork(graphs.erdos_renyi(10, 0.3, seed=0))
    found = solver.minimise(network, losses, alpha)
    w, sent = found.coefficients[0], found.report.sent  # all agents have the same coefficients
    rounds.append(sent.rounds)
    distance, errors = np.linalg.norm(w - target) / np.linalg.norm(target), np.sum(X @ w * y < 0)
    print(f"{name:<24}{distance:>9.0e}{errors:>8}{sent.rounds:>8,}{sent.megabytes:>7.2f}")
plt.figure(figsize=(7, 3), layout="constrained").supxlabel("rounds; diffusion stops far away")
plt.bar_label(plt.barh(list(solvers), rounds, color="#0072B2"), padding=3)
plt.show()
