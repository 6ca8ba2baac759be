"""Seven agents have 14 labels between them: what each makes of its own rows, and all together of everybody's."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from peerlearn import LapKRRClassifier, SimulatedNetwork, data, graphs, partition

moons = data.load("two-moons")
X, y = moons.X, (moons.y > 0).astype(int)
few = np.concatenate([np.flatnonzero(y == label)[:7] for label in (0, 1)])
some = np.full(len(y), -1)  # -1: a row without a label
some[few] = y[few]
shares = partition.stratified(X, some, 7)

network = SimulatedNetwork(graphs.erdos_renyi(7, 0.5, seed=0))
settings = {"width": 0.15, "gamma_A": 2**-5, "gamma_I": 4.0, "network": network, "random_state": 0}
together = LapKRRClassifier(**settings).fit(shares)
alone = LapKRRClassifier(**settings, distances="local").fit(shares)
print("right, each agent alone:   ", alone.agent_scores(X, y).round(2))
print("right, all agents together:", together.agent_scores(X, y).round(2))
print(together.report_)

(left, bottom), (right, top) = X.min(axis=0) - 0.2, X.max(axis=0) + 0.2
plane = np.stack(np.meshgrid(np.linspace(left, right, 150), np.linspace(bottom, top, 150)), axis=-1)
figure, panels = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
shown = ((alone, "Agent 0 alone", *shares[0]), (together, "All agents together", X, some))
for axes, (model, title, rows, labels) in zip(panels, shown, strict=True):
    f = np.tanh(4 * model.decision_function(plane.reshape(-1, 2)).reshape(150, 150))
    axes.imshow(f, cmap="PuOr", vmin=-1.6, vmax=1.6, origin="lower", extent=(left, right, bottom, top))
    axes.scatter(*rows[labels == -1].T, s=7, color="0.3")
    axes.scatter(*rows[labels >= 0].T, s=70, c=labels[labels >= 0], cmap="PuOr", vmin=-0.2, vmax=1.2, edgecolors="k")
    axes.set(title=f"{title}: {model.agent_scores(X, y)[0]:.0%} right", xticks=[], yticks=[])
figure.savefig("few-labels.png", dpi=120)
