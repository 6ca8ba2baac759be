"""A third of all messages get lost: the mean survives, and the agents still learn."""

import numpy as np

from peerlearn import (
    ConjugateGradient,
    Faults,
    RVFLClassifier,
    SimulatedNetwork,
    average,
    data,
    graphs,
)

network = SimulatedNetwork(
    graphs.small_world(12, 2, 0.2, seed=0), faults=Faults(loss=1 / 3, seed=0)
)
x = np.arange(12.0)
agreed = average(network, x, tolerance=1e-6)
print(
    f"mean of all agents {agreed.mean():.12f}, largest distance from 5.5 is {np.abs(agreed - 5.5).max():.1e}"
)
print(network.ledger)

g50c = data.load("g50c")
alone = RVFLClassifier(50, alpha=8.0, random_state=0).fit(g50c.X, g50c.y)
lossy = RVFLClassifier(
    50, alpha=8.0, random_state=0, network=network, solver=ConjugateGradient(1e-4)
)
lossy.fit(g50c.X, g50c.y)
away = np.linalg.norm(lossy.coefficients_ - alone.coefficients_, axis=(1, 2)).max()
print(f"distance to the centralised coefficients {away / np.linalg.norm(alone.coefficients_):.1e}")
