"""
Agree on an average
===================

Ten agents in a ring agree on the average of their measurements. Three methods give the same
answer; they differ in how many rounds they take.
"""

import matplotlib.pyplot as plt
import numpy as np

from peerlearn import SimulatedNetwork, average, graphs

measured = np.random.default_rng(0).normal(20.0, 2.0, size=(10, 1))  # one thermometer per agent
print(f"true average {measured.mean():.6f}")

rounds = {}
for method in ("plain", "chebyshev", "tree"):
    network = SimulatedNetwork(graphs.ring(10))
    agreed = average(network, measured, tolerance=1e-6, method=method)
    sent = network.ledger.since()
    rounds[method] = sent.rounds
    print(f"{method:>9}: agent 0 has {agreed[0, 0]:.6f}, agent 5 {agreed[5, 0]:.6f}; {sent}")

figure, axes = plt.subplots(figsize=(7, 2.5), layout="constrained")
bars = axes.barh(list(rounds), list(rounds.values()), color="#0072B2")
axes.bar_label(bars, padding=3)
axes.set(xlabel="rounds until all agents are within 1e-6", title="Ten agents in a ring")
plt.show()
