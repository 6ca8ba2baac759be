"""
Learn while data arrive
=======================

Sensors get new rows all the time, two or three per agent and chunk. Five ways to learn from such a
stream differ in their error and in how much they send.
"""

import matplotlib.pyplot as plt

from peerlearn import DiffusionRLS, RVFLClassifier, SimulatedNetwork, StreamConsensus, data, graphs

digits = data.load("digits")
X, X_test = digits.X[:1400], digits.X[1400:]
y, y_test = digits.y[:1400], digits.y[1400:]
ways = {
    "average after every chunk": "consensus",
    "average after every tenth": StreamConsensus(every=10),
    "exact": "exact",
    "mix once after every chunk": "rls",
    "mix changes above 30 % only": DiffusionRLS(threshold=0.3),
}

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name, stream in ways.items():
    network = SimulatedNetwork(graphs.erdos_renyi(8, 0.4, seed=0))
    model = RVFLClassifier(200, alpha=0.1, stream=stream, network=network, random_state=0)
    errors = []
    for start in range(0, len(X), 20):  # 20 new rows for the whole network
        model.partial_fit(X[start : start + 20], y[start : start + 20], classes=range(10))
        errors.append(100 * (1 - model.score(X_test, y_test)))
    sent = network.ledger.since()
    print(f"{name:29}{errors[34]:5.1f} % wrong halfway,{errors[-1]:5.1f} % in the end, {sent}")
    axes.plot(range(20, 1401, 20), errors, label=f"{name}, {sent.megabytes:.1f} MB")
axes.set(xlabel="rows so far", ylabel="test digits wrong, %", ylim=(0, 50))
axes.legend(title="and what was sent in all")
plt.show()
