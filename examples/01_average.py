"""Ten agents in a circle agree on the average of what they measured: three methods, and what each costs."""

import numpy as np

from peerlearn import SimulatedNetwork, average, graphs

measured = np.random.default_rng(0).normal(20.0, 2.0, size=(10, 1))  # one thermometer per agent
print(f"true average {measured.mean():.6f}")

for method in ("plain", "chebyshev", "tree"):
    network = SimulatedNetwork(graphs.ring(10))
    agreed = average(network, measured, tolerance=1e-6, method=method)
    print(
        f"{method:>9}: agents 0 and 5 say {agreed[0, 0]:.6f} and {agreed[5, 0]:.6f} after {network.ledger.since()}"
    )
