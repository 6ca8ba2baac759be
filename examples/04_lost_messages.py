"""
A network that loses messages
=============================

A third of all messages get lost. The mean of all agents stays exact in every round, and the agents
still learn the centralised coefficients.
"""

import matplotlib.pyplot as plt
import numpy as np

from peerlearn import ConjugateGradient, Faults, RVFLClassifier, SimulatedNetwork, data, graphs
from peerlearn.algorithms import average

graph = graphs.small_world(12, 2, 0.2, seed=0)
network = SimulatedNetwork(graph, faults=Faults(loss=1 / 3, seed=0))
x = np.arange(12.0)
agreed = average(network, x, tolerance=1e-6)
print(f"mean {agreed.mean():.12f}, largest distance from 5.5 is {np.abs(agreed - 5.5).max():.1e}")
print(network.ledger)

g50c = data.load("g50c")
settings = {"n_hidden": 50, "alpha": 8.0, "activation": "sigmoid", "random_state": 0}
target = RVFLClassifier(**settings).fit(g50c.X, g50c.y).coefficients_
lossy = RVFLClassifier(network=network, solver=ConjugateGradient(1e-4), **settings)
lossy.fit(g50c.X, g50c.y)
away = np.linalg.norm(lossy.coefficients_ - target, axis=(1, 2)).max()
print(f"distance to the centralised coefficients {away / np.linalg.norm(target):.1e}")

values = [x[:, None]]
for _ in range(30):
    values.append(network.mix(values[-1]))
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(np.hstack(values).T, color="#0072B2", lw=1)
axes.axhline(5.5, color="#D55E00", ls=":")
axes.set(xlabel="round", ylabel="value of each agent", title="A third of all messages get lost")
plt.show()
