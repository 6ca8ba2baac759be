"""
What exact answers cost
=======================

Three solvers reach the centralised coefficients to 1e-6, with two ways of summing over the
network. The picture shows how much each of them sends.
"""

import matplotlib.pyplot as plt
import numpy as np

from peerlearn import ADMM, ConjugateGradient, Gram, RVFLClassifier, SimulatedNetwork, data, graphs

g50c = data.load("g50c")
settings = {"n_hidden": 200, "alpha": 8.0, "activation": "sigmoid", "random_state": 0}
target = RVFLClassifier(**settings).fit(g50c.X, g50c.y).coefficients_
print(f"{'solver':<18} {'sums by':<10} {'distance':>9} {'rounds':>7} {'MB':>8}")
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for method, color in (("tree", "#0072B2"), ("chebyshev", "#D55E00")):
    for Solver in (Gram, ConjugateGradient, ADMM):
        network = SimulatedNetwork(graphs.erdos_renyi(20, 0.2, seed=0))
        solver = Solver(tolerance=1e-6, averaging=method)
        model = RVFLClassifier(solver=solver, network=network, **settings).fit(g50c.X, g50c.y)
        away = np.linalg.norm(model.coefficients_ - target, axis=(1, 2)).max()
        distance = away / np.linalg.norm(target)
        name = Solver.__name__
        sent = model.report_.sent
        print(f"{name:<18} {method:<10} {distance:>9.1e} {sent.rounds:>7,} {sent.megabytes:>8,.2f}")
        axes.loglog(sent.rounds, sent.megabytes, "o", color=color)
        axes.annotate(f" {name}, {method}", (sent.rounds, sent.megabytes), color=color)

axes.set(xlabel="rounds", ylabel="MB sent", xlim=(10, 1e5), title="Exact to 1e-6: 20 agents")
plt.show()
