"""What it costs to reach the centralised coefficients to 1e-6, by solver and way of summing."""

import numpy as np

from peerlearn import ADMM, ConjugateGradient, Gram, RVFLClassifier, SimulatedNetwork, data, graphs

g50c = data.load("g50c")
centralised = RVFLClassifier(200, alpha=8.0, random_state=0).fit(g50c.X, g50c.y)
print(f"{'solver':<18} {'sums by':<10} {'distance':>9} {'rounds':>7} {'MB':>8}")
for Solver in (Gram, ConjugateGradient, ADMM):
    for method in ("tree", "chebyshev"):
        network = SimulatedNetwork(graphs.erdos_renyi(20, 0.2, seed=0))
        solver = Solver(tolerance=1e-6, averaging=method)
        model = RVFLClassifier(200, alpha=8.0, solver=solver, network=network, random_state=0).fit(
            g50c.X, g50c.y
        )
        away = model.coefficients_ - centralised.coefficients_
        distance = np.linalg.norm(away, axis=(1, 2)).max() / np.linalg.norm(
            centralised.coefficients_
        )
        sent = model.report_.sent
        print(
            f"{Solver.__name__:<18} {method:<10} {distance:>9.1e} {sent.rounds:>7,} {sent.megabytes:>8,.2f}"
        )
