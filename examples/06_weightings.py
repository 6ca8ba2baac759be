"""
Which weights agree fastest
===========================

Agents learn from a stream and average their coefficients after every chunk, with four weightings
(thesis, section 5.3). The fastest weights need the extra ``sdp``.
"""

import matplotlib.pyplot as plt
import numpy as np

from peerlearn import RVFLRegressor, SimulatedNetwork, data, graphs, weights
from peerlearn.algorithms import Averaging, StreamConsensus


def rounds_per_chunk(network, X, y):
    """Return how many rounds each of 20 chunks took."""
    averaging = Averaging("plain", tolerance=1e-6, stopping="thesis")
    stream = StreamConsensus(averaging=averaging, variant="thesis")
    model = RVFLRegressor(50, alpha=1.0, stream=stream, network=network, random_state=0)
    rounds = []
    for start in range(0, 400, 20):
        before = network.ledger.mark()
        model.partial_fit(X[start : start + 20], y[start : start + 20])
        rounds.append(network.ledger.since(before).rounds)
    return rounds


g50c = data.load("g50c")
order = np.random.default_rng(0).permutation(len(g50c.X))
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for name in weights.NAMES:
    networks = [SimulatedNetwork(graphs.erdos_renyi(8, 0.5, seed=s), name) for s in range(5)]
    found = [rounds_per_chunk(network, g50c.X[order], g50c.y[order]) for network in networks]
    rounds = np.mean(found, axis=0)
    print(f"{name:>12}: {rounds.sum():.0f} rounds in all, {rounds[-1]:.1f} for the last chunk")
    axes.plot(np.arange(1, 21), rounds, label=name)
axes.set(xlabel="chunk", ylabel="rounds", title="Rounds until eight agents agree", ylim=(0, None))
axes.legend()
plt.show()
